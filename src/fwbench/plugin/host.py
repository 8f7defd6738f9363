"""Everything that is taken from inside pytest-benchmark, so that its next release is this file's.

pytest-benchmark has no public way to its session, to the records of another process, or to the loop
that makes a round. Nothing else of fwbench touches a private name of it.
"""

from __future__ import annotations

import pstats
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_benchmark import __version__
from pytest_benchmark.fixture import BenchmarkFixture
from pytest_benchmark.stats import Metadata

from fwbench.records import launches

#: Of pytest-benchmark, for what is written in its format.
version = __version__


def of(benchmark: BenchmarkFixture) -> dict[str, Any] | None:
    """A measured case as plain values; None if nothing was measured."""
    if not benchmark.stats or benchmark.has_error:
        return None
    profile = benchmark.stats.cprofile_stats
    return {
        "entry": benchmark.stats.as_dict(include_data=True),
        "cprofile": [(where, what[:4]) for where, what in profile.stats.items()]
        if profile
        else None,
    }


def restore(record: Mapping[str, Any]) -> Metadata:
    """A record as pytest-benchmark's own object, for its tables, comparisons and files."""
    entry = record["entry"]
    fixture = SimpleNamespace(
        **{name: entry[name] for name in ("name", "fullname", "group", "param", "params")},
        extra_info=entry["extra_info"],
        cprofile_stats=None,
        has_error=False,
    )
    metadata = Metadata(fixture, iterations=entry["stats"]["iterations"], options=entry["options"])
    metadata.stats.data = entry["stats"]["data"]
    if record["cprofile"] is not None:
        # pstats reads anything that looks like a profiler; callers are not kept.
        functions = {tuple(where): (*what, {}) for where, what in record["cprofile"]}
        profiler = SimpleNamespace(create_stats=lambda: None, stats=functions)
        metadata.cprofile_stats = pstats.Stats(profiler)  # type: ignore[arg-type]
    return metadata


def with_statistics(entry: launches.Entry) -> dict[str, Any]:
    """An entry with all statistics, which one that was merged from launches has not."""
    if "launches" not in entry.get("extra_info", {}).get("fwbench", {}):
        return dict(entry)
    complete = restore({"entry": entry, "cprofile": None}).as_dict(include_data=True)
    return {**entry, "stats": complete["stats"]}


def benchmark_session(config: pytest.Config) -> Any:
    """pytest-benchmark's session; it has no public way in."""
    return config._benchmarksession  # type: ignore[attr-defined] # noqa: SLF001
