"""Where the time of a call goes: a few calls under the framework's own profiler, none timed."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from pathlib import Path

from fwbench.cases.case import Case
from fwbench.errors import ProbeError
from fwbench.frameworks.profiler import Operator, Profiler, together
from fwbench.measure.clock import Clock
from fwbench.records.facts import CaseFacts, Profile, ProfiledOperator

#: Calls before the profiler begins, which compile and allocate.
_BEFORE = 3

#: Calls under the profiler.
_CALLS = 3

#: Operators that are kept by their names.
_SHOWN = 10

_NOT_IN_NAMES = re.compile(r"[^\w.-]+")


def profile(case: Case, clock: Clock, folder: Path) -> CaseFacts:
    """The profile of a case, whose trace is written.

    Args:
        case: which; it is bound, and neither verified nor timed.
        clock: waits for the case's device.
        folder: for the trace.

    Raises:
        ProbeError: the framework has no profiler, or it has seen nothing.
    """
    profiler = _profiler(case)
    trace = folder / f"{_NOT_IN_NAMES.sub('-', case.cell.id)}.json"
    run = case.bind().run
    for _ in range(_BEFORE):
        clock.time(run)
    calls_s: list[float] = []

    def work() -> None:
        calls_s.extend(clock.time(run)[0] for _ in range(_CALLS))

    operators = together(profiler.profile(work, trace))
    if not any(each.time_s for each in operators):
        raise ProbeError(f"the profiler of {case.framework.name} has seen no operator")
    found = _shares(operators) | Profile(
        calls=_CALLS, call_s=statistics.median(calls_s), trace=trace.name
    )
    return CaseFacts(profile=found)


def _profiler(case: Case) -> Profiler:
    name = case.framework.name
    try:
        profiler = case.framework.profiler(case.cell.device)
    except ImportError as error:
        raise ProbeError(f"the profiler of {name} cannot be imported: {error}") from error
    if profiler is None:
        raise ProbeError(f"{name} has no profiler")
    return profiler


def _shares(operators: Sequence[Operator]) -> Profile:
    """Shares of the time by class, and the operators that take most of it."""
    total_s = sum(each.time_s for each in operators)
    shares: dict[str, float] = {}
    for each in operators:
        shares[each.operator_class] = shares.get(each.operator_class, 0.0) + each.time_s / total_s
    return Profile(
        operators_s=total_s / _CALLS,
        shares={name: min(1.0, share) for name, share in shares.items()},
        operators=[
            ProfiledOperator(
                name=each.name,
                operator_class=each.operator_class,
                time_s=each.time_s / _CALLS,
                calls=each.calls / _CALLS,
            )
            for each in operators[:_SHOWN]
        ],
    )
