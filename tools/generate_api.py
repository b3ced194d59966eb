"""Write ``docs/api.md``, a table to scan and the reference behind it: ``python tools/generate_api.py``."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "api.md"

INTRODUCTION = """\
# Python reference

<!-- Written by tools/generate_api.py from docstrings. Change those or the generator, not this page. -->

`import boundwatch as bw`. What needs an extra is imported when you use it, and says which extra is missing.
"""

# A name without a dot is one of `bw`; the others are found by their path.
SECTIONS: dict[str, list[str]] = {
    "Certify": ["Certificate", "Campaign", "JudgedCampaign", "CertificateFamily", "Provenance"],
    "Read episodes": ["read_costs", "Episodes", "Measure", "Design"],
    "Look once": ["HypothesisTest", "ConfidenceInterval", "Finding", "Verdict"],
    "Look after every episode": [
        "SequentialTest",
        "ChangeDetector",
        "PredictedTest",
        "JudgedTest",
    ],
    "Several tasks, many robots": [
        "FamilyTest",
        "FamilyFinding",
        "Fleet",
        "Client",
    ],
    "Compare policies": [
        "compare_once",
        "PolicyComparison",
        "ComparisonFinding",
        "ComparedTasks",
        "ComparisonVerdict",
        "rank",
        "Ranking",
    ],
    "Run an evaluation": ["Protocol", "Evaluation", "boundwatch.evaluation.Trial"],
    "Plan": [
        "plan",
        "Plan",
        "plan_trials",
        "TrialPlan",
        "plan_width",
        "WidthPlan",
        "plan_comparison",
        "ComparisonPlan",
    ],
    "Audit a judge": ["Audit", "AuditFinding"],
    "Gymnasium": [
        "boundwatch.gym.rollout",
        "boundwatch.gym.first_observations",
        "boundwatch.gym.watch",
        "boundwatch.gym.Episode",
    ],
    "Predict costs": [
        f"boundwatch.prediction.{name}"
        for name in (
            "train_critic",
            "Twin",
            "value_function",
            "calibrate",
            "Predictor",
            "SceneWatch",
            "SceneNotice",
        )
    ],
    "Gates for tests": [
        "boundwatch.testing.assert_not_adverse",
        "boundwatch.testing.assert_no_worse",
        "boundwatch.testing.assert_not_worse_than",
    ],
    "Train": [
        f"boundwatch.training.{name}"
        for name in (
            "GaussianPosterior",
            "train_prior",
            "train_backprop",
            "train_evolution",
            "certify",
            "Rollouts",
            "TrainingCosts",
            "History",
            "LatentPolicy",
            "load_policy",
            "save_policy",
            "check_disjoint",
            "environment_hash",
        )
    ],
    "Figures and reports": ["boundwatch.reporting.plots", "boundwatch.reporting.report.render_report"],
    "Bounds and errors": ["boundwatch.bounds", "boundwatch.errors"],
}


def render() -> str:
    """Return the page."""
    lines = [INTRODUCTION]
    for section, names in SECTIONS.items():
        paths = [name if "." in name else f"boundwatch.{name}" for name in names]
        links = [f"[`{path.removeprefix('boundwatch.')}`][{path}]" for path in paths]
        lines.append(f"**{section}**: {', '.join(links)}\n")
    for section, names in SECTIONS.items():
        lines.append(f"## {section}\n")
        lines += [f"::: {name if '.' in name else f'boundwatch.{name}'}\n" for name in names]
    return "\n".join(lines)


def listed() -> set[str]:
    """Return the names of `bw` that the page lists."""
    return {name.removeprefix("boundwatch.") for names in SECTIONS.values() for name in names}


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    print("wrote docs/api.md")
