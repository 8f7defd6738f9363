"""What probes find out about a case: part of its record (:mod:`fwbench.records.facts`)."""

from __future__ import annotations

from fwbench.frameworks.profiler import CLASSES
from fwbench.records.table import FRACTION, NOT_NEGATIVE, POSITIVE, Table, fact, one_of
from fwbench.records.units import COUNT, SECONDS, SHARE


class ProfiledOperator(Table):
    """An operator in the calls that were profiled."""

    name: str = fact("name, as the framework's profiler has it")
    operator_class: str = fact("class of the operator", check=one_of(*CLASSES))
    time_s: float = fact("own time in a call", SECONDS, NOT_NEGATIVE)
    calls: float = fact("how often a call calls it", COUNT, NOT_NEGATIVE)


class Profile(Table):
    """Where the time of a call goes, by the framework's own profiler."""

    gap: str | None = fact("why nothing was profiled")
    calls: int | None = fact("calls that were profiled, none of them timed", COUNT, POSITIVE)
    call_s: float | None = fact("median time of a call under the profiler", SECONDS, POSITIVE)
    operators_s: float | None = fact("own times of all operators in a call", SECONDS, NOT_NEGATIVE)
    shares: dict[str, float] | None = fact(
        "share of that time by class of operators", SHARE, FRACTION
    )
    operators: list[ProfiledOperator] | None = fact("the ten operators that take most of it")
    trace: str | None = fact("file for Perfetto, in the folder of traces")
