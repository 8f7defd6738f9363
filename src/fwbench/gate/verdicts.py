"""Verdicts: what launches of a base and a contender allow to be said."""

from __future__ import annotations

import dataclasses
import math
import statistics as _statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from fwbench.errors import TooFewLaunches, unknown
from fwbench.gate import statistics
from fwbench.gate.samples import Sample, SampleSet


class Verdict(StrEnum):
    """What can be said of a case; the worst first."""

    REGRESSED = "regressed"
    MISSING = "missing"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"


#: The exit status of each verdict that a comparison may fail on; pytest has 2 to 5 for itself.
EXIT_STATUS = {Verdict.REGRESSED: 1, Verdict.MISSING: 11, Verdict.INCONCLUSIVE: 10}

#: What a comparison fails on by default.
FAIL_ON = (Verdict.REGRESSED, Verdict.MISSING)


def fail_on(names: Iterable[str]) -> tuple[Verdict, ...]:
    """The verdicts of ``--fail-on regressed,missing``.

    Raises:
        UsageError: a name that is not a verdict, or a verdict that nothing can fail on.
    """
    for name in names:
        if name not in EXIT_STATUS:
            raise unknown("verdict to fail on", name, map(str, EXIT_STATUS))
    return tuple(Verdict(name) for name in names)


@dataclass(frozen=True)
class Rules:
    """When a difference is called a change.

    Attributes:
        margin: what the test concedes to chance beyond the launches' own, as a share.
        threshold: the smallest change that is worth a verdict, as a share; a test's marker wins.
        level: the probability, over all cases together, that an unchanged one is called changed.
        confidence: of the interval that is shown.
        widest: a case whose interval is wider, as a share of its lower end, is inconclusive,
            unless it could have shown a change of that size. (The interval of a few launches is as
            wide as the worst of them makes it; the test looks at their ranks.)
        seed: of the bootstrap.
    """

    margin: float
    threshold: float = 0.03
    level: float = 0.05
    confidence: float = 0.99
    widest: float = 0.25
    seed: int = 0


@dataclass(frozen=True)
class Judgement:
    """The verdict on one case, with its figures.

    Attributes:
        key: of the case.
        name: to show.
        framework: of the case; empty if it is not fwbench's.
        verdict: the verdict.
        reason: why, where that does not follow from the figures.
        ratio: contender's median time over the base's.
        low: lower end of the ratio's interval.
        high: its upper end.
        change: in which direction was tested; with both, where it looked more like a change.
        p: of that test.
        visible: the smallest slow-down, as a share, that could have been shown; None if none could.
        threshold: as a share.
        base_s: values of the base's launches.
        contender_s: values of the contender's launches.
    """

    key: str
    name: str
    framework: str
    verdict: Verdict
    reason: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    change: Verdict | None = None
    p: float | None = None
    visible: float | None = None
    threshold: float | None = None
    base_s: Sequence[float] = ()
    contender_s: Sequence[float] = ()


@dataclass(frozen=True)
class Comparison:
    """The verdicts on a contender.

    Attributes:
        base: the name of the base.
        contender: the name of the contender.
        judgements: of every case of either side.
        rules: the numbers that it was decided by, by name.
        notes: what else a reader must know.
    """

    base: str
    contender: str
    judgements: Sequence[Judgement]
    rules: Mapping[str, Any]
    notes: Sequence[str] = field(default_factory=list)

    @property
    def counts(self) -> dict[str, int]:
        """How many cases have each verdict; the worst first."""
        by_verdict = Counter(judgement.verdict for judgement in self.judgements)
        return {str(verdict): by_verdict[verdict] for verdict in Verdict if by_verdict[verdict]}

    @property
    def means(self) -> dict[str, float]:
        """Geometric mean of the ratios, by framework."""
        ratios: dict[str, list[float]] = {}
        for judgement in self.judgements:
            if judgement.ratio is not None:
                ratios.setdefault(judgement.framework or "benchmarks", []).append(judgement.ratio)
        return {name: _statistics.geometric_mean(values) for name, values in ratios.items()}

    def exit_status(self, failing: Collection[Verdict]) -> int:
        """0, or that of the worst verdict that is failed on."""
        ordered = [verdict for verdict in EXIT_STATUS if verdict in failing]
        there = {judgement.verdict for judgement in self.judgements}
        return next((EXIT_STATUS[verdict] for verdict in ordered if verdict in there), 0)

    def to_json(self) -> dict[str, Any]:
        """The comparison in JSON's own types."""
        return {**dataclasses.asdict(self), "verdicts": self.counts, "means": self.means}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """The comparison that :meth:`to_json` wrote.

        Raises:
            KeyError: something is missing.
            TypeError: something is of another kind.
            ValueError: a verdict is not known.
        """
        judgements = [
            _checked(Judgement(**{**judgement, "verdict": Verdict(judgement["verdict"])}))
            for judgement in values["judgements"]
        ]
        names = ("base", "contender", "rules", "notes")
        comparison = cls(judgements=judgements, **{name: values[name] for name in names})
        if not isinstance(comparison.rules["confidence"], float | int):
            raise TypeError(f"the confidence is {comparison.rules['confidence']!r}")
        if not all(
            isinstance(text, str)
            for text in (comparison.base, comparison.contender, *comparison.notes)
        ):
            raise TypeError(
                f"names or notes are not text: {comparison.base!r}, {comparison.notes!r}"
            )
        return comparison


def _checked(judgement: Judgement) -> Judgement:
    """A judgement from a file, if its figures are figures.

    Raises:
        TypeError: a figure is not a number, or a name is not text.
        ValueError: a figure is out of range.
    """
    texts = (judgement.key, judgement.name, judgement.framework, judgement.reason)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(f"names of a case that are not text: {texts}")
    ends = [
        figure for figure in (judgement.ratio, judgement.low, judgement.high) if figure is not None
    ]
    times_s = [*judgement.base_s, *judgement.contender_s]
    if judgement.visible is not None:
        times_s.append(judgement.visible + 1)
    if not all(0 < figure < math.inf for figure in (*ends, *times_s)):
        raise ValueError(f"figures of {judgement.name} that cannot be: {(*ends, *times_s)}")
    if judgement.ratio is not None and not (judgement.base_s and judgement.contender_s):
        raise ValueError(f"{judgement.name} has a ratio and no launches")
    return judgement


#: A change in either direction.
CHANGES = (Verdict.REGRESSED, Verdict.IMPROVED)


def judge(
    base: Sample,
    contender: Sample,
    rules: Rules,
    level: float,
    changes: Collection[Verdict] = CHANGES,
) -> Judgement:
    """The verdict on one case, with the figures that it rests on.

    Args:
        base: its launches.
        contender: its launches on the other side.
        rules: when a difference is a change.
        level: of this test alone.
        changes: what is tested for.
    """
    base_s, contender_s = base.values_s, contender.values_s
    ratio = statistics.ratio(base_s, contender_s)
    low, high = statistics.interval(base_s, contender_s, rules.confidence, rules.seed)
    threshold = rules.threshold if contender.threshold is None else contender.threshold
    p = {
        Verdict.REGRESSED: statistics.p_slower(base_s, contender_s, rules.margin),
        Verdict.IMPROVED: statistics.p_slower(contender_s, base_s, rules.margin),
    }
    tested = min(changes, key=p.__getitem__)
    size = ratio if tested is Verdict.REGRESSED else 1 / ratio
    visible = statistics.smallest_visible(base_s, contender_s, rules.margin, level)
    unseen = visible is None or visible > rules.widest
    verdict, reason = Verdict.UNCHANGED, ""
    if base.contended or contender.contended:
        verdict, reason = Verdict.INCONCLUSIVE, "other processes took its processors"
    elif p[tested] <= level and size >= 1 + threshold:
        verdict = tested
    elif high / low > 1 + rules.widest and unseen:
        verdict, reason = Verdict.INCONCLUSIVE, "its launches spread too far"
    return Judgement(
        contender.key,
        contender.name,
        contender.framework,
        verdict,
        reason,
        ratio,
        low,
        high,
        tested,
        p[tested],
        None if visible is None else max(visible, threshold),
        threshold,
        base_s,
        contender_s,
    )


#: With fewer a side, not even one case differs from chance at any usual significance level.
LAUNCHES_AT_LEAST = 5


def compare(
    base: SampleSet, contender: SampleSet, rules: Rules, notes: Sequence[str] = ()
) -> Comparison:
    """Compare two stored runs, case by case.

    Args:
        base: the baseline; its own drift between sessions widens the margin.
        contender: what is compared with it.
        rules: when a difference is a change.
        notes: what else a reader must know.

    Raises:
        TooFewLaunches: no case has enough, or no change could be shown in so many cases.
    """
    common = [key for key in contender.samples if key in base.samples]
    ready = [key for key in common if _launches(base, contender, key) >= LAUNCHES_AT_LEAST]
    if common and not ready:
        most = max(_launches(base, contender, key) for key in common)
        raise TooFewLaunches(
            f"{base.name} and {contender.name} have {most} launches of a case at most, and a "
            f"comparison needs {LAUNCHES_AT_LEAST} on both sides; measure both with "
            f"--fw-launches {LAUNCHES_AT_LEAST}"
        )
    level = level_of_each(rules.level, [_launches(base, contender, key) for key in ready])
    judgements = []
    for key in common:
        before, after = base.samples[key], contender.samples[key]
        if key in ready:
            margin = max(rules.margin, base.drift.get(key, 0.0))
            own = dataclasses.replace(rules, margin=margin)
            judgements.append(judge(before, after, own, level))
        else:
            few = f"only {_launches(base, contender, key)} launches"
            judgements.append(unjudged(after, Verdict.INCONCLUSIVE, few))
    return Comparison(
        base.name,
        contender.name,
        [*judgements, *one_sided(base, contender)],
        dataclasses.asdict(rules),
        notes,
    )


def _launches(base: SampleSet, contender: SampleSet, key: str) -> int:
    """The launches of a case on the side that has fewer."""
    samples = (base.samples[key], contender.samples[key])
    return min(len(sample.values_s) if sample.launched else 1 for sample in samples)


def level_of_each(level: float, launches: Sequence[int]) -> float:
    """The level of each test, so that all together keep the level (Bonferroni).

    Args:
        level: of all together.
        launches: of each case, on the side that has fewer.

    Raises:
        TooFewLaunches: a case could not reach it, whatever its times.
    """
    if not launches:
        return level
    own = level / len(launches)
    fewest = min(launches)
    if statistics.smallest_p(fewest, fewest) > own:
        raise TooFewLaunches(
            f"{fewest} launches a side cannot show a change among {len(launches)} cases at a level "
            f"of {level:g}: {statistics.launches_needed(own)} launches a side are needed, or fewer "
            "cases (-k), or a higher level (--level)"
        )
    return own


def one_sided(base: SampleSet, contender: SampleSet) -> list[Judgement]:
    """The cases that one side alone has: missing, or new.

    Args:
        base: the baseline.
        contender: what is compared with it.
    """
    lost = {k: s for k, s in base.samples.items() if k not in contender.samples}
    added = {k: s for k, s in contender.samples.items() if k not in base.samples}
    renamed = {sample.work: key for key, sample in added.items()}
    missing = [
        unjudged(
            sample,
            Verdict.MISSING,
            contender.unmeasured.get(key)
            or (
                f"renamed to {renamed[sample.work]}?" if sample.work in renamed else "not collected"
            ),
        )
        for key, sample in lost.items()
    ]
    new = [
        unjudged(
            sample, Verdict.NEW, f"the base's {why}" if (why := base.unmeasured.get(key)) else ""
        )
        for key, sample in added.items()
    ]
    return [*missing, *new, *_nowhere(base, contender)]


def _nowhere(base: SampleSet, contender: SampleSet) -> list[Judgement]:
    """Judge the cases that neither side could measure, and that no side deselected."""
    both = base.unmeasured.keys() & contender.unmeasured.keys()
    lost = sorted(both - base.samples.keys() - contender.samples.keys())
    why = {key: contender.unmeasured[key] for key in lost}
    return [
        Judgement(key, key, "", Verdict.MISSING, f"{reason}, on both sides")
        for key, reason in why.items()
        if not reason.startswith(("deselected", "skipped"))
    ]


def unjudged(sample: Sample, verdict: Verdict, reason: str) -> Judgement:
    """The judgement of a case whose times say nothing.

    Args:
        sample: of the side that has it.
        verdict: missing, new or inconclusive.
        reason: why there is no other verdict.
    """
    return Judgement(sample.key, sample.name, sample.framework, verdict, reason)
