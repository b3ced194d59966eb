"""The page: what we lose first, one table, one figure, and every world's numbers."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.strangers.tasks import USUAL
from boundwatch._support.files import one_page, write_text

OURS = "boundwatch"
ROOT = Path(__file__).parents[2]
PAGE, FIGURE = ROOT / "docs" / "strangers.md", ROOT / "docs" / "assets" / "strangers.png"
WORLDS = FIGURE.with_name("strangers-worlds.csv")
RESULTS = ROOT / "benchmarks" / "results.json"
NO_BREAK = "\N{NO-BREAK SPACE}"
STANDARD_ERRORS = 3.0  # a world hurts if its failure rate is so far above the usual one


def rise(task: dict[str, Any], world: str) -> tuple[float, float]:
    """Return by how much a world's failure rate exceeds the usual one, and the standard error of that."""
    here, there = task["worlds"][world], task["worlds"][USUAL.name]
    variances = [
        max(w["failure_rate"] * (1 - w["failure_rate"]), 1 / w["episodes"]) / w["episodes"]
        for w in (here, there)
    ]
    return here["failure_rate"] - there["failure_rate"], math.sqrt(sum(variances))


def kind(task: dict[str, Any], world: str) -> str:
    """Return what a world is by its episodes: usual, harmless, weak, strong, or not as chosen."""
    if world == USUAL.name:
        return USUAL.name
    chosen, (more, error) = task["worlds"][world]["chosen"], rise(task, world)
    if more > STANDARD_ERRORS * error:
        return "unexpected" if chosen == "no" else chosen
    return "harmless" if chosen == "no" else "unexpected"


def cells(results: dict[str, Any], wanted: str) -> list[tuple[dict[str, Any], list[str]]]:
    """Return, task by task, the worlds of a kind."""
    return [
        (task, [world for world in task["worlds"] if kind(task, world) == wanted])
        for task in results["tasks"]
    ]


def mean_over_tasks(
    results: dict[str, Any], detector: str, size: str, wanted: str, value: str
) -> tuple[float, float]:
    """Return the mean over tasks of the mean over a task's worlds of a kind, and its standard error.

    Tasks have pools of their own, so the error covers the draw of the pools, too.
    """
    means = [
        np.mean([task["detectors"][detector][size]["worlds"][world][value] for world in worlds])
        for task, worlds in cells(results, wanted)
        if worlds
    ]
    if not means:
        return math.nan, math.nan
    error = float(np.std(means, ddof=1) / math.sqrt(len(means))) if len(means) > 1 else math.nan
    return float(np.mean(means)), error


def headline(results: dict[str, Any]) -> str:
    """Return the table of detectors."""
    lines = [
        "| detector | reference | false alarms, usual | alarms, looks different | weak: trials | found "
        "| strong: trials |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in results["tasks"][0]["detectors"]:
        for size in map(str, results["references"]):

            def share(wanted: str, digits: int, name: str = name, size: str = size) -> str:
                mean, error = mean_over_tasks(results, name, size, wanted, "found")
                return f"{100 * mean:.{digits}f} ± {100 * error:.{digits}f} %".replace(" ", NO_BREAK)

            def trials(wanted: str, name: str = name, size: str = size) -> str:
                mean, error = mean_over_tasks(results, name, size, wanted, "trials")
                return f"{mean:.0f} ± {error:.0f}".replace(" ", NO_BREAK)

            bold = "**" if name == OURS else ""
            lines.append(
                f"| {bold}{name}{bold} | {int(size):,} | {share(USUAL.name, 1)} | {share('harmless', 1)} "
                f"| {trials('weak')} | {share('weak', 0)} | {trials('strong')} |"
            )
    return "\n".join(lines)


def losses(results: dict[str, Any]) -> str:
    """Return where others are earlier than we are, most losses first."""
    lines = []
    sizes = [str(size) for size in results["references"]]
    for name in results["tasks"][0]["detectors"]:
        if name == OURS:
            continue
        parts, worst = [], (0.0, "")
        for size in sizes:
            lost, of = 0, 0
            for task in results["tasks"]:
                for world in task["worlds"]:
                    if kind(task, world) not in ("weak", "strong"):
                        continue
                    of += 1
                    ours, theirs = (task["detectors"][one][size]["worlds"][world] for one in (OURS, name))
                    gap = ours["trials"] - theirs["trials"]
                    if gap > 2 * math.hypot(ours["error"], theirs["error"]):
                        lost += 1
                        told = f"{theirs['trials']:.0f} trials, ours {ours['trials']:.0f} ("
                        worst = max(worst, (gap, told + f"{task['task']}, {world}, {int(size):,})"))
            parts.append((lost, of, size))
        lines.append((sum(part[0] for part in parts), name, parts, worst[1]))
    told = []
    for total, name, parts, example in sorted(lines, key=lambda line: -line[0]):
        if total:
            counts = ", ".join(f"{lost} of {of} with {int(size):,}" for lost, of, size in parts)
            told.append(f"- **{name}**: {counts}; widest gap: {example}.")
    never = [name for total, name, *_ in lines if not total]
    if never:
        told.append(f"- **{' and '.join(never)}**: none.")
    return "\n".join(told)


def tasks_table(results: dict[str, Any]) -> str:
    """Return the table of tasks: what fails there, and how often in the usual world."""
    lines = ["| task | from | failure | failures |", "|---|---|---|---|"]
    for task in results["tasks"]:
        rate = f"{100 * task['worlds'][USUAL.name]['failure_rate']:.1f} %".replace(" ", NO_BREAK)
        lines.append(f"| {task['task']} | {task['package']} | {task['failure']} | {rate} |")
    return "\n".join(lines)


def worlds_table(results: dict[str, Any]) -> str:
    """Return every world as CSV, for the largest reference: trials, or shares where nothing got worse."""
    names = list(results["tasks"][0]["detectors"])
    size = str(max(results["references"]))
    lines = [["task", "world", "failures", *names]]
    for task in results["tasks"]:
        for world, about in task["worlds"].items():
            found = kind(task, world)
            mark = {"unexpected": " (not as chosen)"}.get(found, "")
            cells = [task["detectors"][name][size]["worlds"][world] for name in names]
            harmless = found in (USUAL.name, "harmless")
            entries = [
                f"{100 * cell['found']:.0f} %" if harmless else f"{cell['trials']:.0f} ± {cell['error']:.0f}"
                for cell in cells
            ]
            lines.append([task["task"], f"{world}{mark}", f"{100 * about['failure_rate']:.1f} %", *entries])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "losses": losses,
    "detectors": headline,
    "tasks": tasks_table,
}


def filled(page: str, results: dict[str, Any]) -> str:
    """Return a page with the parts between its marks made from the results."""
    for name, make in PARTS.items():
        begin, end = f"<!-- {name} -->\n\n", f"\n\n<!-- end of {name} -->"
        head, rest = page.split(begin)
        page = head + begin + make(results) + end + rest.split(end)[1]
    return page


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw trials against the rise of the failure rate, and alarms where nothing got worse."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = list(results["tasks"][0]["detectors"])
    size = str(max(results["references"]))
    figure, axes = plt.subplots(
        2, len(names), figsize=(2.05 * len(names), 5.0), sharex="row", sharey="row",
        gridspec_kw={"height_ratios": (3, 1.6)}, layout="constrained",
    )  # fmt: skip

    def points(name: str, *wanted: str) -> np.ndarray:
        found = [
            (100 * rise(task, world)[0], task["detectors"][name][size]["worlds"][world]["trials"])
            for task in results["tasks"]
            for world in task["worlds"]
            if kind(task, world) in wanted
        ]
        return np.array(found).reshape(-1, 2).T

    for column, name in enumerate(names):
        top, bottom = axes[:, column]
        if name != OURS:
            top.scatter(*points(OURS, "weak", "strong"), s=14, color="0.8")
        color = "#0072b2" if name == OURS else "#d55e00"
        for wanted, marker in (("weak", "o"), ("strong", "^")):
            top.scatter(*points(name, wanted), s=22, marker=marker, facecolor="none", edgecolor=color)
        top.set_title(name.replace(" ", "\n", 1), fontsize=9)
        top.set_yscale("log")
        top.set_ylim(1, 1.15 * results["horizon"])
        top.set_xlabel("rise of failures, points", fontsize=8)
        for place, wanted in ((0, USUAL.name), (1, "harmless")):
            shares = [
                task["detectors"][name][size]["worlds"][world]["found"]
                for task, worlds in cells(results, wanted)
                for world in worlds
            ]
            spread = place + np.linspace(-0.2, 0.2, len(shares))
            bottom.scatter(spread, shares, s=16, facecolor="none", edgecolor=color)
        bottom.axhline(results["level"], color="black", linewidth=0.8, linestyle="--")
        bottom.set_xticks([0, 1], ["usual\nworld", "looks\ndifferent"], fontsize=8)
        bottom.set_xlim(-0.5, 1.5)
        bottom.set_ylim(-0.04, 1.04)
    axes[0, 0].set_ylabel(f"mean trials to the alarm\n(counted to {results['horizon']})")
    axes[1, 0].set_ylabel("streams with\na false alarm")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def write(results: dict[str, Any], folder: Path) -> Path:
    """Write results, figure and tables into a folder; return the page."""
    write_text(folder / "results.json", one_page(results) + "\n")
    draw(results, folder / "strangers.png")
    page = folder / "strangers.md"
    write_text(page, "\n\n".join(make(results) for make in PARTS.values()) + "\n")
    write_text(folder / WORLDS.name, worlds_table(results))
    return page


def publish(results: dict[str, Any]) -> None:
    """Write the results where the repository keeps them, and the page's tables and figure."""
    everything = json.loads(RESULTS.read_text()) | {"strangers": results}
    RESULTS.write_text(json.dumps(everything, indent=1, allow_nan=False) + "\n")
    PAGE.write_text(filled(PAGE.read_text(), results))
    write_text(WORLDS, worlds_table(results))
    draw(results, FIGURE)
