"""Columns that matter and that nobody declared are asked about: policies, and tasks where rows are time."""

import pytest

SITES = "trial,site,grasped\n" + "".join(
    f"{i},{'lab' if i <= 30 else 'kitchen'},{'no' if i % 11 == 0 or i > 32 else 'yes'}\n"
    for i in range(1, 39)
)


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
    assert "with --by" in run("watch", "c.json", "new.csv", "--strata", "task").err
    assert "mean over 2 tasks" in run("certify", "new.csv", *until, "9", "--strata", "task").out


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


@pytest.mark.parametrize("name", ["Policy", "model", "METHOD", "checkpoint"])
def test_several_policies_are_refused_in_every_command(run, tmp_path, name):
    (tmp_path / "all.csv").write_text(f"{name},success\n" + "ACT,1\nDP,0\n" * 20)
    (tmp_path / "one.csv").write_text(f"{name},success\n" + "ACT,1\nact,0\n,1\n" * 9)
    assert run("certify", "one.csv", "-o", "c.json").code == 0
    commands = [
        ("certify", "all.csv", "-o", "d.json"),
        ("certify", "all.csv", "-o", "d.json", "--at-most", "9", "--follow"),
        ("check", "c.json", "all.csv"),
        ("report", "c.json", "all.csv", "-o", "r.html"),
        ("watch", "c.json", "all.csv"),
        ("watch", "c.json", "all.csv", "--state", "s"),
    ]
    for command in commands:
        refused = run(*command)
        assert (refused.code, f"--where {name}=ACT (only this one is meant)" in refused.err) == (1, True)
        assert "(ACT, DP)" in refused.err
        (tmp_path / "s").unlink(missing_ok=True)
        assert run(*command, "--where", f"{name}=DP").code == 0
        (tmp_path / "s").unlink(missing_ok=True)
        assert run(*command, "--as-is").code == 0
    assert run("compare", "all.csv", "--policy", name).code == 0
    assert run("certify", "all.csv", "--by", name, "-o", "e.json").code == 0


def test_each_policy_has_one_checkpoint(run, tmp_path):
    rows = "ACT,10k,1\nDP,20k,0\n" * 9
    (tmp_path / "all.csv").write_text("policy,checkpoint,success\n" + rows)
    assert run("compare", "all.csv", "--policy", "policy").code == 0
    (tmp_path / "all.csv").write_text("policy,checkpoint,success\n" + rows + "ACT,30k,1\n")
    refused = run("compare", "all.csv", "--policy", "policy")
    assert (refused.code, "'checkpoint' has several values (10k, 30k)" in refused.err) == (1, True)
    assert "(10k, 30k)" in run("certify", "all.csv", "--where", "policy=ACT", "-o", "c.json").err
    both = ("--where", "policy=ACT", "--where", "checkpoint=10k")
    assert run("certify", "all.csv", *both, "-o", "c.json").code == 0


def test_the_rows_of_a_certificate_are_not_those_of_new_trials(run, tmp_path):
    """The README's story from one sheet; which rows are new is said, never taken from the certificate."""
    (tmp_path / "all.csv").write_text(SITES)
    assert (
        "30 episodes, 2 failed"
        in run("certify", "all.csv", "--success", "grasped", "--where", "site=lab", "-o", "c.json").out
    )
    for command in ("check", "watch"):
        mixed = run(command, "c.json", "all.csv")
        assert (mixed.code, "--where site=kitchen (only this one is meant)" in mixed.err) == (1, True)
        judged = run(command, "c.json", "all.csv", "--where", "site=Kitchen")
        assert (judged.code, "6 of 8 failed" in judged.out) == (0, True)
        own = run(command, "c.json", "all.csv", "--where", "site=lab")
        assert (own.code, "the costs that the certificate was made from" in own.err) == (1, True)
    (tmp_path / "new.csv").write_text("grasped\n" + "no\nyes\n" * 9)
    assert "9 of 18 failed" in run("check", "c.json", "new.csv").out
    (tmp_path / "new.csv").write_text("grasped,site\n" + "no,hall\nyes,hall\n" * 9)
    assert "9 of 18 failed" in run("check", "c.json", "new.csv").out


def test_rows_are_chosen_by_cells_that_say_something(run, tmp_path):
    (tmp_path / "merged.csv").write_text("policy,success\nACT,1\n,0\n,1\nDP,1\n,0\n")
    refused = run("certify", "merged.csv", "--where", "policy=ACT", "-o", "c.json")
    assert (refused.code, "line 3, column 'policy' is empty, and rows are chosen by it" in refused.err) == (
        1,
        True,
    )
    assert "(ACT, DP)" in run("certify", "merged.csv", "-o", "c.json").err
    none = run("certify", "merged.csv", "--where", "policy=", "-o", "c.json")
    assert "3 episodes, 2 failed" in none.out
    (tmp_path / "all.csv").write_text(SITES)
    missed = run("certify", "all.csv", "--success", "grasped", "--where", "site=hall", "-o", "d.json")
    assert "has: site=lab, site=kitchen" in missed.err
