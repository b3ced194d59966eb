"""What is declared about tasks is what was certified, or refused."""

import pytest

LAB = "task,day,ok\n" + "".join(
    f"{task},{i % 4},{'no' if i % 5 == 0 else 'yes'}\n" for task in "ab" for i in range(20)
)
NEW = "task,day,ok\n" + "".join(
    f"{task},{i % 4},{'no' if i % 3 == 0 else 'yes'}\n" for task in "ab" for i in range(9)
)


@pytest.fixture
def sheets(tmp_path):
    (tmp_path / "lab.csv").write_text(LAB)
    (tmp_path / "new.csv").write_text(NEW)


@pytest.mark.usefixtures("sheets")
def test_a_day_that_tasks_share_is_not_one_for_each(run):
    """With four days that are all good or all bad, limits failed in 11 % of simulations, where 1 % may."""
    words = "certify", "lab.csv", "--success", "ok", "--strata", "task", "--cluster", "day", "-o", "c.json"
    refused = run(*words)
    assert refused.code == 1
    assert "'0' occurs in 'a' and in 'b'" in refused.err
    assert "--as-is" in refused.err
    assert "8 days" in run(*words, "--as-is").out
    assert "4 days" in run(*words[:4], *words[6:]).out


@pytest.mark.usefixtures("sheets")
def test_what_is_declared_otherwise_than_certified_is_refused(run):
    assert run("certify", "lab.csv", "--success", "ok", "--strata", "task", "-o", "mean.json").code == 0
    assert run("certify", "lab.csv", "--success", "ok", "--as-is", "-o", "all.json").code == 0
    for words, said in (
        (("mean.json", "new.csv", "--by", "task"), "no single task"),
        (("mean.json", "new.csv", "--weights", "a=2,b=1"), "--weights are not those"),
        (("mean.json", "new.csv", "--weights", "c=1"), "--weights are not those"),
        (("all.json", "new.csv", "--strata", "task"), "not of the mean over tasks"),
    ):
        refused = run("check", *words)
        assert (refused.code, refused.out) == (1, "")
        assert said in refused.err
    assert run("check", "mean.json", "new.csv", "--weights", "a=1,b=1").code == 0


@pytest.mark.usefixtures("sheets")
def test_a_stream_is_not_watched_with_other_weights(run):
    assert run("certify", "lab.csv", "--success", "ok", "--strata", "task", "-o", "mean.json").code == 0
    for state in ((), ("--state", "s")):
        refused = run("watch", "mean.json", "new.csv", "--weights", "a=2,b=1", *state)
        assert (refused.code, refused.out) == (1, "")
        assert "--weights are not those of the certificate" in refused.err
    assert run("watch", "mean.json", "new.csv", "--weights", "a=1,b=1", "--state", "s").code == 0
