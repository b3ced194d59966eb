"""Writes the files in tests/readers/harness with the harnesses' own writers, where both are installed.

inspect-robots 0.60.0 (MIT) and vla-eval 0.8.0 (Apache-2.0), both from PyPI; boundwatch needs neither::

    python -m venv harness && harness/bin/pip install inspect-robots==0.60.0 vla-eval==0.8.0
    harness/bin/python tools/record_harnesses.py
"""

import contextlib
import json
import sqlite3
import tempfile
from pathlib import Path

import inspect_robots as robots
from inspect_robots.errors import EmbodimentFault, PolicyError
from inspect_robots.mock import CubePickEmbodiment, ScriptedPolicy
from inspect_robots.scorer import operator_scorer, success_at_end
from inspect_robots.transcript import operator_event
from vla_eval.recording import EpisodeRecorder, RecordingStore
from vla_eval.results import ResultCollector
from vla_eval.results.export import export_db

HERE = Path(__file__).parents[1] / "tests" / "readers" / "harness"


class Policy(ScriptedPolicy):
    """Reaches the cube, but never in the scene `far`; an error in the second trial of all."""

    trial = -1

    def reset(self, scene):
        """Begin a trial."""
        self.scene, self.trial = scene.id, self.trial + 1
        return super().reset(scene)

    def act(self, observation):
        """Return the next actions."""
        if self.trial == 1:
            raise PolicyError("the model server is gone")
        chunk = super().act(observation)
        if self.scene == "far":
            for action in chunk.actions:
                action.data[:] = 0
        return chunk


class Embodiment(CubePickEmbodiment):
    """Breaks in the scene `broken`."""

    def reset(self, scene, *, seed=None):
        """Prepare a scene."""
        if scene.id == "broken":
            raise EmbodimentFault("joint 3 does not answer")
        return super().reset(scene, seed=seed)


class Grader:
    """A person judges, in the scene `left` a model does, and the last trial of `near` is skipped."""

    name = "operator"

    def grade(self, record, scene):
        """Keep a verdict and its source."""
        if (scene.id, record.epoch) == ("near", 2):
            return
        record.operator_judgement = "success" if record.terminated else "failure"
        source = "vlm" if scene.id == "left" else "prompt"
        record.events.append(operator_event(len(record.steps), record.operator_judgement, source))


def evaluate(name, scenes):
    """Write the log of three trials in each scene."""
    task = robots.Task(
        name="cubes",
        scenes=[robots.Scene(id=scene, instruction="reach the cube") for scene in scenes],
        scorer=[success_at_end(), operator_scorer()],
        epochs=3,
        max_steps=30,
    )
    with tempfile.TemporaryDirectory() as folder:
        robots.eval(task, Policy(), Embodiment(), log_dir=folder, store_actions=False, grader=Grader())
        (log,) = Path(folder).glob("*.json")
        (HERE / name).write_text(log.read_text())


def record():
    """Write results of two tasks, and the recording of two benchmarks, one trial of which ran twice."""
    outcomes = {"mug": [True, True, False, True], "bowl": [False, True, None, False]}
    collector = ResultCollector("libero", metric_keys={"success": "mean"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording-r1.sqlite"
        store = RecordingStore(path)
        for benchmark in ("libero", "simpler"):
            metadata = {"benchmark": benchmark, "mode": "sync", "metric_keys": {"success": "mean"}}
            store.upsert_eval_metadata(f"r1-{benchmark}", benchmark, metadata | {"harness_version": "0.8.0"})
        runs = [(task, episode, ok) for task, each in outcomes.items() for episode, ok in enumerate(each)]
        for number, (task, episode, ok) in enumerate([("mug", 1, None), *runs]):
            errors = {} if ok is not None else {"failure_reason": "env_step", "failure_detail": "timeout"}
            result = {"episode_id": episode, "metrics": {"success": bool(ok)}, **errors}
            if number:  # the first is run again
                collector.record(task, result | ({} if errors else {"steps": 10, "elapsed_sec": 0.5}))
            for benchmark in ("libero", "simpler") if task == "mug" else ("libero",):
                recorder = EpisodeRecorder(
                    store=store,
                    sid="s",
                    eid=f"{benchmark}-{number}",
                    eval_id=f"r1-{benchmark}",
                    output_dir=folder,
                    filename_stem=f"{number}",
                    context={"task_idx": list(outcomes).index(task), "episode_idx": episode},
                )
                status = "error" if errors else "success" if ok else "fail"
                recorder.close(status=status, task_name=task, **result)
        export_db(path, Path(folder))
        aggregate = json.loads((Path(folder) / "libero_aggregate.json").read_text())
        (HERE / "vla_eval_aggregate.json").write_text(json.dumps(aggregate, indent=2))
        with contextlib.closing(sqlite3.connect(path)) as own:
            own.execute("PRAGMA page_size = 512")
            own.execute("VACUUM")  # fewer empty pages to keep
        (HERE / "vla_eval.sqlite").write_bytes(path.read_bytes())
    (HERE / "vla_eval.json").write_text(collector.to_json({"params": {"seed": 7}}))


if __name__ == "__main__":
    evaluate("inspect_robots.json", ["left", "right", "near", "far"])
    evaluate("inspect_robots_halted.json", ["left", "right", "broken", "far"])
    record()
