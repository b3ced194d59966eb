"""The options by which commands read costs, and the one way in which they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily
from boundwatch.cli import output as out
from boundwatch.cli.options import WrongUsage, flag, refuse, refuse_if
from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import COUNTS, KINDS, Kind, Reduction
from boundwatch.errors import Argument, InvalidSetting, ProvenanceMismatch
from boundwatch.readers import Format, read

if TYPE_CHECKING:  # those who read whole files do without
    from boundwatch.watching.trials import Trial, TrialReader

METRIC = "metric"
"""What the certificates of several columns are of: a family whose members are metrics."""
ANSWERS = ("strata", "where")
"""How people say what a column of tasks means where somebody chose their order."""
_OTHERS: dict[Kind, tuple[str, ...]] = {
    "success": ("cost_range", "timeout_as", "trials"),
    **dict.fromkeys(("cost", "reward"), ("success_values", "trials")),
    **dict.fromkeys(COUNTS, ("success_values", "timeout_as", "empty_as", "count")),
}
"""What does not go with each kind of column: of several, others have it."""
Loaded = Certificate | CertificateFamily
"""What a file of certificates holds."""


@dataclass(frozen=True)
class Read:
    """What was read: once for each column, and by the names of what is judged separately.

    The only part has no name; `by` is what the parts are of, as in `CertificateFamily`.
    """

    sources: tuple[Episodes, ...]
    parts: Mapping[str, Episodes]
    by: str | None


@dataclass(frozen=True)
class Predictions:
    """The columns of predicted costs, of trials and of scenes that were not run.

    Options
    -------
    predicted COL: Cost predicted for each scene, between 0 and 1.
    unlabeled COL: With it: predictions for scenes that were not run.
    """

    panel: ClassVar[str] = "The file"
    predicted: str | None = None
    unlabeled: str | None = None

    def check(self) -> bool:
        """Return whether there are any; refuse one column without the other."""
        both = self.predicted, self.unlabeled
        refuse_if(
            {"--predicted and --unlabeled must be given together": (None in both) != (both == (None,) * 2)}
        )
        return self.predicted is not None


@dataclass(frozen=True)
class Reading:
    """How to read the file; a command that takes one has an option for each field.

    Options
    -------
    success COL: Column of successes: yes/no, 1/0, ...
    cost COL: Or: column of costs; higher is worse.
    reward COL: Or: column of rewards; needs --cost-range.
    cost_range LOW HIGH: Range of costs or rewards, known in advance.
    success_values WORD,WORD: that succeed
    successes COL: of counts: 9/10
    failures COL: too
    trials COL: of counts
    count COL: per row
    timeout_as X: its value
    empty_as X: empty cells
    where COL=VALUE: Read only these rows; repeatable.
    fill_down COL: merged cells
    strata COL: Column of the fixed set of tasks whose mean is meant.
    weights TASK=W,...: of strata
    cluster COL: Column of scenes or days; repeats are not independent.
    episode COL: its rows are steps
    reduce any|sum|mean|max|last: steps
    as_is: ask nothing
    file_format F: input
    sheet NAME: of a workbook
    """

    panel: ClassVar[str] = "The file"
    success: list[str] | None = None
    cost: list[str] | None = None
    reward: list[str] | None = None
    cost_range: tuple[float, float] | None = None
    success_values: list[str] | None = None
    successes: list[str] | None = None
    failures: list[str] | None = None
    trials: list[str] | None = None
    count: str | None = None
    timeout_as: float | None = None
    empty_as: str | None = None
    where: list[str] | None = None
    fill_down: list[str] | None = None
    strata: str | None = None
    weights: list[str] | None = None
    cluster: str | None = None
    episode: str | None = None
    reduce: Reduction | None = None
    as_is: bool = False
    file_format: Format | None = None
    sheet: list[str] | None = None

    @property
    def columns(self) -> dict[str, Kind]:
        """What each column holds that was named; refuse one that was named twice."""
        named = [(column, kind) for kind in KINDS for column in getattr(self, kind) or ()]
        if [kind for _, kind in named] == ["successes", "failures"] and not self.trials:
            named.pop()  # both are counts of the same trials
        if len(named) > 1 and len({normal(column) for column, _ in named}) < len(named):
            raise WrongUsage(f"{_listed(named, ', ')}: name each column once")
        return dict(named)

    @property
    def several(self) -> bool:
        """Whether several columns or sheets were named."""
        return len(self.columns) > 1 or len(self.sheet or ()) > 1

    def only(self, column: str) -> Reading:
        """Return the same for one of the columns, with what goes with it."""
        kind, kinds = self.columns[column], set(self.columns.values())
        mixed = len(kinds) > 1
        useless = set.intersection(*(set(_OTHERS[each]) for each in kinds)) if mixed else set()
        refuse({name: getattr(self, name) for name in sorted(useless)}, "goes with none of these columns")
        dropped = (*KINDS, *(_OTHERS[kind] if mixed else ()))
        changes: dict[str, Any] = {**dict.fromkeys(dropped), kind: [column]}
        counted = [each for each, its in self.columns.items() if its in COUNTS]
        if len(self.trials or ()) > 1 and kind in COUNTS:
            if len(counted) != len(self.trials or ()):
                raise WrongUsage("--trials: give one for all columns, or one for each")
            changes["trials"] = [(self.trials or ())[counted.index(column)]]
        return replace(self, **changes)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `read_costs` that these options are."""
        if len(columns := self.columns) > 1:
            raise WrongUsage(
                f"{_listed(columns.items(), ' and ')} go together in certify and check, or in compare "
                "with one file that has a column per policy; name one column"
            )
        given = dict(vars(self))
        for name in (*KINDS, "trials", "sheet"):
            given[name], *more = given[name] or [None]
            if more and name in ("sheet", "trials"):
                place = "compare and one workbook" if name == "sheet" else "a column of counts for each"
                raise WrongUsage(f"several --{name} go with {place}; name one")
        where, weights = dict[str, str](), dict[str, float]()
        for each in self.where or ():
            column, equals, value = each.partition("=")
            if not column or not equals:
                raise WrongUsage(f"--where {each}: write COL=VALUE")
            if column in where:
                raise WrongUsage(f"--where {column} is given twice; no row can have both values")
            where[column] = value
        for each in ",".join(self.weights or ()).split(",") if self.weights else ():
            task, _, weight = (each if "=" in each else f"{each}=1").strip().rpartition("=")
            wrong = WrongUsage(f"--weights {each}: give each task once, as TASK=NUMBER")
            if not task or task in weights:
                raise wrong
            try:
                weights[task] = float(weight)
            except ValueError:
                raise wrong from None
        return given | {"where": where, "weights": weights}

    def read(
        self,
        path: str,
        *,
        certificate: Certificate | Mapping[str, Certificate] | None = None,
        allow_own: bool | None = None,
        binary: bool | None = None,
        **others: Any,
    ) -> Episodes:
        """Read costs, for a certificate to judge them if there is one; its own with `allow_own`.

        That is None for a command without the option. `others` are further arguments of `read_costs`.
        """
        given = self.arguments() | others
        settings = {"file_format": given.pop("file_format"), "sheet": given.pop("sheet")}
        try:
            declared = Declared.of(certificate, binary=binary, **given)
            return read(path, declared, certificate=certificate, allow_own=bool(allow_own), **settings)
        except ProvenanceMismatch as error:
            if allow_own is not None:
                error.remedy += (" (", Argument("allow_own", True), " shows what it would say)")
            raise

    def read_all(
        self, path: str, *, by: str | None = None, certificates: Loaded | None = None, **others: Any
    ) -> Read:
        """Read each column that was named, or that certificates are of, or take tasks apart.

        `others` are arguments of `read`.
        """
        metrics = metrics_of(certificates)
        reading = self._with(metrics) if metrics else self
        if len(columns := reading.columns) < 2 or (certificates is not None and not metrics):
            by = certificates.by if isinstance(certificates, CertificateFamily) and by is None else by
            episodes = reading.read(path, certificate=certificates, by=by, **others)
            return Read((episodes,), {"": episodes} if by is None else episodes.split(), by)
        refuse_if(
            {
                "--by goes with one column; leave out the others": by is not None,
                "several columns are read one after the other; give a file, not -": path == "-",
            }
        )
        parts = {
            column: reading.only(column).read(path, certificate=metrics.get(normal(column)), **others)
            for column in columns
        }
        return Read(tuple(parts.values()), parts, METRIC)

    def read_lines(
        self,
        stream: str,
        why: str,
        *,
        certificate: Loaded | None = None,
        **others: Any,
    ) -> TrialReader:
        """Return what reads trials line by line, as these options want it; refuse what is read as a whole.

        `why` are the options that ask for it, `others` further arguments of `read_costs`.
        """
        from boundwatch.watching.sources import name_of
        from boundwatch.watching.trials import TrialReader

        names = ["sheet", "episode", "reduce", "fill_down", "cluster"]
        names += [] if self.file_format in (None, "csv", "jsonl") else ["file_format"]
        refuse(
            {name: getattr(self, name) for name in names},
            f"does not go with {why}, where trials are read line by line",
        )
        if any(each.design.cluster is not None for each in out.each_of(certificate)):
            problem = "the certificate counts a cluster of trials once, and here trials are read line by line"
            raise InvalidSetting(problem, remedy="check the whole file once it is complete")
        declared = Declared.of(certificate, by_line=True, **self.arguments() | others)
        return TrialReader(declared, name_of(stream))

    def _with(self, metrics: Mapping[str, Certificate]) -> Reading:
        """Return the same with the columns of the certificates of several, unless they are given."""
        known = [each.measure for each in metrics.values() if each.measure is not None]
        named = len(self.columns)
        if 0 < named < len(known):
            remedy: list[str | Argument] = ["name none, or the same ones:"]
            for measure in known:
                remedy += [" ", Argument(measure.kind, measure.column)]
            raise InvalidSetting("these are certificates of several columns", remedy=tuple(remedy))
        if named:
            return self
        columns: Any = {kind: [each.column for each in known if each.kind == kind] for kind in KINDS}
        return replace(self, **columns)

    def refuse_without_costs(self, **others: object) -> None:
        """Refuse options of reading where nothing is read: they would be ignored."""
        refuse(vars(self) | others, "goes with --costs; give them, or leave it out")


def _listed(columns: Any, between: str) -> str:
    return between.join(f"{flag(kind)} {column}" for column, kind in columns)


def arriving(stream: str, reader: TrialReader, *, wait: bool) -> Iterator[Trial | None]:
    """Yield the trials of a stream, None whenever there is nothing new; say what is noticed about lines."""
    from boundwatch.watching.sources import open_lines
    from boundwatch.watching.trials import read_on

    for found in read_on(open_lines(stream, follow=wait), reader):
        if isinstance(found, str):
            out.warn(f"note: {reader.source}: {found}")
        else:
            yield found


def metrics_of(loaded: Loaded | None) -> dict[str, Certificate]:
    """Return the certificates of several columns, by their columns; nothing if they are of anything else."""
    if not isinstance(loaded, CertificateFamily) or loaded.by != METRIC:
        return {}
    return {normal(name): one for name, one in loaded.items()}
