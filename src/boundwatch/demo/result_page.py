"""The demo's page: self-contained, no scripts, light and dark."""

from __future__ import annotations

from boundwatch.demo import drawings
from boundwatch.demo.flow import ALPHA, EXAMPLES, TOTAL, WORLDS, WORSE, Demo, Visit
from boundwatch.reporting import page, wording
from boundwatch.reporting.families import name_first
from boundwatch.reporting.page import Html

_READING = (
    "within means no evidence of a shift; not that nothing changed, nor that the world is safe.",
    "The rates are those of the procedure, over all its uses; they are not the probability that a "
    "verdict is wrong once it is given.",
    "Worlds, detectors, levels and the number of trials were fixed before any flight.",
)


def render(demo: Demo) -> str:
    """Return the page."""
    recipe, certificate, visits = demo.run.recipe, demo.run.certificate, demo.visits
    trials = len(visits[0].costs)
    provenance = {
        "certificate": certificate.fingerprint,
        "policy, SHA-256": certificate.provenance.policy_sha256,
        "seed": recipe.seed,
    }
    sections = [
        drawings.STYLE,
        page.heading("A drone among obstacles", level=1),
        page.paragraph(
            f"A policy that sees one depth image and chooses one of {demo.run.world.primitives} maneuvers "
            f"was trained on {recipe.prior_environments:,} simulated obstacle fields, certified on "
            f"{recipe.environments:,} others, and then flown {trials} times in each of {len(visits)} worlds.",
            "lead",
        ),
        page.paragraph(
            f"The cost of a flight is 0 when it keeps {1000 * recipe.d_thresh:g} mm from every obstacle and "
            "rises to 1 in a collision."
        ),
        page.heading("What was promised"),
        page.bullets([*wording.promise(certificate), *wording.basis(certificate)]),
        page.heading("What the detectors said"),
        page.table(*name_first(demo.table())),
        page.bullets(f"{world}: {text}" for world, text in WORLDS.items()),
        page.paragraph(
            "If a world is not worse, the tests, the intervals and the sequential test call it ADVERSE with "
            f"probability at most {TOTAL:g}; if it is worse, BENIGN with probability at most {TOTAL:g}. Both "
            "include the certificate's own delta. The sequential test may be read after every trial, the "
            f"others once. Two worlds ({' and '.join(sorted(WORSE))}) were made to be worse than training, "
            "the others were not. ADVERSE for a world that is not worse is marked as a false alarm, and "
            "within for one that is, as missed."
        ),
        page.heading("Evidence over trials"),
        _evidence("that the world is worse", [(visit.world, visit.e_adverse) for visit in visits]),
        _evidence("that it is not", [(visit.world, visit.e_benign) for visit in visits]),
        page.heading("Flights"),
        page.paragraph(
            f"{EXAMPLES} of the {trials} trials in each world, chosen by cost: a quarter, "
            "half and three quarters of the trials cost less or the same. From above, the drone starts at "
            "the bottom. The thick line is the maneuver that it flew, the thin ones are those that it did "
            "not choose, and a cross marks a collision. All lines go on beyond the upper edge. Below is the "
            "depth image that the policy saw: the stronger the color, the nearer."
        ),
    ]
    for visit in visits:
        sections += [page.heading(visit.world, level=3), _flights(demo, visit)]
    sections += [page.heading("How to read it"), page.bullets(_READING)]
    sections += [page.heading("Provenance"), page.rows(provenance.items(), code=True)]
    return page.page("boundwatch demo: a drone among obstacles", sections)


def _evidence(label: str, series: list[tuple[str, list[float]]]) -> Html:
    return page.figure(
        drawings.draw_evidence(series, 1 / ALPHA, f"Evidence {label}, over trials"),
        f"Evidence {label}: the sequential test's e-value, which may be read after every trial. It "
        f"alarms at {1 / ALPHA:g}, the dashed line.{drawings.clipping(series)}",
    )


def _flights(demo: Demo, visit: Visit) -> Html:
    scene, seen, figures = demo.run.world.scene, visit.environments, []
    radii = scene.obstacle_radius, scene.drone_radius
    for number, trial in enumerate(visit.shown.tolist()):
        cost, places = visit.costs[trial], (seen.obstacles[number], seen.flights[number])
        flight = drawings.draw_flight(*places, int(visit.chosen[trial]), radii, collided=bool(cost >= 1))
        depth = drawings.draw_depth(seen.images[number], scene.depth_range)
        caption = f"trial {trial + 1}: cost {cost:.2f}{', collision' if cost >= 1 else ''}"
        figures.append(page.figure(Html(flight + depth), caption))
    return page.box("worlds", figures)
