"""The demo's page: self-contained, no scripts, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from boundwatch.demo import pictures
from boundwatch.demo.flow import ALPHA, EXAMPLES, TOTAL, WORLDS, WORSE, Demo
from boundwatch.reporting import page, wording
from boundwatch.reporting.page import Html

BASELINES = ("MSP", "MaxLogit")


def render(demo: Demo) -> str:
    """Return the page."""
    parts = (_opening, _table, _evidence, _worlds, _reading, _provenance)
    sections = [pictures.STYLE, *(section for part in parts for section in part(demo))]
    return page.page("boundwatch demo: a drone among obstacles", sections)


def _opening(demo: Demo) -> Iterator[Html]:
    recipe, certificate = demo.run.recipe, demo.run.certificate
    yield page.heading("A drone among obstacles", level=1)
    yield page.paragraph(
        f"A policy that sees one depth image and chooses one of {demo.run.world.primitives} maneuvers was "
        f"trained on {recipe.prior_environments:,} simulated obstacle fields, certified on "
        f"{recipe.environments:,} others, and then flown {len(demo.visits[0].costs)} times in each of "
        f"{len(demo.visits)} worlds.",
        "lead",
    )
    yield page.paragraph(
        f"The cost of a flight is 0 when it keeps {1000 * recipe.d_thresh:g} mm from every obstacle and "
        "rises to 1 in a collision."
    )
    yield page.heading("What was promised")
    yield page.bullets([*wording.promise(certificate), *wording.basis(certificate)])


def _table(demo: Demo) -> Iterator[Html]:
    names = list(demo.visits[0].findings)
    yield page.heading("What the detectors said")
    head = "<th></th>" + "".join(f"<th>{escape(visit.world)}</th>" for visit in demo.visits)
    means = "".join(f"<td>{visit.costs.mean():.3f}</td>" for visit in demo.visits)
    body = f"<tr><th>mean cost</th>{means}</tr>" + "".join(_row(demo, name) for name in names)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    yield Html(f'<div class="scroll">{table}</div>')
    yield page.bullets(f"{world}: {text}" for world, text in WORLDS.items())
    yield page.paragraph(
        "If a world is not worse, the tests, the intervals and the sequential test call it ADVERSE with "
        f"probability at most {TOTAL:g}; if it is worse, BENIGN with probability at most {TOTAL:g}. Both "
        "include the certificate's own delta."
        " The sequential test may be read after every trial, the others once. MSP and "
        "MaxLogit watch the network's confidence: they carry no guarantee, cannot say BENIGN, and cannot see "
        f"the wind. Two worlds ({' and '.join(sorted(WORSE))}) were made to be worse than training, the "
        "others were not. ADVERSE for a world that is not worse is marked as a false alarm, and within "
        "for one that is, as missed."
    )


def _row(demo: Demo, name: str) -> str:
    cells = "".join(_cell(visit.findings[name]["verdict"], visit.world in WORSE) for visit in demo.visits)
    mark = "<br><small>no guarantee</small>" if name in BASELINES else ""
    return f"<tr><th>{escape(name)}{mark}</th>{cells}</tr>"


def _cell(verdict: str, worse: bool) -> str:
    wrong = {("adverse", False): "false alarm", ("within", True): "missed", ("benign", True): "wrong"}
    mark = wrong.get((verdict, worse))
    said = verdict if verdict == "within" else verdict.upper()
    return f'<td class="{verdict}">{said}{"" if mark is None else f"<small>{mark}</small>"}</td>'


def _evidence(demo: Demo) -> Iterator[Html]:
    yield page.heading("Evidence over trials")
    worse = [(visit.world, visit.e_adverse) for visit in demo.visits]
    better = [(visit.world, visit.e_benign) for visit in demo.visits]
    for label, series in (("that the world is worse", worse), ("that it is not", better)):
        yield page.figure(
            pictures.draw_evidence(series, 1 / ALPHA, f"Evidence {label}, over trials"),
            f"Evidence {label}: the sequential test's e-value, which may be read after every trial. It "
            f"alarms at {1 / ALPHA:g}, the dashed line.{pictures.clipping(series)}",
        )


def _worlds(demo: Demo) -> Iterator[Html]:
    scene = demo.run.world.scene
    yield page.heading("Flights")
    yield page.paragraph(
        f"{EXAMPLES} of the {len(demo.visits[0].costs)} trials in each world, chosen by cost: a quarter, "
        "half and three quarters of the trials cost less or the same. From above, the drone starts at the "
        "bottom. The thick line is the maneuver that it flew, the thin ones are those that it did not "
        "choose, and a cross marks a collision. All lines go on beyond the upper edge. Below is the depth "
        "image that the policy saw: the stronger the color, the nearer."
    )
    for visit in demo.visits:
        yield page.heading(visit.world, level=3)
        figures = []
        seen = visit.environments
        for number, trial in enumerate(visit.shown.tolist()):
            cost = visit.costs[trial]
            flight = pictures.draw_flight(
                seen.obstacles[number],
                seen.flights[number],
                int(visit.chosen[trial]),
                (scene.obstacle_radius, scene.drone_radius),
                collided=bool(cost >= 1),
            )
            depth = pictures.draw_depth(seen.images[number], scene.depth_range)
            caption = f"trial {trial + 1}: cost {cost:.2f}{', collision' if cost >= 1 else ''}"
            figures.append(page.figure(Html(flight + depth), caption))
        yield page.box("worlds", figures)


def _reading(_demo: Demo) -> Iterator[Html]:
    yield page.heading("How to read it")
    yield page.bullets(
        [
            "within means no evidence of a shift; not that nothing changed, nor that the world is safe.",
            "The rates are those of the procedure, over all its uses; they are not the probability that a "
            "verdict is wrong once it is given.",
            "Worlds, detectors, levels and the number of trials were fixed before any flight.",
        ]
    )


def _provenance(demo: Demo) -> Iterator[Html]:
    certificate = demo.run.certificate
    yield page.heading("Provenance")
    policy = ("policy, SHA-256", str(certificate.provenance.policy_sha256))
    seed = ("seed", str(demo.run.recipe.seed))
    yield page.rows([("certificate", certificate.fingerprint), policy, seed], code=True)
