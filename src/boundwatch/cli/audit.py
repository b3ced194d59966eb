"""boundwatch audit: which judged episodes people should label; and how certify reads their labels."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.record import Trials
from boundwatch.cli.file_options import Reading
from boundwatch.cli.options import WrongUsage, refuse
from boundwatch.cli.root import command
from boundwatch.episodes.compatibility import measured_otherwise
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.measure import KINDS, Measure
from boundwatch.errors import Argument, InvalidSetting
from boundwatch.reporting.wording import count
from boundwatch.watching.sources import is_pipe
from boundwatch.watching.trials import Trial, trials_of

if TYPE_CHECKING:
    from boundwatch.evaluation.audit import Audit

_MORE = 20  # labels whose worth is told
_OPTIONS = {"success": "judge", "pair_by": "show", "by": "cluster"}  # as whoever typed them calls them


@command(
    example="boundwatch audit judged.csv --judge vlm -n 50 --show video -o to_label.csv\n"
    "boundwatch audit to_label.csv --label -o labeled.csv\n"
    "boundwatch certify judged.csv --judge vlm --labels labeled.csv -o certificate.json"
)
def audit(
    costs: str,
    *,
    judge: str | None = None,
    n: int | None = None,
    show: str | None = None,
    seed: int | None = None,
    label: bool = False,
    host: str = "127.0.0.1",
    port: Annotated[int, (0, 65535)] = 8090,
    token: str | None = None,
    reading: Reading,
    output: Path,
    force: bool = False,
) -> None:
    """Draw which episodes people should label, of many that a machine judged.

    They are drawn at random, split by what the judge said, and listed in the order to label, without the
    judge's opinion. Label them on a page (--label), or write yes (succeeded) or no into the column label;
    further labelers add columns label2, label3. The first line says the draw: keep it. Then
    `boundwatch certify --judge --labels` tells what the labels prove. Labels of other episodes are no
    evidence, and neither are labels with gaps.

    Options
    -------
    judge COL: Column that says whether the judge took the episode for a success.
    n N: How many episodes to label. [default: 50]
    show COL: Column to carry along, such as a link to the video.
    seed SEED: Which draw it is; choose it before you look. [default: a random one]
    label: Serve a page that shows each drawn episode (its video, image or link) and takes its label; the
        file is the one that was drawn, and labels are kept in -o at once. Needs the extra `serve`.
    host: With --label: the address to listen on; beyond this machine there is a token in the link.
    port: With --label: the port.
    token: With --label: the token in the link. [default: drawn]
    output FILE: Where to write them, as CSV.
    """
    if label:
        from boundwatch.evaluation.labeling import serve

        refuse(
            vars(reading) | {"judge": judge, "n": n, "show": show, "seed": seed}, "does not go with --label"
        )
        files.protect(output, [costs], force=True)  # it goes on with labels of this sheet and refuses others
        serve(costs, output, (host, port, token))
        return
    from boundwatch.evaluation.audit import Audit

    if judge is None:
        raise WrongUsage("name the column of what the machine said with --judge COL")
    if show == judge:
        raise WrongUsage("--show another column than --judge, for labels are blind")
    n = 50 if n is None else n
    files.protect(output, [costs], force=force)
    judged = read_judged(costs, judge, reading, pair_by=show or ())
    drawn = Audit(judged, seed=secrets.randbelow(1 << 32) if seed is None else seed)
    drawn.draw(n)
    shown = {} if show is None else {show: judged.keys["pair"]}
    files.write_text(output, drawn.sheet(judged.numbers, shown))
    print(f"Wrote {output}: {count(n, 'episode')} of {len(judged.costs)} to label, seed {drawn.seed}")


def read_judged(path: str, judge: str, reading: Reading, **others: Any) -> Episodes:
    """Read what the judge said, of repeats of a scene each by itself."""
    refuse({kind: getattr(reading, kind) for kind in KINDS}, "does not go with --judge; leave it out")
    single = replace(reading, success=[judge], cluster=None)
    try:
        read = single.read(path, by=reading.cluster, **others)
    except InvalidSetting as error:
        error.name = _OPTIONS.get(str(error.name), error.name)
        error.remedy = tuple(
            replace(each, name=_OPTIONS.get(each.name, each.name)) if isinstance(each, Argument) else each
            for each in error.remedy
        )
        raise
    if reading.cluster is None:
        return read
    keys: Any = {**read.keys, "cluster": read.keys["by"]}
    design = replace(read.design, by=None, cluster=reading.cluster)
    return replace(read, design=design, keys=keys, repeats=(Trials(1),) * len(read))


def doubted(judged: Episodes, certificate: Certificate) -> Episodes:
    """Return judged episodes with a warning if labels are not measured as the certificate's costs were."""
    column = None if certificate.measure is None else certificate.measure.column
    doubts = measured_otherwise(certificate, Measure("success", column=column))
    return replace(judged, warnings=tuple(f"{judged.source}: {each}" for each in doubts))


@dataclass(frozen=True)
class Labeling:
    """Who judged and who labeled the episodes of an audit.

    Options
    -------
    judge COL: Column of successes as a machine judged them.
    labels FILE: What people said of those that `audit` drew.
    """

    panel: ClassVar[str] = "The file"
    judge: str | None = None
    labels: Path | None = None

    def read(self, path: str, reading: Reading) -> tuple[Audit, dict[int, Any], Episodes]:
        """Return the audit that was drawn, its labels, and what was judged."""
        from boundwatch.evaluation.audit import Audit

        if self.judge is None or self.labels is None:
            raise WrongUsage("--judge and --labels go together: what a machine said, and people")
        judged = read_judged(path, self.judge, reading)
        text = files.read_bytes(self.labels).decode("utf-8-sig", errors="replace")
        return *Audit.from_sheet(judged, text, str(self.labels)), judged

    def certify(
        self, path: str, reading: Reading, settings: dict[str, Any]
    ) -> tuple[Certificate, Episodes, list[str]]:
        """Return the certificate of labels, what was judged, and what to say about both."""
        drawn, labels, judged = self.read(path, reading)
        certificate = drawn.certificate(labels, **settings, measure=Measure("success", column="label"))
        said = drawn.finding(labels, certificate.delta).sentences()
        if (n := certificate.n or 0) + _MORE <= len(judged.costs):
            narrower = drawn.width_with(labels, n + _MORE, certificate.delta)
            now, then = (f"{100 * width:.0f}" for width in (certificate.upper - certificate.lower, narrower))
            said.append(
                f"You have {n} labels; {_MORE} more would narrow it from {now} to about {then} points."
            )
            said.append("Fix their number beforehand: labels added because of these limits void them.")
        return certificate, judged, said


@dataclass(frozen=True)
class Labels:
    """A machine that judges a stream, and the labels of episodes that a coin draws.

    Options
    -------
    judge COL: Column of judgments by a machine.
    label COL: of labels
    rates P P: of a draw
    seed SEED: Draws which of them people label (--label).
    """

    panel: ClassVar[str] = "The file"
    judge: str | None = None
    label: str | None = None
    rates: tuple[float, float] | None = None
    seed: int | None = None

    def settings(self, stream: str, others: dict[str, Any]) -> dict[str, Any]:
        """Return the settings of the test, or none; refuse options that do not go together."""
        if self.judge is None:
            refuse(vars(self), "goes with --judge")
            return {}
        refuse(others, "does not go with --judge; leave it out")
        if stream == "-" or is_pipe(stream):
            raise WrongUsage("--judge reads a file again whenever there are labels; give a file")
        if self.label is None or self.seed is None:
            raise WrongUsage("--judge needs --label and --seed: what people say, and what draws the rows")
        if self.label == self.judge:
            raise WrongUsage("--label is what people say; give another column than --judge")
        return {"seed": self.seed} | ({} if self.rates is None else {"rates": list(self.rates)})

    def trials(self, path: str, reading: Reading, loaded: Any) -> tuple[Episodes, list[Trial]]:
        """Return what was judged, and its trials with their labels."""
        if not isinstance(loaded, Certificate):
            problem, remedy = "holds the certificates of several tasks", "watch each task alone"
            raise InvalidSetting(problem, name="certificate", remedy=remedy)
        judged = read_judged(path, str(self.judge), reading)
        # What is read alike, whatever an empty cell means, is a label.
        ways = [replace(reading, success=[str(self.label)], empty_as=way) for way in ("no", "yes")]
        failed, passed = (each.read(path).costs.tolist() for each in ways)
        trials = zip(trials_of(judged), failed, passed, strict=True)
        labeled = [trial._replace(label=one if one == other else None) for trial, one, other in trials]
        return doubted(judged, loaded), labeled
