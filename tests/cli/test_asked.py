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


def test_tasks_in_random_order_are_read_as_they_are(run, tmp_path):
    (tmp_path / "log.csv").write_text("task,success\n" + "mug,1\nbowl,0\n" * 20)
    (tmp_path / "other.csv").write_text("task,success\n" + "mug,0\nbowl,0\n" * 20)
    run("certify", "log.csv", "-o", "c.json")
    for command in (
        ("watch", "c.json", "other.csv"),
        ("watch", "c.json", "other.csv", "--state", "s"),
        ("compare", "log.csv", "other.csv"),
        ("certify", "other.csv", "-o", "d.json", "--at-most", "40"),
        ("certify", "other.csv", "-o", "d.json", "--at-most", "40", "--follow"),
    ):
        refused = run(*command)
        assert (refused.code, "or --as-is (they come in random order)" in refused.err) == (1, True)
        (tmp_path / "s").unlink(missing_ok=True)
        assert run(*command, "--as-is").code == 0


def test_with_its_tasks_as_they_are_a_state_remembers_nothing_of_that(run, tmp_path):
    (tmp_path / "log.csv").write_text("task,success\n" + "mug,1\nbowl,0\n" * 20)
    run("certify", "log.csv", "-o", "c.json")
    (tmp_path / "new.csv").write_text("task,success\nmug,1\nbowl,1\n")
    assert run("watch", "c.json", "new.csv", "--state", "s", "--as-is").code == 0
    (tmp_path / "new.csv").write_text("task,success\nmug,1\nbowl,1\nmug,1\nbowl,0\n")
    assert "--as-is" in run("watch", "c.json", "new.csv", "--state", "s").err
    assert "1 of 4 failed" in run("watch", "c.json", "new.csv", "--state", "s", "--as-is").out
