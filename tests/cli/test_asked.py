"""Commands that read rows as time ask about tasks that nobody declared."""


def test_tasks_in_blocks_are_refused_until_they_are_declared(run, tmp_path):
    (tmp_path / "log.csv").write_text("task,success\n" + "mug,1\nbowl,0\n" * 20)
    assert run("certify", "log.csv", "-o", "c.json").code == 0
    (tmp_path / "new.csv").write_text("task,success\n" + "bowl,0\n" * 9 + "mug,1\n" * 9)
    until = ("-o", "d.json", "--at-most")
    for follow in ([], ["--follow"]):
        watched = run("watch", "c.json", "new.csv", *follow)
        assert (watched.code, "--by task (each is judged by itself)" in watched.err) == (1, True)
        certified = run("certify", "new.csv", *until, "12", *follow)
        assert (certified.code, "--where task=bowl" in certified.err) == (1, True)
        assert run("certify", "new.csv", *until, "9", *follow, "--where", "task=mug").code == 0
    assert "use --by" in run("watch", "c.json", "new.csv", "--strata", "task").err
    assert "use --where" in run("certify", "new.csv", *until, "9", "--strata", "task").err
