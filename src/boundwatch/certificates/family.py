"""Certificates of several tasks (or robots) in one file, and what they promise together."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Unpack

from msgspec import Meta
from numpy.typing import ArrayLike

from boundwatch._support.describing import html, one_line, table
from boundwatch._support.files import read_bytes, sha256_file
from boundwatch._support.schema import FrozenMapping, convert, decode
from boundwatch._support.validation import check_level
from boundwatch.certificates import verification
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.certificates.limits import HeldOutMethod, Origin, derive_all, held_out
from boundwatch.certificates.signing import check_signature
from boundwatch.certificates.verification import Check, Saved
from boundwatch.errors import (
    Argument,
    CertificateError,
    InvalidSetting,
    ProvenanceMismatch,
    SchemaMismatch,
    part_of,
    shown,
)


def no_certificate(task: str, certified: Iterable[str]) -> tuple[str, str]:
    """Say that a task (or robot) has no certificate, and what to do: write the one that is meant."""
    known = list(certified)
    plain = {"".join(name.split()).casefold(): name for name in known}
    if (meant := plain.get("".join(task.split()).casefold())) is not None:
        return f"has no certificate, but {shown(meant)} has", "if that is meant, write the name the same way"
    several = f"{', '.join(map(shown, known[:5]))}{', ...' if len(known) > 5 else ''}"
    return f"has no certificate, only {several}", "certify it, or leave it out"


@dataclass(frozen=True, eq=False)
class CertificateFamily(Saved, Mapping[str, Certificate]):
    """One certificate per task: a mapping from the task's name to its `Certificate`.

    **Guarantee**: with probability at least 1 - `delta`, all limits of all certificates hold at once; all
    upper ones alone with at least 1 - `delta_upper`, all lower ones with at least 1 - `delta_lower`, whatever
    the dependence between tasks (a union bound). An object that several tasks share counts once: it fails
    for all of them or for none; families are equal only if they share alike. **Assumes**: what each
    certificate assumes.

    Parameters
    ----------
    certificates
        The certificate of each task, at least one.
    by
        The name of the column that names the task, ``"task"`` or for instance ``"robot"``.

    Examples
    --------
    >>> costs = {"pick": [0, 0, 1, 0] * 25, "place": [0, 1] * 50}
    >>> family = CertificateFamily.from_held_out(costs, delta=0.02, binary=True)
    >>> list(family), family.delta, family["pick"].delta
    (['pick', 'place'], 0.02, 0.01)
    """

    certificates: Mapping[str, Certificate]
    by: str = "task"

    def __post_init__(self) -> None:
        if not isinstance(self.certificates, Mapping) or not self.certificates:
            remedy = "map the name of every task, at least one, to its Certificate"
            raise InvalidSetting(
                "is not a family", name="certificates", value=self.certificates, remedy=remedy
            )
        object.__setattr__(self, "certificates", FrozenMapping(self.certificates))
        for name in (self.by, *self.certificates):
            # Half a pair of surrogates could be written to a file, and the file never be loaded.
            whole = isinstance(name, str) and name.encode("utf-8", "ignore").decode() == name
            if not whole or not name.strip():
                remedy = "use non-empty strings of whole characters for tasks and their column"
                raise InvalidSetting("is not a valid name", value=name, remedy=remedy)
        for task, certificate in self.certificates.items():
            require_certificate(certificate, f"certificates[{task!r}]")

    @classmethod
    def from_held_out(
        cls,
        costs: Mapping[str, ArrayLike],
        delta: float = 0.01,
        *,
        by: str = "task",
        method: HeldOutMethod | None = None,
        **origin: Unpack[Origin],
    ) -> CertificateFamily:
        """Certify a finished policy on each of several tasks, with one delta for all of them.

        Every task gets an equal share of `delta` (Bonferroni), so that the whole family fails with
        probability at most `delta`. The tasks must be chosen before their costs are seen.

        Parameters
        ----------
        costs
            The costs of each task, as in `Certificate.from_held_out`.
        delta
            Probability with which any limit of any task may fail.
        by
            The column that names the task.
        method, **origin
            As in `Certificate.from_held_out`; the deltas are for all tasks together.
        """
        tasks = max(len(costs), 1)
        given: dict[str, Any] = {"method": method, "binary": None, "measure": None, **origin}
        policy = given.pop("policy", None)
        policy_sha256 = None if policy is None else sha256_file(policy)
        for name in ("delta_upper", "delta_lower"):
            if given.get(name) is not None:
                given[name] = check_level(given[name], name) / tasks
        share, drafts = check_level(delta, "delta") / tasks, {}
        for task, values in costs.items():
            with part_of(f"{by} {task!r}"):
                drafts[task] = Certificate(**held_out(values, share, **given))
        made = {}
        for (task, draft), (lower, upper) in zip(drafts.items(), derive_all([*drafts.values()]), strict=True):
            provenance = dataclasses.replace(draft.provenance, policy_sha256=policy_sha256)
            made[task] = dataclasses.replace(draft, lower=lower, upper=upper, provenance=provenance)
        return cls(made, by)

    @classmethod
    def shared(cls, certificate: Certificate, tasks: Iterable[str], by: str = "task") -> CertificateFamily:
        """Compare several tasks (or robots) with one certificate, which counts once toward delta.

        Examples
        --------
        >>> certificate = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
        >>> CertificateFamily.shared(certificate, ["arm-1", "arm-2"], by="robot").delta
        0.01
        """
        if certificate.strata:
            problem = "is of the mean over tasks, by which no single task can be judged"
            remedy = ("leave out ", Argument("by"), ": its tasks are judged without it")
            raise InvalidSetting(problem, name="certificate", remedy=remedy)
        return cls(dict.fromkeys(tasks, certificate), by)

    def __getitem__(self, task: str) -> Certificate:
        return self.certificates[task]

    def __iter__(self) -> Iterator[str]:
        return iter(self.certificates)

    def __len__(self) -> int:
        return len(self.certificates)

    @property
    def delta(self) -> float:
        """Probability with which any limit of any task may fail."""
        return self._total("delta")

    @property
    def delta_upper(self) -> float:
        """Probability with which the upper limit of any task may fail."""
        return self._total("delta_upper")

    @property
    def delta_lower(self) -> float:
        """Probability with which the lower limit of any task may fail."""
        return self._total("delta_lower")

    def _total(self, name: str) -> float:
        return min(float(sum(getattr(certificate, name) for certificate in self._distinct())), 1.0)

    def _distinct(self) -> list[Certificate]:
        # By identity: two tasks that happen to have the same costs have certificates that fail apart.
        return list({id(certificate): certificate for certificate in self.values()}.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CertificateFamily):
            return NotImplemented
        return self.only(sorted(self)).to_dict() == other.only(sorted(other)).to_dict()

    def __repr__(self) -> str:
        return one_line(self, {"tasks": list(self), "by": self.by, "delta": self.delta})

    def __str__(self) -> str:
        hold = f"all limits hold at once with probability at least {100 * (1 - self.delta):.6g} %."
        return f"Certificates of {len(self)} tasks; {hold}"

    def _repr_html_(self) -> str:
        names = ("lower", "upper", "n", "mean_cost")
        rows = [(task, *(getattr(each, name) for name in names)) for task, each in self.items()]
        return html(self, table(rows, (self.by, *names)))

    def __hash__(self) -> int:
        return hash((self.by, self.certificates))

    def only(self, tasks: Iterable[str]) -> CertificateFamily:
        """Return the family of these tasks alone, chosen without regard to any costs."""
        return CertificateFamily({task: self[task] for task in tasks}, self.by)

    def to_dict(self) -> dict[str, Any]:
        """Return the family as plain JSON values, the content of its file: each certificate once."""
        distinct = self._distinct()
        places = {id(certificate): place for place, certificate in enumerate(distinct)}
        return {
            "schema_version": verification.VERSION,
            "by": self.by,
            "tasks": {task: places[id(certificate)] for task, certificate in self.items()},
            "certificates": [certificate.to_dict() for certificate in distinct],
        }

    @classmethod
    def from_dict(cls, content: object) -> CertificateFamily:
        """Rebuild a family from `to_dict`; every certificate is checked as `Certificate.load` does."""
        if not isinstance(content, dict) or "certificates" not in content:
            remedy = "give the file that certify --by wrote"
            raise SchemaMismatch("no certificates; not a family", remedy=remedy)
        file = convert(_File, verification.body(content))
        if set(file.tasks.values()) != set(range(len(file.certificates))):
            remedy = "the file was altered, certify again"
            raise SchemaMismatch("the tasks are not those of its certificates", remedy=remedy)
        owners = {place: f"{file.by} {task!r}" for task, place in reversed(file.tasks.items())}
        found: dict[int, Certificate] = {}
        for place, each in enumerate(file.certificates):
            with part_of(owners[place]):
                found[place] = Certificate._unverified(each)
        for place, checks in enumerate(verification.verify_all(list(found.values()))):
            with part_of(owners[place]):
                verification.refuse_altered(checks)
        try:
            return cls({task: found[place] for task, place in file.tasks.items()}, file.by)
        except InvalidSetting as error:
            raise SchemaMismatch(f"{error}; certify again") from error

    def verify(
        self, costs: Mapping[str, ArrayLike] | None = None, *, policy: str | os.PathLike[str] | None = None
    ) -> list[Check]:
        """Derive every number of every certificate again, see `Certificate.verify`; costs are of all tasks.

        Examples
        --------
        >>> family = CertificateFamily.from_held_out({"pick": [0, 0, 1, 0], "place": [0, 0]}, binary=True)
        >>> [check.name for check in family.verify({"pick": [0, 0, 1, 0], "place": [0, 1]}) if not check.ok]
        ['place: costs_sha256', 'place: mean_cost', 'place: lower', 'place: upper']
        """
        if costs is not None and (missing := [task for task in self if task not in costs]):
            problem = f"{self.by} {missing[0]!r} is certified, but is not in the costs"
            raise ProvenanceMismatch(problem, remedy="give all costs")
        return [
            dataclasses.replace(check, name=f"{task}: {check.name}")
            for task, one in self.items()
            for check in one.verify(None if costs is None else costs[task], policy=policy)
        ]


def load(
    path: str | os.PathLike[str], *, key: str | os.PathLike[str] | None = None
) -> Certificate | CertificateFamily:
    """Read a certificate or a family of them, whichever the file holds.

    Parameters
    ----------
    path
        The file.
    key
        The file of a public key: a certificate is refused unless its holder signed exactly this content.
    """
    data = read_bytes(path)
    try:
        content = decode(data, "certificate")
        if key is not None:
            check_signature(path, content, key)
        several = isinstance(content, dict) and "certificates" in content
        return CertificateFamily.from_dict(content) if several else Certificate.from_dict(content)
    except CertificateError as error:
        raise error.inside(str(path)) from None


@dataclass(frozen=True)
class _File:
    """What a family's file holds beside its version: the place of each task's certificate among them."""

    by: str
    tasks: dict[str, Annotated[int, Meta(ge=0)]]
    certificates: list[dict[str, Any]]
