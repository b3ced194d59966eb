"""Same inputs, same bytes: whatever the workers, the process, and the moment somebody pulled the plug."""

import os
import signal
import time

import numpy as np
import pytest
import torch

from boundwatch.errors import InvalidSetting, ProvenanceMismatch, SchemaMismatch
from boundwatch.training import History, tensorfile, train_backprop, train_evolution
from processes import PROCESSES
from training import apart
from training.apart import STEPS
from training.toy import Simulator, posterior, surrogate, targets


def test_same_bytes_on_one_or_two_workers_in_two_processes(tmp_path):
    other = PROCESSES.Process(target=apart.write_hashes, args=(tmp_path / "hashes",))
    other.start()
    here = apart.hashes(threads=1, processes=2)
    other.join()
    assert here == (tmp_path / "hashes").read_text().split()
    assert len(set(here)) == 4  # two algorithms, two seeds


def start(algorithm, folder):
    process = PROCESSES.Process(target=apart.train_in, args=(algorithm, folder))
    process.start()
    return process


def wait_for_change(path, process):
    """Wait until a checkpoint is written anew, or the process ends."""
    before = path.stat().st_mtime_ns if path.exists() else None
    while process.is_alive() and (not path.exists() or path.stat().st_mtime_ns == before):
        time.sleep(0.002)


def steps_in(path):
    return int(tensorfile.load(path)[1]["step"])


@pytest.mark.parametrize("algorithm", ["backprop", "evolution"])
def test_killed_at_any_moment_it_ends_with_the_same_bytes(algorithm, tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "whole").mkdir()
    whole = start(algorithm, tmp_path / "whole")
    reached = []
    for _ in range(2):
        process = start(algorithm, tmp_path)
        wait_for_change(tmp_path / "checkpoint", process)
        time.sleep(rng.uniform(0, 0.08))  # somewhere in the next few steps, or while writing
        process.kill()
        process.join()
        reached.append(steps_in(tmp_path / "checkpoint"))
    assert reached == sorted(reached)
    assert 0 < reached[0] < STEPS, "killed too late to show anything"
    start(algorithm, tmp_path).join()
    whole.join()
    assert (tmp_path / "posterior").read_bytes() == (tmp_path / "whole" / "posterior").read_bytes()
    assert (tmp_path / "checkpoint").read_bytes() == (tmp_path / "whole" / "checkpoint").read_bytes()


def test_ctrl_c_leaves_a_checkpoint_and_says_so(tmp_path):
    process = start("waiting", tmp_path)
    wait_for_change(tmp_path / "checkpoint", process)
    os.kill(process.pid, signal.SIGINT)
    process.join()
    assert process.exitcode != 0
    text = (tmp_path / "errors").read_text()
    done = steps_in(tmp_path / "checkpoint")
    assert f"interrupted after step {done} of {STEPS}: {tmp_path / 'checkpoint'} holds it; run" in text


def interrupting(after, error=KeyboardInterrupt):
    """Return a surrogate that behaves as if Ctrl-C were pressed after so many calls, or as told."""
    calls = []

    def surrogate_then_interrupt(policy, environments):
        calls.append(1)
        if len(calls) > after:
            raise error
        return surrogate(policy, environments)

    return surrogate_then_interrupt


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_the_same_call_continues(error, tmp_path, capsys):
    """Interrupted again and again, on the same object, as in a notebook, or on another that is equal."""
    data, options = (targets(30, 0),), {"samples": 1, "steps": 20, "checkpoint_every": 100}
    whole, stopped, fresh, elsewhere = (posterior() for _ in range(4))
    history = train_backprop(whole, surrogate, data, **options)
    options["checkpoint"] = tmp_path / "c"
    for after, done in ((7, 7), (0, 7), (5, 12)):
        with pytest.raises(error):
            train_backprop(stopped, interrupting(after, error), data, **options)
        assert steps_in(tmp_path / "c") == done
        assert (f"after step {done} of 20" in capsys.readouterr().err) == (error is KeyboardInterrupt)
    with pytest.raises(ProvenanceMismatch):
        train_backprop(stopped, surrogate, data, **options | {"seed": 1})
    elsewhere.move(elsewhere.mean + 0.1, elsewhere.log_variance)
    with pytest.raises(ProvenanceMismatch):
        train_backprop(elsewhere, surrogate, data, **options)
    for each in (stopped, stopped, fresh):  # after the first there is nothing left to do
        assert train_backprop(each, surrogate, data, **options) == history
        assert each.sha256() == whole.sha256()


def test_an_interrupt_in_the_middle_of_a_step_takes_it_back(tmp_path, monkeypatch):
    options = {"samples": 1, "steps": 5, "checkpoint": tmp_path / "c"}
    stopped = posterior()
    append = History.append

    def interrupted(self, **numbers):
        append(self, **numbers)
        if len(self) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(History, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train_backprop(stopped, surrogate, (targets(30, 0),), **options)
    assert steps_in(tmp_path / "c") == 2
    train_backprop(stopped, surrogate, (targets(30, 0),), **options)
    whole = posterior()
    train_backprop(whole, surrogate, (targets(30, 0),), samples=1, steps=5)
    assert stopped.sha256() == whole.sha256()


def test_a_training_that_fails_in_its_first_step_leaves_nothing_behind(tmp_path):
    data, options = (targets(30, 0),), {"samples": 1, "steps": 2, "checkpoint": tmp_path / "c"}
    with pytest.raises(RuntimeError):
        train_backprop(posterior(), interrupting(0, RuntimeError), data, **options)
    train_backprop(posterior(), surrogate, data, **options | {"learning_rate": 0.1})


def test_more_steps_continue_and_fewer_are_refused(tmp_path):
    data = Simulator(targets(30, 0))
    whole, first, second = posterior(), posterior(), posterior()
    train_evolution(whole, data, steps=10)
    train_evolution(first, data, steps=6, checkpoint=tmp_path / "c")
    train_evolution(second, data, steps=10, checkpoint=tmp_path / "c")
    assert second.sha256() == whole.sha256() != first.sha256()
    with pytest.raises(InvalidSetting, match="steps = 6 is below the 10"):
        train_evolution(posterior(), data, steps=6, checkpoint=tmp_path / "c")


OTHER = {"seed": 1, "learning_rate": 0.1, "delta": 0.02, "bound": "kl", "samples": 4, "batch_size": 8}


@pytest.mark.parametrize("change", [{name: value} for name, value in OTHER.items()])
def test_a_checkpoint_of_another_training_is_refused(change, tmp_path):
    data, options = (targets(30, 0),), {"steps": 3, "checkpoint": tmp_path / "c"}
    train_backprop(posterior(), surrogate, data, **options)
    with pytest.raises(ProvenanceMismatch):
        train_backprop(posterior(), surrogate, data, **options | change)
    for prior, other in ((posterior(), targets(30, 1)), (posterior(prior_variance=0.3), data[0])):
        with pytest.raises(ProvenanceMismatch):
            train_backprop(prior, surrogate, (other,), **options)


def test_damaged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "c"
    data, options = (targets(30, 0),), {"steps": 3, "checkpoint": path}
    train_backprop(posterior(), surrogate, data, **options)
    content = path.read_bytes()
    path.write_bytes(content[:-3])
    with pytest.raises(SchemaMismatch, match="not a tensor file"):
        train_backprop(posterior(), surrogate, data, **options)
    tensors, metadata = tensorfile.decode(content)
    for damage, word in (({"history.cost": torch.zeros(1)}, {}), ({}, {"step": "three"})):
        tensorfile.save(path, tensors | damage, metadata | word)
        with pytest.raises(SchemaMismatch, match="not a whole checkpoint"):
            train_backprop(posterior(), surrogate, data, **options)
    posterior().save(path)
    with pytest.raises(SchemaMismatch, match="checkpoint"):
        train_backprop(posterior(), surrogate, data, **options)


def test_the_folder_of_a_checkpoint_is_made_before_training(tmp_path):
    train_backprop(posterior(), surrogate, (targets(30, 0),), steps=1, checkpoint=tmp_path / "new" / "c")
    assert (tmp_path / "new" / "c").exists()
    (tmp_path / "file").touch()
    options = {"steps": 1, "checkpoint": tmp_path / "file" / "c"}
    with pytest.raises(InvalidSetting, match="cannot be made"):
        train_backprop(posterior(), interrupting(0), (targets(30, 0),), **options)
