"""Verdicts: what can be said of a case, by which rules, and what a job exits with."""

import dataclasses
import re
import statistics as _statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Any, Self

from fwbench.errors import some, unknown
from fwbench.gate.samples import METRICS, THRESHOLDS, Metric, SampleSet
from fwbench.options.values import TIME
from fwbench.records.measurement import CLOCK, MEDIAN, MINIMUM, Measurement
from fwbench.records.session_facts import LEFT_OUT, StoredComparison, StoredJudgement
from fwbench.records.table import DamagedFact, shown


class Verdict(StrEnum):
    """Verdict on a case; the worst first."""

    DIFFERENT = "different results"
    REGRESSED = "regressed"
    MISSING = "missing"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"


class FailOn(StrEnum):
    """Reason for a comparison to fail; the worst first."""

    DIFFERENT = "different-results"
    REGRESSED = "regressed"
    MISSING = "missing"
    INCONCLUSIVE = "inconclusive"
    ALL_INCONCLUSIVE = "all-inconclusive"


#: The exit status of each; pytest has 2 to 5 for itself.
EXIT_STATUS = {
    FailOn.DIFFERENT: 1,
    FailOn.REGRESSED: 1,
    FailOn.MISSING: 11,
    FailOn.INCONCLUSIVE: 10,
    FailOn.ALL_INCONCLUSIVE: 10,
}

#: What a comparison fails on by default.
FAIL_ON = (FailOn.DIFFERENT, FailOn.REGRESSED, FailOn.MISSING, FailOn.ALL_INCONCLUSIVE)


@dataclass(frozen=True)
class Rules:
    """When a difference is called a change."""

    #: What a test of pairs concedes to chance beyond the launches' own, as a share; None for 1 %,
    #: which chance adds between processes that take turns, or a third of the threshold where that
    #: is less.
    margin: float | None = None
    #: The smallest change of the time that is worth a verdict, as a share; the marker of the base's
    #: test wins, which a change under test cannot set.
    threshold: float = 0.03
    #: The probability, over all cases together, that an unchanged one is called changed.
    level: float = 0.05
    #: Of each bound of the interval that is shown.
    confidence: float = 0.9
    #: A case is unchanged only if a change of this size, as a share, would have shown (or one half
    #: a resolution beyond the threshold, where that is larger); None for 10 %, or 3.5 times the
    #: threshold where that is less.
    resolution: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=lambda: dict(THRESHOLDS))
    seed: int = 0

    @classmethod
    def given(cls, thresholds: Mapping[str, float]) -> Self:
        """Rules with these thresholds, shares by users' names (``first-call``), else defaults."""
        by_option = {metric.option: metric.name for metric in METRICS if not metric.is_time}
        for name in thresholds:
            if name not in (TIME, *by_option):
                raise unknown("threshold", name, (TIME, *by_option))
        named = {by_option[name]: value for name, value in thresholds.items() if name != TIME}
        time = thresholds.get(TIME, cls.threshold)
        return cls(threshold=time, thresholds={**THRESHOLDS, **named})

    def margin_of(self, threshold: float) -> float:
        """The share that a test with this threshold concedes to chance."""
        return min(0.01, threshold / 3) if self.margin is None else self.margin

    def resolution_of(self, threshold: float) -> float:
        """The resolution of a test with this threshold, as a share."""
        return min(0.1, 3.5 * threshold) if self.resolution is None else self.resolution

    def recorded(self) -> dict[str, Any]:
        """The rules as a record has them, with what follows from the threshold."""
        margin, resolution = self.margin_of(self.threshold), self.resolution_of(self.threshold)
        return {**dataclasses.asdict(self), "margin": margin, "resolution": resolution}

    def limit(self, threshold: float) -> float:
        """The change that must have been able to show for a case to be unchanged, as a share."""
        resolution = self.resolution_of(threshold)
        return max(resolution, (1 + threshold) * (1 + resolution / 2) - 1)

    def threshold_of(self, metric: Metric, base: Measurement) -> float:
        """The smallest change of a metric that is worth a verdict."""
        if not metric.is_time:
            return self.thresholds[metric.name]
        return self.threshold if base.facts.threshold is None else base.facts.threshold

    def marked(self, pairs: Iterable[tuple[Measurement, Measurement]]) -> list[str]:
        """Notes on markers of pairs: thresholds of one side, or above the comparison's own."""
        cases: dict[str, list[str]] = {}
        for base, contender in pairs:
            counts, other = base.facts.threshold, contender.facts.threshold
            if counts != other:
                text = f"{_marker(counts)} in the base, which counts, {_marker(other)} in the other"
            elif counts is not None and counts > self.threshold:
                text = f"{_marker(counts)}, above the {self.threshold:.3g} of this comparison"
            else:
                continue
            cases.setdefault(text, []).append(contender.label)
        return [f"{some(names)}: {text}" for text, names in cases.items()]


def _marker(threshold: float | None) -> str:
    return "no threshold" if threshold is None else f"threshold {threshold:.3g}"


#: Why times that are upper bounds are not judged.
DISTURBED = "other processes took its processors"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one metric of one case; :class:`StoredJudgement` explains its figures."""

    key: str
    name: str
    framework: str
    verdict: Verdict
    reason: str = ""
    metric: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    visible: float | None = None
    threshold: float | None = None
    base: Sequence[float] = ()
    contender: Sequence[float] = ()
    cycles_ratio: float | None = None


@dataclass(frozen=True)
class VersionChange:
    """A package of which two builds have different versions; None where one has none."""

    name: str
    base: str | None
    contender: str | None

    def __str__(self) -> str:
        return f"{self.name}: {self.base or 'none'} -> {self.contender or 'none'}"


@dataclass(frozen=True)
class Comparison:
    """The verdicts on a contender."""

    base: str
    contender: str
    judgements: Sequence[Judgement]
    rules: Mapping[str, Any]
    notes: Sequence[str] = field(default_factory=list)
    interrupted: bool = False
    #: That differ between sides that were built.
    versions: Sequence[VersionChange] = ()

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict on each case, by key: the worst on one of its metrics."""
        order = list(Verdict)
        worst: dict[str, Verdict] = {}
        for judgement in self.judgements:
            verdicts = (worst.get(judgement.key, judgement.verdict), judgement.verdict)
            worst[judgement.key] = min(verdicts, key=order.index)
        return worst

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict; the worst first."""
        by_verdict = Counter(self.verdicts.values())
        return {str(verdict): by_verdict[verdict] for verdict in Verdict if by_verdict[verdict]}

    @property
    def means(self) -> dict[str, float]:
        """Geometric mean of the ratios of times that nothing disturbed, by framework."""
        ratios: dict[str, dict[str, float]] = {}
        for judgement in self.judgements:
            if judgement.ratio is not None and judgement.reason != DISTURBED:
                # The first metric of each case is the one that stands for its time.
                of_framework = ratios.setdefault(judgement.framework or "benchmarks", {})
                of_framework.setdefault(judgement.key, judgement.ratio)
        return {
            name: _statistics.geometric_mean(by_case.values()) for name, by_case in ratios.items()
        }

    @property
    def is_all_inconclusive(self) -> bool:
        """True if there are cases on both sides, and not one of them could be judged."""
        one_sided = (Verdict.MISSING, Verdict.NEW)
        there = {verdict for verdict in self.verdicts.values() if verdict not in one_sided}
        return there == {Verdict.INCONCLUSIVE}

    def exit_status(self, failing: Collection[FailOn]) -> int:
        """0, or that of the worst that is failed on."""
        there = {verdict.replace(" ", "-") for verdict in self.verdicts.values()}
        if self.is_all_inconclusive:
            there.add(FailOn.ALL_INCONCLUSIVE)
        statuses = (EXIT_STATUS[kind] for kind in EXIT_STATUS if kind in failing and kind in there)
        return next(statuses, 0)

    def to_json(self) -> dict[str, Any]:
        """The comparison in JSON's own types."""
        return {**dataclasses.asdict(self), "verdicts": self.counts, "means": self.means}

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """The comparison that :meth:`to_json` wrote."""
        return cls.of_stored(StoredComparison.checked(values))

    @classmethod
    def of_stored(cls, stored: StoredComparison) -> Self:
        """The comparison in a run that was gated."""
        judgements = [_judgement(judgement) for judgement in stored.judgements]
        return cls(
            stored.base,
            stored.contender,
            judgements,
            dict(stored.rules),
            stored.notes,
            interrupted=bool(stored.interrupted),
            versions=[
                VersionChange(version.name, version.base, version.contender)
                for version in stored.versions or ()
            ],
        )


def _judgement(stored: StoredJudgement) -> Judgement:
    if stored.verdict not in [*Verdict]:
        raise DamagedFact(f"{stored.name}: unknown verdict {shown(stored.verdict)}")
    if stored.ratio is not None and not (stored.base and stored.contender):
        raise DamagedFact(f"{stored.name} has a ratio and no launches")
    names = [field.name for field in dataclasses.fields(Judgement)]
    values = {name: stored[name] for name in names if stored.get(name) is not None}
    return Judgement(**{**values, "verdict": Verdict(stored.verdict)})


#: A change in either direction.
CHANGES = (Verdict.REGRESSED, Verdict.IMPROVED)


def one_sided(base: SampleSet, contender: SampleSet) -> list[Judgement]:
    """The cases that one side alone has: missing, or new."""
    lost = {k: s for k, s in base.samples.items() if k not in contender.samples}
    added = {k: s for k, s in contender.samples.items() if k not in base.samples}
    renamed = _renamed(lost, added)
    missing = [
        unjudged(
            sample,
            Verdict.MISSING,
            contender.unmeasured.get(key) or renamed.get(key, "not collected"),
        )
        for key, sample in lost.items()
    ]
    new = [
        unjudged(
            sample,
            Verdict.NEW,
            f"the base's {why}" if (why := base.unmeasured.get(key)) else "not in the base",
        )
        for key, sample in added.items()
    ]
    return [*missing, *new, *_broken(base, contender), *_nowhere(base, contender)]


#: Parts of ids that differ in each collection: addresses, UUIDs, and what ``id`` and clocks return.
_CHANGING = re.compile(
    r"0x[0-9a-f]{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]{10,}", re.IGNORECASE
)

#: Why a test with such an id cannot be compared.
CHANGING_ID = "each collection gives it another id: give its parameters ids that stay (ids=...)"


def lasting(nodeid: str) -> str:
    """The id of a test without what differs in each collection."""
    return _CHANGING.sub("...", nodeid)


#: What two ids of one test have in common, and a sentence on the other id; the surest first.
_ALIKE: tuple[tuple[Callable[[Measurement], str], str], ...] = (
    (lambda sample: sample.work, "renamed to {}?"),
    (lambda sample: lasting(sample.nodeid), CHANGING_ID),
    (lambda sample: sample.nodeid.partition("::")[2], "moved to {}?"),
)


def _renamed(lost: Mapping[str, Measurement], added: Mapping[str, Measurement]) -> dict[str, str]:
    """Sentences on lost cases that the contender may have by another id, by key."""
    hints: dict[str, str] = {}
    for common, sentence in _ALIKE:
        ids = {common(sample): key for key, sample in added.items() if common(sample)}
        for key, sample in lost.items():
            if key not in hints and (other := ids.get(common(sample))):
                hints[key] = sentence.format(other)
    is_plain = not any(sample.framework for sample in (*lost.values(), *added.values()))
    if is_plain and not hints and len(lost) == len(added) == 1:
        hints = {key: f"renamed to {other}?" for key, other in zip(lost, added, strict=True)}
    return hints


def _broken(base: SampleSet, contender: SampleSet) -> list[Judgement]:
    """Judge the cases that the contender has brought, and could not measure."""
    known = base.samples.keys() | base.unmeasured.keys() | contender.samples.keys()
    return [
        Judgement(key, key, "", Verdict.NEW, why)
        for key, why in sorted(contender.unmeasured.items())
        if key not in known and not why.startswith(LEFT_OUT)
    ]


def _nowhere(base: SampleSet, contender: SampleSet) -> list[Judgement]:
    """Judge the cases that neither side could measure, and that the contender did not leave out."""
    both = base.unmeasured.keys() & contender.unmeasured.keys()
    lost = sorted(both - base.samples.keys() - contender.samples.keys())
    why = {key: (base.unmeasured[key], contender.unmeasured[key]) for key in lost}
    return [
        Judgement(key, key, "", Verdict.MISSING, _of_both(*reasons))
        for key, reasons in why.items()
        if not reasons[1].startswith(LEFT_OUT)
    ]


def _of_both(base: str, contender: str) -> str:
    if base == contender:
        return f"{contender}, on both sides"
    return f"{contender}; in the base: {base}"


def unjudged(sample: Measurement, verdict: Verdict, reason: str) -> Judgement:
    """The judgement of a case whose times say nothing."""
    return Judgement(sample.key, sample.label, sample.framework, verdict, reason)


#: Judges the launches of both sides: one judgement for each metric.
Judge = Callable[[Measurement, Measurement], Sequence[Judgement]]


def in_cycles(base: Measurement, contender: Measurement) -> tuple[Measurement, Measurement] | None:
    """Both sides with cycles in place of seconds; None where the clock of a launch is not known."""
    base_cycles, contender_cycles = _in_cycles(base), _in_cycles(contender)
    if base_cycles is None or contender_cycles is None:
        return None
    return base_cycles, contender_cycles


def _in_cycles(sample: Measurement) -> Measurement | None:
    clocks_hz = sample.values(CLOCK)
    if not clocks_hz:
        return None
    launches = tuple(
        {name: launch[name] * hz for name in (MINIMUM, MEDIAN) if name in launch}
        for launch, hz in zip(sample.launches, clocks_hz, strict=True)
    )
    return dataclasses.replace(sample, figures=launches)


def both(in_seconds: Verdict | None, in_cycles: Verdict | None) -> Verdict | None:
    """The verdict on a time that seconds and cycles have in common; None while there is none."""
    if in_seconds not in CHANGES:
        return in_seconds
    is_open = in_cycles in (None, Verdict.INCONCLUSIVE)
    return in_cycles if is_open or in_cycles is in_seconds else Verdict.UNCHANGED


def confirmed(
    judgements: Sequence[Judgement], base: Measurement, contender: Measurement, judge: Judge
) -> list[Judgement]:
    """Judgements in which a change of the time is one of the cycles too."""
    sides = in_cycles(base, contender)
    if sides is None:
        return [*judgements]
    of_cycles = {judgement.metric: judgement for judgement in judge(*sides)}
    return [
        _confirmed(judgement, of_cycles[judgement.metric], base, contender)
        if judgement.metric in of_cycles
        else judgement
        for judgement in judgements
    ]


def _confirmed(
    time: Judgement, cycles: Judgement, base: Measurement, contender: Measurement
) -> Judgement:
    known = dataclasses.replace(time, cycles_ratio=cycles.ratio)
    verdict = both(time.verdict, cycles.verdict)
    if verdict is None or verdict is time.verdict:
        return known
    mhz = " and ".join(f"{median(side.values(CLOCK)) / 1e6:,.0f}" for side in (base, contender))
    what = "no change" if verdict is Verdict.UNCHANGED else "no change in cycles is certain"
    reason = f"{what}: the clock differed ({mhz} MHz)"
    return dataclasses.replace(known, verdict=verdict, reason=reason, visible=cycles.visible)
