"""Causes of changes: the facts of a case that differ between both sides.

Which facts these are, and by how much they must differ, is in ``causes.toml``. What profiles have
found comes from :mod:`fwbench.gate.profiles`.
"""

import math
import statistics
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from fwbench.errors import some
from fwbench.gate.cold_start import cold_start_causes
from fwbench.gate.explanation import Cause, CauseKind, Explanation
from fwbench.gate.functions import function_causes
from fwbench.gate.profiles import profile_causes
from fwbench.gate.samples import METRICS, SampleSet
from fwbench.gate.verdicts import CHANGES, Comparison, Judgement, Verdict, VersionChange
from fwbench.processes.session import SIDES
from fwbench.records.facts import CaseFacts
from fwbench.records.measurement import MEMORY, MEMORY_BEFORE, Measurement, group_by
from fwbench.records.session_facts import MachineFacts
from fwbench.records.stored import StoredRun

#: Times that stand for a case; other metrics are named with it.
_TIMES = tuple(metric.name for metric in METRICS if metric.is_time)

#: Metrics in bytes.
BYTES = (MEMORY, MEMORY_BEFORE)

#: Facts that a profile gives.
_PROFILED = ("profile", "sampled")

_ONE_SIDED = (Verdict.MISSING, Verdict.NEW)

#: Profiles of the base, and of the contender; None where there are none.
Profiles = tuple[StoredRun | None, StoredRun | None]

#: Seconds of a call of the base, and of the contender.
Times = tuple[float, float]

#: Finds causes in the profiles of a case, and says what could not be looked at.
Profiled = Callable[[Measurement, Measurement, Times], tuple[list[Cause], list[str]]]


@dataclass(frozen=True)
class CauseRow:
    """A row of ``causes.toml``, which explains its fields."""

    kind: CauseKind
    path: str
    words: str = ""
    share: float = 0.0
    least: float = 0.0
    absent: str = ""
    plain: bool = False

    def value(self, measurements: Iterable[Measurement]) -> Any:
        """The fact of one side's launches: median number, usual word, or the first's table."""
        values = [value for each in measurements if (value := self._read(each)) is not None]
        if not values or isinstance(values[0], Mapping | list):
            return next(iter(values), None)
        if isinstance(values[0], int | float) and not isinstance(values[0], bool):
            return statistics.median_low(values)
        return statistics.mode(values)

    def _read(self, measurement: Measurement) -> Any:
        value: Any = measurement
        if self.plain and measurement.facts:
            return None
        for name in self.path.split("."):
            value = None if value is None else getattr(value, name)
        return value

    def differences(self, base: Any, contender: Any) -> Iterator[str]:
        """Words for each thing that differs; nothing where one side does not know the fact."""
        if isinstance(base, Mapping) and isinstance(contender, Mapping):
            for name in dict.fromkeys((*base, *contender)):
                before, after = (side.get(name, self.absent or None) for side in (base, contender))
                if before != after and before is not None and after is not None:
                    yield f"{self.words} {name}: {before} -> {after}".lstrip()
            return
        before, after = (self.absent or None if v is None else v for v in (base, contender))
        if before is not None and after is not None and self._differ(before, after):
            yield f"{self.words}: {self._shown(before, after)}"

    def _differ(self, base: Any, contender: Any) -> bool:
        if isinstance(base, bool | str | list) or isinstance(contender, str):
            return bool(base != contender)
        difference = abs(contender - base)
        return bool(difference > max(self.least, self.share * max(abs(base), abs(contender))))

    def _shown(self, base: Any, contender: Any) -> str:
        """Both values in their unit; exactly where that would look alike."""
        texts = [self._text(value) for value in (base, contender)]
        if texts[0] == texts[1]:
            texts = [f"{value:,.6g}" for value in (base, contender)]
        return " -> ".join(texts)

    def _text(self, value: Any) -> str:
        if isinstance(value, list):
            return ", ".join(map(str, value)) or "nothing"
        if isinstance(value, bool):
            return "yes" if value else "no"
        declared = {**MachineFacts.declared(), **CaseFacts.declared()}.get(self.path.split(".")[-1])
        return str(value) if declared is None else declared.unit.show(value)


@cache
def _rows() -> list[CauseRow]:
    """The rows of ``causes.toml``."""
    text = (resources.files(__package__) / "causes.toml").read_text("utf-8")
    return [
        CauseRow(CauseKind(kind), path, **({"words": row} if isinstance(row, str) else row))
        for kind, rows in tomllib.loads(text).items()
        for path, row in rows.items()
    ]


def stored_causes(
    base: Sequence[Measurement], contender: Sequence[Measurement]
) -> tuple[list[Cause], list[str]]:
    """Facts of a case that differ between both sides, and the kinds that were not recorded.

    Args:
        base: the same case in each launch or session of the base.
    """
    causes: list[Cause] = []
    known: dict[str, set[CauseKind]] = {side: set() for side in SIDES}
    for row in _rows():
        values = row.value(base), row.value(contender)
        causes += [Cause(row.kind, text) for text in row.differences(*values)]
        for side, value in zip(SIDES, values, strict=True):
            known[side] |= set() if value is None else {row.kind}
    return causes, [*_unrecorded(known)]


def _unrecorded(known: Mapping[str, Collection[CauseKind]]) -> Iterator[str]:
    """Kinds of facts of which at least one side has none."""
    kinds = dict.fromkeys(row.kind for row in _rows())
    lacking = group_by(kinds, lambda kind: tuple(s for s in SIDES if kind not in known[s]))
    for sides, alike in lacking.items():
        if sides:
            yield f"{', '.join(alike)}: not recorded on {_named(sides)} side"


def _named(sides: Sequence[str]) -> str:
    return "either" if len(sides) == len(SIDES) else f"the {sides[0]}'s"


@dataclass(frozen=True)
class ExplainedChange:
    """An explanation with the judgement that it is of."""

    explanation: Explanation
    judgement: Judgement
    #: The change above which there is none, as a share, and infinite if none would have shown; None
    #: of a case that has changed, or may have.
    nothing_above: float | None = None


def judged(comparison: Comparison) -> list[Judgement]:
    """The judgement that stands for each case that both sides have: of its time if it can."""
    verdicts = comparison.verdicts
    of_case: dict[str, Judgement] = {}
    for each in sorted(comparison.judgements, key=lambda each: each.metric not in _TIMES):
        if each.verdict is verdicts[each.key] and each.verdict not in _ONE_SIDED:
            of_case.setdefault(each.key, each)
    order = {verdict: place for place, verdict in enumerate(Verdict)}
    size = {each.key: abs(math.log(each.ratio or 1.0)) for each in of_case.values()}
    return sorted(of_case.values(), key=lambda each: (order[each.verdict], -size[each.key]))


def has_changed(judgement: Judgement) -> bool:
    """True of a change, and of sides whose work is not equal or has different results."""
    is_unequal = judgement.ratio is None and judgement.reason.startswith("not equal work")
    return is_unequal or judgement.verdict in (*CHANGES, Verdict.DIFFERENT)


def may_have_changed(judgement: Judgement) -> bool:
    """True of a change, and of a time that differs by more than its threshold."""
    if not judgement.ratio or judgement.threshold is None or judgement.metric not in _TIMES:
        return has_changed(judgement)
    return max(judgement.ratio, 1 / judgement.ratio) > 1 + judgement.threshold


def recorded_causes(
    base: Measurement, contender: Measurement, times_s: Times, *, by_turns: bool = False
) -> tuple[list[Cause], list[str]]:
    """Causes in the samples of functions where either side has some, or else in operators.

    Args:
        times_s: of a call.
        by_turns: whether these were compared by turns, so that nothing else is between them.
    """
    if any(side.facts.sampled is not None for side in (base, contender)):
        return function_causes(base, contender, times_s, by_turns=by_turns)
    return profile_causes(base, contender)


def explained(
    judgements: Iterable[Judgement],
    base: Sequence[SampleSet],
    contender: Sequence[SampleSet],
    versions: Sequence[VersionChange] = (),
    profiled: Profiled = recorded_causes,
) -> list[ExplainedChange]:
    """The explanation of each of these judgements.

    Args:
        base: the launches, or sessions, of the base.
        versions: packages that differ between sides that were built.
        profiled: finds causes in profiles; by default in those that the records have.
    """
    return [_explained(each, (base, contender), versions, profiled) for each in judgements]


def _explained(
    judgement: Judgement,
    runs: tuple[Sequence[SampleSet], Sequence[SampleSet]],
    versions: Sequence[VersionChange],
    profiled: Profiled,
) -> ExplainedChange:
    key, metric = judgement.key, judgement.metric
    sides = [[run.samples[key] for run in side if key in run.samples] for side in runs]
    base_s, contender_s = (statistics.median(each.median_s for each in side) for side in sides)
    if judgement.ratio is not None and metric not in BYTES:
        base_s, contender_s = map(statistics.median, (judgement.base, judgement.contender))
    is_named = metric and metric not in (*_TIMES, *BYTES)
    name = f"{judgement.name}, {metric}" if is_named else judgement.name
    causes, gaps = stored_causes(*sides)
    if versions:
        causes.append(Cause(CauseKind.BUILD, f"packages: {some([*map(str, versions)])}"))
    above = _nothing_above(judgement)
    if above is None:
        first = sides[0][0], sides[1][0]
        found = [cold_start_causes(*(side.facts for side in first))]
        # Profiles are of warm calls; and an import has nothing to profile but its parts.
        if metric in ("", *_TIMES) and not any(cause.time_s for cause in found[0][0]):
            found.append(profiled(*first, (base_s, contender_s)))
        for more, unseen in found:
            causes, gaps = [*causes, *more], [*gaps, *unseen]
    order = [*CauseKind]
    causes.sort(key=lambda cause: (order.index(cause.kind), -abs(cause.time_s or 0.0)))
    explanation = Explanation(key, name, base_s, contender_s, causes, gaps)
    return ExplainedChange(explanation, judgement, above)


def _nothing_above(judgement: Judgement) -> float | None:
    if judgement.ratio is None or may_have_changed(judgement):
        return None
    return math.inf if judgement.visible is None else smallest(judgement)


def smallest(judgement: Judgement) -> float:
    """The smallest change that counts, and would have shown, as a share."""
    return max(judgement.threshold or 0.0, judgement.visible or 0.0)


def profiled_causes(
    runs: Profiles, base: Measurement, contender: Measurement, times_s: Times
) -> tuple[list[Cause], list[str]]:
    """Causes in the profiles of a case that were measured after its verdict, and gaps."""
    sides = {
        name: replace(side, facts=side.facts | _profiled(record.facts))
        for name, run, side in zip(SIDES, runs, (base, contender), strict=True)
        for record in (run.records if run else ())
        if record.key == side.key
    }
    lacking = [name for name in SIDES if name not in sides]
    if lacking:
        return [], [f"no profile was measured on {_named(lacking)} side"]
    return recorded_causes(sides[SIDES[0]], sides[SIDES[1]], times_s, by_turns=True)


def _profiled(facts: CaseFacts) -> CaseFacts:
    """Facts of the profile alone: a session that profiles does not measure times to be read."""
    return facts.unchecked({name: facts[name] for name in _PROFILED if name in facts})
