"""boundwatch selftest: the advertised error rates, simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_0, AT_LEAST_1
from boundwatch.cli.root import command


@command(example="boundwatch selftest certificate.json")
def selftest(
    certificate: Path,
    *,
    alpha_adverse: float = 0.05,
    alpha_benign: float = 0.05,
    runs: Annotated[int, AT_LEAST_1] = 6000,
    seed: Annotated[int, AT_LEAST_0] = 0,
    as_json: bool = False,
) -> None:
    """Simulate the error rates and compare them with the promises.

    It uses the worlds where a promise is hardest to keep: detectors that look once or after every
    episode, with every tail, limits and margin; fleets, also with streams that restart; comparisons,
    tasks, rankings and predictions. The certificate's limits are taken as true; those of a held-out one
    are also tested over new draws of its trials. The levels are those of `check` unless you say
    otherwise. It takes a few minutes; `--runs 600` is ten times as fast and sees less. Exits with 1 if a
    promise is broken.

    Options
    -------
    alpha_adverse P: Level of ADVERSE.
    alpha_benign P: Level of BENIGN.
    runs N: Simulated datasets per promise.
    seed SEED: For the simulation.
    """
    from boundwatch.selftest.simulation import simulate_promises  # with scipy.stats, which takes a second

    loaded = Certificate.load(certificate)
    promises = simulate_promises(
        loaded, alpha_adverse=alpha_adverse, alpha_benign=alpha_benign, runs=runs, seed=seed
    )
    broken = [promise for promise in promises if not promise.kept]
    if as_json:
        out.print_json({"kept": not broken, "promises": [promise.to_dict() for promise in promises]})
    else:
        print(f"{'detector':<48}{'wrong':<9}{'in the world':<40}{'promised':>9}{'simulated':>11}")
        for promise in promises:
            print(
                f"{promise.detector:<48}{promise.verdict.name:<9}{promise.world:<40}{promise.promised:>9.4f}"
                f"{promise.rate:>11.4f}  [{promise.low:.4f}, {promise.high:.4f}]  "
                f"{'kept' if promise.kept else 'BROKEN'}"
            )
        worst = max(promise.sees / promise.promised for promise in promises)
        print(
            f"\n{len(promises)} promises, {runs} simulations each (fewer for the change-detector, more for "
            f"certified limits); {len(broken)} broken. 95 % intervals; BROKEN means a chance below 1e-6."
        )
        print(
            f"So many runs notice, with probability 99 %, any rate of {worst:.2f} times its promise or more; "
            "a smaller excess may go unseen."
        )
    if broken:
        out.print_bold(f"boundwatch: broken promises: {len(broken)}; do not rely on them", err=True)
        raise SystemExit(1)
