"""pytest-benchmark's own part of a stored run, as far as fwbench reads it; declared once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fwbench.records.table import POSITIVE, Check, Table, fact
from fwbench.records.units import COUNT, SECONDS


class Upstream(Table):
    """Facts of pytest-benchmark's, which has others."""

    def is_known(self, name: str) -> bool:
        """All other keys are pytest-benchmark's own."""
        return True


class Statistics(Upstream):
    """pytest-benchmark's statistics, as far as they are read."""

    strict = True

    data: list[float] | None = fact("time of a call in each round", SECONDS, POSITIVE, filled=True)
    min: float | None = fact("the smallest of them", SECONDS, POSITIVE)
    median: float | None = fact("the median", SECONDS, POSITIVE)
    q1: float | None = fact("the lower quartile", SECONDS, POSITIVE)
    q3: float | None = fact("the upper quartile", SECONDS, POSITIVE)
    rounds: int | None = fact("how many rounds", COUNT, POSITIVE)
    iterations: int | None = fact("calls of a round", COUNT, POSITIVE)


class Entry(Upstream):
    """pytest-benchmark's entry of a benchmark, as far as it is read."""

    strict = True

    fullname: str = fact("node id of the test")
    name: str | None = fact("name of the test")
    param: str | None = fact("id of the case", null="without parameters")
    params: dict[str, Any] | None = fact("parameters of the test", null="without any")
    group: str | None = fact("group of the benchmark", null="without one")
    extra_info: dict[str, Any] | None = fact("what the test noted, and what fwbench recorded")


class LaunchRounds(Upstream):
    """pytest-benchmark's statistics of a single launch, as far as merging launches needs them."""

    data: list[float] = fact("time of a call in each round", SECONDS, POSITIVE, filled=True)
    iterations: int = fact("calls of a round", COUNT, POSITIVE)


class LaunchEntry(Upstream):
    """pytest-benchmark's entry of a single launch, as far as merging launches needs it."""

    strict = True

    name: str = fact("name of the test")
    param: str = fact("id of the case")
    params: dict[str, Any] = fact("parameters of the test")
    group: str = fact("group of the benchmark")
    options: dict[str, Any] = fact("options of the measurement")
    stats: LaunchRounds = fact("its rounds")


class Processor(Upstream):
    """pytest-benchmark's facts of the CPU, as far as they are read."""

    brand_raw: str | None = fact("model of the CPU")


class MachineInfo(Upstream):
    """pytest-benchmark's facts of the machine, as far as they are read."""

    cpu: Processor | None = fact("the CPU")
    system: str | None = fact("operating system")
    python_version: str | None = fact("version of Python")


class CommitInfo(Upstream):
    """pytest-benchmark's facts of the revision, as far as they are read."""

    id: str | None = fact("revision, or `unversioned`")
    branch: str | None = fact("branch")
    dirty: bool | None = fact("whether there were changes that were not committed")


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return False
    return True


class RunInfo(Upstream):
    """pytest-benchmark's facts of a run as a whole, as far as they are read."""

    datetime: str | None = fact("when the run was measured", check=Check("in ISO 8601", _is_moment))
    machine_info: MachineInfo | None = fact("the machine")
    commit_info: CommitInfo | None = fact("the revision")
