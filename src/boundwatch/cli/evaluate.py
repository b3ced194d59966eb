"""boundwatch evaluate: the trial sheet itself, blinded and randomized, from the protocol to the report."""

from __future__ import annotations

import dataclasses
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any, Literal

from boundwatch._support import files
from boundwatch.certificates import signing
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_1, WrongUsage, flag, refuse_if
from boundwatch.cli.root import PARTS, Group, command
from boundwatch.episodes.cells import number
from boundwatch.evaluation import Evaluation, Protocol
from boundwatch.evaluation.questions import planned

_HELP = "Run an evaluation: the next trial, blinded and in random order, until the question is answered."
group: dict[str, Any] = {}
_USUAL = {"question": "compare", "tasks": "", "scenes": "", "measure": "success", "rates": ""}
_USUAL |= {"score_range": "0,5", "until_width": "0.2"}
_NEEDED = {"score": "score_range", "rubric": "milestones", "check": "certificate", "certify": "until_width"}
_ONE = ("scenes", "until_width", "most_rounds")  # settings of one number


@command(
    group=group,
    example="boundwatch evaluate init\n"
    "boundwatch evaluate init --policies act,dp --tasks mug,bowl --rates 0.6,0.8",
)
def init(
    *,
    output: Path = Path("protocol.toml"),
    question: Literal["compare", "rank", "certify", "check"] | None = None,
    policies: str | None = None,
    tasks: str | None = None,
    scenes: str | None = None,
    measure: Literal["success", "score", "rubric"] | None = None,
    score_range: str | None = None,
    milestones: str | None = None,
    alpha: float = 0.05,
    margin: float = 0.0,
    until_width: float | None = None,
    certificate: str | None = None,
    rates: str | None = None,
    most_rounds: Annotated[int | None, AT_LEAST_1] = None,
    force: bool = False,
) -> None:
    """Write a protocol: what is asked, of which policies and tasks, and when it stops.

    In a terminal, it asks for what was not given. Read the file before you start: it has further settings,
    each with a comment, and nothing can be changed afterwards.

    Options
    -------
    output FILE: The TOML file.
    question: compare two policies, rank several, certify one, or check one against a certificate.
    policies NAME,NAME: Names of the policies.
    tasks NAME,NAME: Names of the tasks; with numbers (mug=2,bowl=1), trials of each per round.
    scenes N: How many scenes there are, or their names with commas.
    measure: What is measured. [default: success]
    score_range WORST,BEST: The range of a score.
    milestones NAME=POINTS,...: The milestones of a rubric.
    alpha P: Probability of a wrong answer, per side.
    margin M: How much worse is acceptable: compare asks if the second policy is no worse than the first.
    until_width W: Certify: stop when the limits are this close. [default: 0.2]
    certificate FILE: Check: the certificate.
    rates RATE,RATE: Success rates that you expect, to plan with; they are not in the protocol.
    most_rounds N: The end. [default: half as many again as are needed for 90 % power, with --rates]
    """
    given = dict(locals())
    files.protect(output, [certificate], force=force)
    settings: dict[str, Any] = {"alpha": alpha, "margin": margin}
    for name in ("question", "policies", "tasks", "scenes", "measure"):
        settings[name] = _asked(name, given[name])
    for kind, name in _NEEDED.items():
        is_asked = given[name] is not None or kind in (settings["question"], settings["measure"])
        settings[name] = _asked(name, given[name]) if is_asked else None
    expected = _asked("rates", rates)
    if most_rounds is None and expected:
        most_rounds = planned(Protocol(**settings, most_rounds=10_000), expected).suggested
    protocol = Protocol(**settings, most_rounds=_asked("most_rounds", most_rounds))
    protocol.save(output)
    print(f"Wrote {output}: {protocol}, {protocol.most_trials} trials")
    if expected:
        print(planned(protocol, expected))
    print(f"Read it, then seal it:  boundwatch evaluate start {output} -o eval.db")


def _asked(name: str, found: Any) -> Any:
    """Return a setting; what was not given is asked for in a terminal, elsewhere it is the usual one."""
    usual = _USUAL.get(name)
    if found is None and sys.stdin.isatty():
        print(
            "\n"
            + textwrap.fill(Protocol.meanings().get(name, "Success rates that you expect, to plan with"), 79)
        )
        listed = "" if name in ("question", "measure", "certificate", *_ONE[1:]) else ", with commas"
        found = input(f"{name}{listed}{f' [{usual}]' if usual else ''}: ").strip() or usual
    found = usual if found is None else found
    if found is None:
        raise WrongUsage(f"{flag(name)} is missing")
    return _read(name, found) if isinstance(found, str) else found


def _read(name: str, text: str) -> Any:
    """Return the value that a text stands for: names, numbers, or names with numbers."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if name in ("question", "measure", "certificate"):
            return text
        if name in ("tasks", "milestones") and "=" in text:
            pairs = [part.partition("=") for part in parts]
            return {name.strip(): _number(weight or "1") for name, _, weight in pairs}
        if name in ("rates", "score_range", *_ONE) and (name != "scenes" or text.isdecimal()):
            numbers = list(map(_number, parts))
            return numbers[0] if name in _ONE else numbers
        if name == "scenes" and number(text) is not None:
            raise WrongUsage(f"{flag(name)}: {text!r} is no count; give a whole number, or names")
    except ValueError:
        raise WrongUsage(f"{flag(name)}: {text!r} is not a list of numbers") from None
    return parts


def _number(text: str) -> float:
    return int(text) if text.strip().isdecimal() else float(text)


@command(group=group, example="boundwatch evaluate plan protocol.toml --rates 0.6,0.8")
def plan(protocol: Path, *, rates: str, as_json: bool = False) -> None:
    """Say how many rounds a protocol needs, if the policies are as good as you expect.

    Options
    -------
    protocol PROTOCOL: The TOML file.
    rates RATE,RATE: Success rates that you expect, in the order of the policies.
    """
    found = planned(Protocol.load(protocol), _read("rates", rates))
    out.print_json(dataclasses.asdict(found)) if as_json else print(found)


@command(group=group, example="boundwatch evaluate start protocol.toml -o eval.db")
def start(protocol: Path, *, output: Path, sign: Path | None = None) -> None:
    """Seal a protocol: from then on nothing about it can be changed.

    Options
    -------
    protocol PROTOCOL: The TOML file.
    output EVAL: The new file, which keeps everything.
    sign KEY: Private key; the signature of what is sealed is written beside it.
    """
    loaded = Protocol.load(protocol)
    if sign is not None:
        signing.load_key(sign, private=True)  # before anything is written
    with Evaluation.start(output, loaded) as opened:
        if sign is not None:
            signing.sign(output, opened.seal, sign)
        print(f"Sealed in {output}: {loaded}, {loaded.most_trials} trials")
        out.print_rows(opened.seal.items())
    print(f"Send these lines to somebody, then run:  boundwatch evaluate run {output}")


@command(
    group=group,
    example="boundwatch evaluate run eval.db --load './load_policy.sh'\n"
    "boundwatch evaluate run eval.db --page --host 0.0.0.0",
)
def run(
    evaluation: Path,
    *,
    station: str = "1",
    load: str | None = None,
    page: bool = False,
    host: str = "127.0.0.1",
    port: Annotated[int, (0, 65535)] = 8090,
    token: str | None = None,
) -> None:
    """Show the trial to run now, take its outcome with one key, and so on until the end.

    Every outcome is on the disk before the next trial is shown. Leave with q and go on at the same trial.

    Options
    -------
    load COMMAND: Run this before each trial, unseen, with the policy's real name in BOUNDWATCH_POLICY, so
        that nobody has to know it; also BOUNDWATCH_TASK and BOUNDWATCH_SCENE.
    page: Serve a page for a phone instead. Needs the extra `serve`.
    host: With --page: the address to listen on; beyond this machine there is a token in the link.
    port: With --page: the port.
    token: With --page: the token in the link. [default: drawn]
    """
    refuse_if({"--load does not go with --page": page and load is not None})
    if page:
        from boundwatch.evaluation.phones import serve

        serve(evaluation, host=host, port=port, token=token)
        return
    from boundwatch.evaluation.terminal import Terminal

    with Evaluation.open(evaluation) as opened:
        Terminal(opened, station, load=load).run()
        if opened.finished:
            print(f"Now:  boundwatch evaluate report {evaluation} -o report.html")


@command(group=group, example="boundwatch evaluate next eval.db --json --name")
def next_(evaluation: Path, *, station: str = "1", name: bool = False, as_json: bool = False) -> None:
    """Print the trial to run now, for programs: the same until it is recorded, null after the last.

    Options
    -------
    name: Also print the policy's name, for the program that loads it; the report says so.
    """
    with Evaluation.open(evaluation) as opened:
        trial = opened.next(station)
        content = None if trial is None else dataclasses.asdict(trial)
        if content is not None and trial is not None and name:
            opened.unblind_once("names of policies, by a program")
            content["name"] = opened.policy_of(trial)
        said = str(trial or f"no trial: {opened.status['state']}")
        said += f" ({content['name']})" if content is not None and name else ""
        out.print_json(content) if as_json else print(said)


@command(
    group=group,
    example="boundwatch evaluate record eval.db 17 --success\n"
    "boundwatch evaluate record eval.db 18 --no-success --note 'slipped'\n"
    "boundwatch evaluate record eval.db 19 --aborted 'the camera froze'\n"
    "boundwatch evaluate record eval.db --undo 'typed the wrong number'",
)
def record(
    evaluation: Path,
    trial: int | None = None,
    *,
    success: bool | None = None,
    score: float | None = None,
    milestones: str | None = None,
    aborted: str | None = None,
    discarded: str | None = None,
    note: str | None = None,
    undo: str | None = None,
    release: str | None = None,
    stop: str | None = None,
    station: str = "1",
) -> None:
    """Keep the outcome of a trial; it is on the disk when this ends. Twice the same counts once.

    Options
    -------
    trial [TRIAL]: Its number.
    success: Whether it succeeded.
    score S: Its score.
    milestones NAME,NAME: The milestones that it reached; '' for none.
    aborted REASON: Instead: why it was aborted; it counts as the protocol says.
    discarded REASON: Instead: why it is not usable; it counts as the protocol says.
    note TEXT: Anything worth reading in the report; without TRIAL, of the evaluation.
    undo REASON: Without TRIAL: take back the station's latest outcome.
    release REASON: Without TRIAL: let other stations have what this one has not finished.
    stop REASON: Without TRIAL: end before the rule does.
    """
    given = [trial, undo, release, stop, note if trial is None else None]
    one = sum(each is not None for each in given) == 1
    refuse_if({"give either TRIAL with its outcome, or --undo, --release, --stop or --note": not one})
    outcome: dict[str, Any] = {"success": success, "score": score, "aborted": aborted, "discarded": discarded}
    outcome["milestones"] = None if milestones is None else _read("policies", milestones)
    with Evaluation.open(evaluation) as opened:
        if trial is not None:
            opened.record(trial, note=note, **outcome)
        elif undo is not None:
            print(f"took back trial {opened.undo(undo, station)}")
        elif release is not None:
            opened.release(station, release)
        elif stop is not None:
            opened.stop(stop)
        elif note is not None:
            opened.note(note)


@command(group=group, example="boundwatch evaluate show eval.db")
def show(evaluation: Path, *, unblind: bool = False, as_json: bool = False) -> None:
    """Say how far it is, without naming a side: rounds, and "go on" or why it ended.

    Options
    -------
    unblind: Also say what is known by policy, and which letter is which; the report says that you looked.
    """
    with Evaluation.open(evaluation) as opened:
        found = opened.results("show") if unblind else None
        if as_json:
            out.print_json(opened.status | ({} if found is None else found.to_dict()))
            return
        print(f"{opened}, {opened.status['trials']} trials")
        if found is not None:
            out.print_bold(found.answer)
            out.print_table(*found.overall)


@command(group=group, example="boundwatch evaluate report eval.db -o report.html")
def report(evaluation: Path, *, output: Path, sign: Path | None = None, force: bool = False) -> None:
    """Write the report: one HTML page with the answer, every trial, and all that departed from the plan.

    Options
    -------
    output FILE: Where to write the page.
    sign KEY: Private key; the signature of the page is written beside it.
    """
    from boundwatch.evaluation.final_report import render

    files.protect(output, [evaluation, sign], force=force)
    out.require_html(output)
    with Evaluation.open(evaluation) as opened:
        found = opened.results("report")
        files.write_text(output, render(opened))
    if sign is not None:
        signing.sign(output, {"report": files.sha256_file(output)}, sign)
    print(f"Wrote {output}\n{found.answer}")


@command(group=group, example="boundwatch evaluate export eval.db -o trials.csv")
def export(evaluation: Path, *, output: Path, force: bool = False) -> None:
    """Write all trials as a table, which `compare` reads; or the certificate that was asked for.

    Options
    -------
    output FILE: Where to write the CSV; of a certificate, .json.
    """
    files.protect(output, [evaluation], force=force)
    with Evaluation.open(evaluation) as opened:
        found = opened.results("export")
        is_certificate = output.suffix == ".json" and isinstance(found.finding, Certificate)
        files.write_text(output, found.as_csv()) if not is_certificate else found.finding.save(output)
    print(f"Wrote {output}" + ("" if is_certificate else f"; read it with {found.flags}"))


@command(
    group=group,
    example="boundwatch evaluate verify eval.db\n"
    "boundwatch evaluate verify eval.db protocol.toml trials.csv report.html --key lab.pub",
)
def verify(
    evaluation: Path, others: list[Path] | None = None, *, key: Path | None = None, as_json: bool = False
) -> None:
    """Derive everything again from the log, and say what departed from the plan.

    A log that was altered is refused, and so are a protocol, an export or a report that does not follow.

    Options
    -------
    others [FILE]...: The protocol (.toml), an export (.csv), a report (.html).
    key PUB: Public key; refused unless its holder signed what was sealed.
    """
    from boundwatch.evaluation.final_report import check

    with Evaluation.open(evaluation) as opened:
        named, checks = opened.verify(), check(opened, evaluation, others or [], key)
    if as_json:
        out.print_json({"checks": checks, "named": named})
        return
    out.print_rows((f"ok  {name}", detail) for name, detail in checks.items())
    out.print_section("Departures from the plan", named or ["none"])


PARTS["evaluate"] = Group(_HELP, group.keys, group.__getitem__)
