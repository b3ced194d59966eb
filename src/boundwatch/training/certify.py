"""Draw one policy from a trained posterior, roll it out on its training environments, certify it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch
from numpy.typing import ArrayLike
from torch import nn

from boundwatch._support.files import make_folder, read_bytes, write_costs, write_text
from boundwatch._support.validation import check_choice, check_costs, check_flag, check_level
from boundwatch.bounds.pac_bayes import Bound
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import CertificateError, InvalidSetting
from boundwatch.training.determinism import Stream, generator, single_thread
from boundwatch.training.policies import save_policy, unchanged
from boundwatch.training.posterior import GaussianPosterior


def certify(
    posterior: GaussianPosterior | Sequence[GaussianPosterior],
    costs_of: Callable[[nn.Module], ArrayLike],
    directory: str | os.PathLike[str],
    *,
    bound: Bound = "pointwise",
    delta: float = 0.01,
    binary: bool = False,
    seed: int = 0,
    created: str | None = None,
) -> Certificate:
    """Draw a policy w ~ P once, roll it out on the training environments and certify its expected cost.

    Parameters
    ----------
    posterior
        A trained posterior. Or K candidates, e.g. after different numbers of steps: one policy is drawn from
        each, every candidate is certified at delta/K, and the one with the lowest upper bound is kept. That
        price (a union bound, contained in the certificate's divergence) makes a choice by certificate valid.
    costs_of
        Maps a policy to its costs in [0, 1], one for each of the m >= 8 *training* environments. For a
        simulator use `boundwatch.training.Rollouts`. It must leave the policy's ``state_dict`` as it is, and
        reset the memory of a recurrent policy when an episode begins.
    directory
        Where posterior, policy, costs, certificate and ``draw.json`` go.
    bound, delta
        As in training: ``"pointwise"`` (nearly always tightest), ``"kl"`` or ``"pinsker"`` (Theorem 1),
        chosen before the costs are seen; and the probability with which the certificate may fail.
    binary, seed
        Promise that costs are 0 or 1; of the draw, and independent of the training's, even if equal.
    created
        The certificate's date, UTC in ISO 8601; now if left out. Where a training that was interrupted gives
        the date of its first start, it ends with the same bytes.

    Raises
    ------
    CertificateError
        On a second draw with other arguments from the same object or into the same directory. Redrawing
        until you like the certificate voids the guarantee. The same arguments repeat the same draw and are
        allowed; to choose among policies, pass several candidates and pay.

    **Guarantee**: with probability at least 1 - delta over the training environments and the policy drawn,
    lower <= expected cost <= upper, for the policy in ``policy.safetensors``.
    **Assumes**: i.i.d. training environments, a prior chosen without them, deterministic training, and that
    ``seed`` and ``bound`` were not chosen by trying.

    Examples
    --------
    >>> import tempfile
    >>> posterior = GaussianPosterior.over(nn.Linear(1, 1), prior_variance=1.0)
    >>> with tempfile.TemporaryDirectory() as run:
    ...     certificate = certify(posterior, lambda policy: [0.2, 0.4] * 500, run)
    ...     sorted(path.name for path in Path(run).iterdir())
    ['certificate.json', 'costs.csv', 'draw.json', 'policy.safetensors', 'posterior.safetensors']
    >>> round(certificate.upper, 3)
    0.363
    """
    candidates = [posterior] if isinstance(posterior, GaussianPosterior) else list(posterior)
    if not candidates:
        raise InvalidSetting("posterior is an empty list; give at least one candidate")
    check_choice(bound, "bound", get_args(Bound))
    binary = check_flag(binary, "binary")
    folder = Path(directory)
    make_folder(folder)
    generators = [generator(seed, Stream.CERTIFIED_POLICY, index) for index in range(len(candidates))]
    drawn = {"posteriors": [candidate.sha256() for candidate in candidates], "candidates": len(candidates)}
    rule = {"bound": bound, "delta": check_level(delta, "delta"), "binary": binary, "seed": int(seed)}
    _draw_once(candidates, folder / "draw.json", drawn | rule)
    policy_path = folder / "policy.safetensors"
    results = []
    for candidate, rng in zip(candidates, generators, strict=True):
        weights = candidate.sample(1, rng)[0]
        policy = candidate.policy(weights)
        save_policy(policy_path, policy)
        with unchanged(policy), single_thread(), torch.no_grad():
            costs = check_costs(costs_of(policy), binary=binary)
        # delta/K in place of delta, written as what it adds to the divergence: ln K, and 3 ln K in Theorem 1.
        price = math.log(len(candidates))
        made: dict[str, Any] = {"binary": binary, "seed": seed, "policy": policy_path}
        if bound == "pointwise":
            ratio = candidate.log_density_ratio(weights) + price
            certificate = Certificate.from_pointwise(costs, delta, log_ratio=ratio, **made)
        else:
            renyi = candidate.renyi_divergence() + 3 * price
            certificate = Certificate.from_pac_bayes(costs, delta, renyi=renyi, method=bound, **made)
        results.append((certificate, candidate, policy, costs))
    certificate, candidate, policy, costs = min(results, key=lambda result: result[0].upper)
    candidate.save(folder / "posterior.safetensors")
    save_policy(policy_path, policy)
    write_costs(folder / "costs.csv", costs)
    if created is not None:
        certificate = replace(certificate, provenance=replace(certificate.provenance, created=created))
    certificate.save(folder / "certificate.json")
    return certificate


def _draw_once(candidates: list[GaussianPosterior], path: Path, record: dict[str, object]) -> None:
    """Write down what is about to be drawn, before anybody can see it; refuse what differs from before."""
    text = json.dumps(record, indent=2) + "\n"
    earlier = {candidate.drawn for candidate in candidates if candidate.drawn is not None}
    if path.exists():
        earlier.add(read_bytes(path).decode())
    if earlier - {text}:
        raise CertificateError(
            f"a policy was already drawn from this posterior or into {path.parent}, with other arguments; a "
            "second draw after a look has no guarantee: keep the first, or certify several candidates at "
            "once, which pays for the choice; a training on other environments gets a directory of its own"
        )
    for candidate in candidates:
        candidate.drawn = text
    write_text(path, text)
