"""pytest-benchmark's own part of a stored run, as far as fwbench reads it; declared once."""

from datetime import UTC, datetime
from typing import Any

from fwbench.records.table import Check, Table, fact


class Upstream(Table):
    """Facts of pytest-benchmark's, which has others."""

    def is_known(self, name: str) -> bool:
        """All other keys are pytest-benchmark's own."""
        return True


class Statistics(Upstream):
    """pytest-benchmark's statistics, as far as they are read."""

    strict = True

    data: list[float] | None = fact()
    min: float | None = fact()
    median: float | None = fact()
    q1: float | None = fact()
    q3: float | None = fact()
    rounds: int | None = fact()
    iterations: int | None = fact()


class Entry(Upstream):
    """pytest-benchmark's entry of a benchmark, as far as it is read."""

    strict = True

    fullname: str = fact()
    name: str | None = fact()
    param: str | None = fact()
    params: dict[str, Any] | None = fact()
    group: str | None = fact()
    extra_info: dict[str, Any] | None = fact()


class LaunchRounds(Upstream):
    """pytest-benchmark's statistics of a single launch, as far as merging launches needs them."""

    data: list[float] = fact()
    iterations: int = fact()


class LaunchEntry(Upstream):
    """pytest-benchmark's entry of a single launch, as far as merging launches needs it."""

    strict = True

    name: str = fact()
    param: str = fact()
    params: dict[str, Any] = fact()
    group: str = fact()
    options: dict[str, Any] = fact()
    stats: LaunchRounds = fact()


class Processor(Upstream):
    """pytest-benchmark's facts of the CPU, as far as they are read."""

    brand_raw: str | None = fact()


class MachineInfo(Upstream):
    """pytest-benchmark's facts of the machine, as far as they are read."""

    cpu: Processor | None = fact()
    system: str | None = fact()
    python_version: str | None = fact()


class CommitInfo(Upstream):
    """pytest-benchmark's facts of the revision, as far as they are read."""

    id: str | None = fact()
    branch: str | None = fact()
    dirty: bool | None = fact()


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return True


class RunInfo(Upstream):
    """pytest-benchmark's facts of a run as a whole, as far as they are read."""

    datetime: str | None = fact(Check("in ISO 8601", _is_moment))
    machine_info: MachineInfo | None = fact()
    commit_info: CommitInfo | None = fact()
