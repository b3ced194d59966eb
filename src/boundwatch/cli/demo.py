"""boundwatch demo: the whole flow on the drone, with a report."""

from __future__ import annotations

from pathlib import Path

from boundwatch._support.files import write_text
from boundwatch.cli import output as out
from boundwatch.cli.root import command


@command(example="boundwatch demo\nboundwatch demo -o my-demo --json")
def demo(*, output: Path = Path("demo"), as_json: bool = False) -> None:
    """Certify a drone, fly it in five worlds, and judge each.

    The command first trains the drone, then runs every detector. It takes half a minute on two free cores, a
    minute or more on busy ones. Writes a report with pictures, the certificate, the policy, and the costs of
    every world. Needs the extra `train`.

    Options
    -------
    output FOLDER: Where to write.
    """
    import boundwatch.training  # noqa: F401  (says which extra is missing if torch is)
    from boundwatch.demo.flow import TOTAL, run_demo
    from boundwatch.demo.result_page import render

    finished = run_demo(output)
    write_text(output / "report.html", render(finished))
    if as_json:
        out.print_json(finished.to_dict() | {"report": str(output / "report.html")})
        return
    certificate = finished.run.certificate
    print(
        f"Certified: expected cost from {certificate.lower:.3f} to {certificate.upper:.3f} "
        f"(wrong with probability at most {certificate.delta:g}), from {certificate.n} flights\n"
    )
    out.print_table(*finished.table())
    note = (
        "ADVERSE for a world that is not worse, and BENIGN for one that is, each come with probability at "
        f'most {TOTAL:g}; within means no evidence of a shift, not "safe".'
    )
    out.print_section("Note", [note], bullet="- ")
    print("\nNext")
    for line in (
        f"open {output / 'report.html'}",
        f"boundwatch show {output / 'run' / 'certificate.json'}",
        f"boundwatch check {output / 'run' / 'certificate.json'} {output / 'costs' / 'harder.csv'}",
    ):
        print(f"  {line}")  # unwrapped: it is to be copied
