"""boundwatch report writes the page, whole or not at all."""

from __future__ import annotations

import json

import numpy as np

from boundwatch.certificates.record import costs_digest


def test_the_verdict_is_that_of_check(run, folder):
    for costs in ("same.csv", "worse.csv", "better.csv"):
        options = ["--alpha-adverse", "0.1", "--tail", "kl"]
        verdict = json.loads(run("check", "certificate.json", costs, *options, "--json").out)["verdict"]
        result = run("report", "certificate.json", costs, "-o", "report.html", *options)
        assert result.code == 0
        assert result.out.startswith("Wrote report.html\n" + verdict.upper())
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert f'class="verdict {verdict}"' in page
        assert costs_digest(np.loadtxt(folder / costs, skiprows=1)) in page
        assert "hypothesis-test, kl tail" in page


def test_costs_from_standard_input(run, folder):
    result = run("report", "binary.json", "-", "-o", "report.html", stdin=b"success\ntrue\nfalse\n")
    assert result.code == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "standard input, column success, cost = 1 - success" in page


def test_several_tasks_on_one_page(run, folder):
    (folder / "tasks.csv").write_text("task,success\n" + "pick,1\nplace,1\nplace,0\n" * 50)
    (folder / "new.csv").write_text("task,success\n" + "pick,0\nplace,1\n" * 12)
    assert run("certify", "tasks.csv", "--by", "task", "-o", "tasks.json").code == 0
    result = run("report", "tasks.json", "new.csv", "-o", "report.html", "--site", "kitchen")
    assert result.code == 0
    assert (
        "Wrote report.html\nADVERSE: evidence of more failures than in the lab, for 1 of 2 tasks"
        in result.out
    )
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "<tr><th>pick</th><td>ADVERSE</td><td>12 of 12</td>" in page
    assert "site kitchen" in page
    assert "the probability that any task that is not worse is called ADVERSE is at most 0.055" in page


def test_logs_are_read_and_their_faults_are_shown(run, folder):
    episodes = [
        {"success": i > 29, "sum_reward": 1.0, "max_reward": 1.0, "seed": 7, "episode_ix": i}
        for i in range(60)
    ]
    (folder / "eval_info.json").write_text(json.dumps({"per_episode": episodes, "aggregated": {}}))
    result = run("report", "binary.json", "eval_info.json", "-o", "report.html")
    assert result.code == 0
    assert "seed" in result.err
    assert "What may make the guarantee wrong" in (folder / "report.html").read_text(encoding="utf-8")


def test_a_page_under_another_format_s_name_is_refused(run, folder):
    for arguments in (
        ("report", "certificate.json", "same.csv", "-o", "report.pdf"),
        ("compare", "same.csv", "worse.csv", "--report", "report.pdf"),
    ):
        done = run(*arguments)
        assert (done.code, done.out) == (1, "")
        assert "report.pdf: would be an HTML page; end its name in .html; any browser prints it" in done.err
    assert not (folder / "report.pdf").exists()


def test_the_caption_is_right_in_light_and_in_dark(run, folder):
    """In the dark a failure is the lighter cell: what is said must be true of both."""
    assert run("report", "binary.json", "-", "-o", "r.html", stdin=b"success\ntrue\nfalse\n").code == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "a filled cell is a failure, an empty one a success" in page
    assert "dark cell" not in page
