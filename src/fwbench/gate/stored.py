"""Judges stored runs: sessions of different times, which make no pairs; keeps a project's baseline.

Between two sessions a machine changes by more than its launches show, and so the session is the
unit: a base of one session informs, and decides nothing.
"""

import itertools
import math
import shutil
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import numpy as np
from scipy.special import nctdtrinc, stdtr, stdtrit

from fwbench import project
from fwbench.errors import StorageError, UnreadableRun, UsageError, some
from fwbench.gate import verdicts
from fwbench.gate.samples import METRICS, Metric, SampleSet, each_once, read, together, unequal_work
from fwbench.gate.verdicts import (
    DISTURBED,
    Comparison,
    Judgement,
    Rules,
    Verdict,
    one_sided,
    unjudged,
)
from fwbench.records.measurement import MEMORY, MEMORY_BEFORE, Measurement
from fwbench.records.session_facts import FAILED, LEFT_OUT
from fwbench.records.stored import files_of
from fwbench.records.units import count

#: Of fewer nobody knows how far the sessions of a machine are apart.
SESSIONS_AT_LEAST = 2

#: Standard deviation that sessions are taken to have at least, as a part of the default threshold:
#: three had 8 MiB each, and a fourth one, of the same code, 15.
_LEAST_SPREAD = 0.25

_NOUN = ("session", "sessions")

#: Medians of so many times as many launches do not scatter alike.
_LAUNCHES_ALIKE = 2

#: Figures that depend on what was measured before in the process.
_OF_PLACE = ("first call", MEMORY, MEMORY_BEFORE)

#: Share of the comparisons that show a detectable change.
_DETECTED = 0.9

#: The largest change that is looked for.
_TENFOLD = math.log(10)

#: Bounds are given up to here: a factor of a million.
_FARTHEST = math.log(1e6)


@dataclass(frozen=True)
class SessionRatio:
    """Difference of the mean logarithms of two sides, by Student's t with a common variance.

    Student, "The probable error of a mean", Biometrika 6, 1908. One value is one session.
    """

    #: The logarithm of the ratio.
    change: float
    #: Its standard error; infinite where no side has two values.
    error: float
    freedom: int

    @classmethod
    def between(cls, base: Sequence[float], contender: Sequence[float], least: float) -> Self:
        """The difference of the contender from the base.

        Args:
            base: figures above 0.
            least: standard deviation that sessions have at least: figures that are counted in pages
                or ticks agree exactly, until they do not.
        """
        sides = [np.log(np.asarray(side, dtype=float)) for side in (base, contender)]
        change = float(sides[1].mean() - sides[0].mean())
        freedom = sum(side.size - 1 for side in sides)
        if not freedom:
            return cls(change, math.inf, 0)
        variance = sum(float(np.square(side - side.mean()).sum()) for side in sides) / freedom
        error = max(math.sqrt(variance), least) * math.sqrt(sum(1 / side.size for side in sides))
        return cls(change, error, freedom)

    @property
    def ratio(self) -> float:
        """The contender's figure over the base's."""
        return math.exp(self.change)

    @property
    def p(self) -> float:
        """Probability that equal sides look at least as different, in this direction."""
        return float(stdtr(self.freedom, -abs(self.change) / self.error)) if self.freedom else 0.5

    def is_beyond(self, threshold: float) -> bool:
        """True if it is a change by a threshold or more, in either direction."""
        return abs(self.change) >= math.log1p(threshold)

    def interval(self, confidence: float) -> tuple[float | None, float | None]:
        """Lower and upper bound of the ratio, which both hold with this confidence."""
        if not self.freedom:
            return None, None
        width = float(stdtrit(self.freedom, (1 + confidence) / 2)) * self.error
        return _exp(self.change - width), _exp(self.change + width)

    def detectable(self, threshold: float, level: float) -> float | None:
        """The slow-down, as a share, that nine of ten would show; None beyond tenfold times."""
        if not self.freedom:
            return None
        critical, usual = stdtrit(self.freedom, [1 - level, _DETECTED])
        # Beyond chance, by the noncentral t of changed sides; and beyond the threshold.
        significant = nctdtrinc(self.freedom, 1 - _DETECTED, critical) * self.error
        change = float(max(significant, math.log1p(threshold) + usual * self.error))
        return math.exp(change) - 1 if change <= _TENFOLD else None


def _exp(change: float) -> float:
    """A ratio, within the numbers that JSON has."""
    return math.exp(max(min(change, _FARTHEST), -_FARTHEST))


def compare(
    base: SampleSet, contender: SampleSet, rules: Rules, notes: Sequence[str] = ()
) -> Comparison:
    """Compare the sessions of two stored runs, case by case; the margin of rules is not used."""
    # A case that fails in one session is broken, though it passes in the others.
    sound = {
        k: s for k, s in contender.samples.items() if contender.unmeasured.get(k) not in FAILED
    }
    contender = replace(contender, samples=sound)
    pairs = {
        key: (base.samples[key], sample)
        for key, sample in contender.samples.items()
        if key in base.samples
    }
    level = rules.level / max(len(pairs), 1)
    sessions = [session for side in (base, contender) for session in side.sessions or [side]]
    elsewhere = _in_another_place(sessions, pairs)
    judgements = [
        judgement
        for key, pair in pairs.items()
        for judgement in _judgements(
            *pair, rules, level, _unequal(base, contender, key), in_place=key not in elsewhere
        )
    ]
    return Comparison(
        base.name,
        contender.name,
        [*judgements, *one_sided(base, contender)],
        {**rules.recorded(), "margin": 0.0},
        [
            *_interruptions(base, contender),
            *_in_fewer_sessions(base, contender),
            *_unplaced(elsewhere, len(pairs)),
            *_power(judgements),
            *rules.marked(pairs.values()),
            *notes,
        ],
    )


def _judgements(
    base: Measurement,
    contender: Measurement,
    rules: Rules,
    level: float,
    unequal: str,
    *,
    in_place: bool,
) -> list[Judgement]:
    """The verdicts on one case, or the one reason why there is none."""
    if unequal:
        return [unjudged(contender, Verdict.INCONCLUSIVE, unequal)]
    return judge(base, contender, rules, level, in_place=in_place)


def _unequal(base: SampleSet, contender: SampleSet, key: str) -> str:
    """Why the times of a case are not comparable in any two sessions; empty if they are."""
    sides = [
        [session.samples[key] for session in side.sessions or [side] if key in session.samples]
        for side in (base, contender)
    ]
    numbers = sorted(len(sample.facts.launches or "1") for side in sides for sample in side)
    if base.sessions and contender.sessions and numbers[-1] > _LAUNCHES_ALIKE * numbers[0]:
        return (
            f"sessions of {numbers[0]} and of {numbers[-1]} launches: medians of few scatter more; "
            "measure all with the same --fw-launches"
        )
    return next(filter(None, itertools.starmap(unequal_work, itertools.product(*sides))), "")


def _in_another_place(sessions: Sequence[SampleSet], keys: Iterable[str]) -> list[str]:
    """The cases that came behind others in some sessions than in the rest.

    A first call may start threads and load libraries for all that follow, and memory is there for
    whoever comes later in the process.
    """
    places: dict[str, set[int]] = defaultdict(set)
    for session in sessions:
        before: dict[str, int] = defaultdict(int)
        for key, sample in session.samples.items():
            places[key].add(before[sample.framework])
            before[sample.framework] = hash((before[sample.framework], key))
    return [key for key in keys if len(places[key]) > 1]


def _unplaced(elsewhere: Sequence[str], cases: int) -> Iterable[str]:
    if elsewhere:
        yield (
            f"first calls and memory are not compared in {len(elsewhere)} of "
            f"{count(cases, 'case')}: sessions had measured other cases before"
        )


def _power(judgements: Sequence[Judgement]) -> Iterable[str]:
    of_times = [judgement for judgement in judgements if judgement.metric == METRICS[0].name]
    if not of_times:
        return
    most = (max(len(j.base) for j in of_times), max(len(j.contender) for j in of_times))
    sessions = " against ".join(count(number, *_NOUN) for number in most)
    if most[0] < SESSIONS_AT_LEAST:
        yield (
            f"{sessions}, for information only: sessions of the same work differ, too. Measure "
            f"{SESSIONS_AT_LEAST} or more of the base, or both sides in turns (fwbench ab)"
        )
        return
    if all(judgement.reason == DISTURBED for judgement in of_times):
        return
    slower = statistics.median_low(judgement.visible or math.inf for judgement in of_times)
    change = "not even ten times the time" if slower == math.inf else f"a slow-down by {slower:.0%}"
    yield f"{sessions}: {change} would have shown in half of the cases"


def _interruptions(*sides: SampleSet) -> Iterable[str]:
    for side in sides:
        if side.interrupted:
            lost = sorted(
                key
                for key, why in side.unmeasured.items()
                if key not in side.samples and not why.startswith(LEFT_OUT)
            )
            number = len(side.samples)
            yield (
                f"{side.name} was interrupted: {number} of {number + len(lost)} cases measured"
                + (f"; lost: {', '.join(lost)}" if lost else "")
            )


def _in_fewer_sessions(*sides: SampleSet) -> Iterable[str]:
    """A note on the cases that fewer sessions of a side have than others, and so tell less."""
    for side in sides:
        most = max((len(sample.launches) for sample in side.samples.values()), default=0)
        fewer = [
            f"{sample.label} in {len(sample.launches)}"
            for sample in side.samples.values()
            if len(sample.launches) < most
        ]
        if fewer:
            yield f"{side.name} has {count(most, *_NOUN)}, and not each case in all: {some(fewer)}"


def judge(
    base: Measurement, contender: Measurement, rules: Rules, level: float, *, in_place: bool = True
) -> list[Judgement]:
    """The verdicts on one case: one for each metric that enough sessions of both sides have.

    Args:
        in_place: whether the same cases came before it in all sessions.
    """
    times_alone = base.contended or contender.contended or len(base.launches) < SESSIONS_AT_LEAST
    judgements = [
        _judge(metric, base, contender, rules, level * metric.weight)
        for metric in METRICS
        if len(base.known(metric.name)) >= min(SESSIONS_AT_LEAST, len(base.launches))
        and contender.known(metric.name)
        and (metric.is_time or not times_alone)
        and (metric.name not in _OF_PLACE or in_place)
    ]
    judge_again = partial(judge, rules=rules, level=level, in_place=in_place)
    return verdicts.confirmed(judgements, base, contender, judge_again)


def _judge(
    metric: Metric, base: Measurement, contender: Measurement, rules: Rules, level: float
) -> Judgement:
    measured = base.known(metric.name), contender.known(metric.name)
    least = _LEAST_SPREAD * math.log1p(metric.threshold or Rules.threshold)
    before, after = map(metric.raised, measured)
    shift = SessionRatio.between(before, after, least)
    threshold = rules.threshold_of(metric, base)
    is_known = not (base.contended or contender.contended)  # else times are upper bounds
    visible = shift.detectable(threshold, level / 2) if is_known else None
    bounds = shift.interval(rules.confidence) if is_known else (None, None)
    verdict, reason = Verdict.INCONCLUSIVE, ""
    if len(measured[0]) < SESSIONS_AT_LEAST:
        reason = "the base has one session"
    elif not is_known:
        reason = DISTURBED
    elif shift.p <= level / 2 and shift.is_beyond(threshold):
        verdict = Verdict.REGRESSED if shift.ratio > 1 else Verdict.IMPROVED
    elif metric.looks_changed(shift.ratio, 1 + threshold):
        reason = "looks changed, but sessions of the same work can differ as much"
    elif metric.is_time and (visible is None or visible > rules.limit(threshold)):
        reason = "its sessions are too far apart"
    else:
        verdict = Verdict.UNCHANGED
    return Judgement(
        contender.key,
        contender.label,
        contender.framework,
        verdict,
        reason,
        metric.name,
        shift.ratio,
        *bounds,
        shift.p,
        visible,
        threshold,
        *measured,
    )


class Baseline:
    """The baseline of a project: sessions that somebody has chosen; nothing else becomes it."""

    def __init__(self, root: Path) -> None:
        self.folder = project.own_folder(root, "baseline")

    def run(self) -> SampleSet:
        """Its sessions as one run."""
        if not self.folder.is_dir():
            raise UsageError(
                f"there is no baseline under {self.folder.parent}; set one: fwbench baseline set "
                "FILE, with what --benchmark-json wrote; or name a run (fwbench gate BASELINE "
                "CONTENDER, pytest --fw-gate --benchmark-compare FILE)"
            )
        return read(self.folder)

    def set(self, files: Sequence[Path], *, anyway: bool = False) -> SampleSet:
        """Make sessions, files of ``--benchmark-json`` or folders of them, the new baseline."""
        sessions = [file for path in files for file in files_of(path)]
        run = together("baseline", each_once(sessions))
        if run.failures:
            raise UsageError(
                "a run that failed cannot become the baseline:\n  " + "\n  ".join(run.failures)
            )
        if not run.samples:
            raise UnreadableRun(f"{', '.join(map(str, files))}: there is no benchmark in it")
        if len({file.stem for file in sessions}) < len(sessions):
            raise UsageError("two of the files have one name; a baseline keeps them side by side")
        if not anyway and not any(map(_could_be_judged, run.samples.values())):
            raise UsageError(
                f"not one of {count(len(run.samples), 'case')} could be judged by this baseline: "
                f"{SESSIONS_AT_LEAST} sessions or more are needed, in which no other process took "
                "the processors; give their files together, or --anyway"
            )
        self._replace(sessions)
        return run

    def _replace(self, files: Sequence[Path]) -> None:
        new, old = self.folder.with_suffix(".new"), self.folder.with_suffix(".old")
        try:
            for leftover in (new, old):
                shutil.rmtree(leftover, ignore_errors=True)
            project.make_own_folder(new)
            for file in files:
                shutil.copyfile(file, new / file.with_suffix(".json").name)
            if self.folder.exists():
                self.folder.rename(old)
            new.rename(self.folder)
            shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            raise StorageError(f"cannot keep the baseline: {error.strerror}") from error


def _could_be_judged(sample: Measurement) -> bool:
    """True if another run of a case could be compared with this one."""
    return len(sample.launches) >= SESSIONS_AT_LEAST and not sample.contended
