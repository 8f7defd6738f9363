"""Results of probes: part of a case's record (:mod:`fwbench.records.facts`)."""

from __future__ import annotations

from fwbench.frameworks.profiler import CLASSES
from fwbench.records.checks import FRACTION, NOT_NEGATIVE, POSITIVE, one_of
from fwbench.records.table import Table, fact
from fwbench.records.units import BYTES, COUNT, SECONDS, SHARE

_NO_PROC = "where the system does not tell"


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


class Memory(Table):
    """The memory of a process that has made a few calls of a case, and nothing else."""

    gap: str | None = fact("why nothing was measured")
    before_bytes: int | None = fact(
        "memory of the process before the work was bound: interpreter and framework", BYTES,
        NOT_NEGATIVE, null=_NO_PROC,
    )  # fmt: skip
    bound_bytes: int | None = fact(
        "memory of the process with the model built, or the inputs placed", BYTES, NOT_NEGATIVE,
        null=_NO_PROC,
    )  # fmt: skip
    peak_bytes: int | None = fact(
        "peak memory of the process in the calls", BYTES, NOT_NEGATIVE, null=_NO_PROC
    )
    device_peak_bytes: int | None = fact(
        "peak memory of the device", BYTES, NOT_NEGATIVE, null="where the framework does not tell"
    )
    planned_bytes: int | None = fact(
        "memory that the framework's planner reserves for results; of one framework only",
        BYTES, NOT_NEGATIVE, null="where there is no planner",
    )  # fmt: skip
    planned_by_strategy: dict[str, int] | None = fact(
        "the same by what MXNet's planner shares: `in place` and `both` are its own plans, `none` "
        "and `co-share` are computed from the log of `both`", BYTES, NOT_NEGATIVE,
    )  # fmt: skip
    saved_bytes: int | None = fact(
        "memory of the tensors that are kept for the backward pass, parameters apart", BYTES,
        NOT_NEGATIVE, null="where the framework does not tell",
    )  # fmt: skip
    saved_tensors: int | None = fact(
        "how many these are", COUNT, NOT_NEGATIVE, null="where the framework does not tell"
    )

    @property
    def above_bytes(self) -> int | None:
        """The peak above what was held before."""
        if self.peak_bytes is None or self.before_bytes is None:
            return None
        return max(0, self.peak_bytes - self.before_bytes)

    @property
    def calls_bytes(self) -> int | None:
        """The peak above what was held with the model built, or the inputs placed."""
        if self.peak_bytes is None or self.bound_bytes is None:
            return None
        return max(0, self.peak_bytes - self.bound_bytes)
