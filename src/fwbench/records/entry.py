"""Records: what is kept of a measured case, on the wire, in the journal and in the JSON.

A record is pytest-benchmark's own entry with ``extra_info["fwbench"]``. It travels on the test
report of its case, is appended to the session's journal when it arrives, and ends in
pytest-benchmark's JSON.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fwbench.frameworks.contract import Framework
from fwbench.grid import Cell
from fwbench.manifest import Manifest
from fwbench.measure.clock import Clock

#: Version of what stands under ``extra_info["fwbench"]``.
SCHEMA = 1


_ITEMSIZE_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}


def facts(cell: Cell, framework: Framework, manifest: Manifest) -> dict[str, Any]:
    """What a record says of a case beside its times."""
    cost = cell.workload.cost_of(cell.direction, cell.size)
    return {
        "schema": SCHEMA,
        **cell.params,
        "framework_version": framework.version,
        "device_name": manifest.device(cell.device).model,
        "threads": framework.threads(),
        "threshold": cell.threshold,
        "toggles": {
            **framework.toggles(),
            **_variables(framework.variables),
            **{name: cell.toggle(name) for name in sorted(cell.workload.toggles)},
            **dict(cell.toggles),
        },
        "flops": None if cost is None else cost.flops,
        "bytes": None if cost is None else cost.bytes_moved(_ITEMSIZE_BYTES[cell.dtype]),
    }


def work_of(facts: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is the same work, whatever tables are grouped by: workload to size, and the data."""
    data = facts.get("data")
    parts = ("workload", "device", "direction", "dtype", "size")
    return (
        *(facts.get(part) for part in parts),
        data.get("digest") if isinstance(data, Mapping) else None,
    )


def _variables(prefixes: tuple[str, ...]) -> dict[str, str]:
    """The environment variables that change this framework's speed."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(prefixes)}


def times(rounds_s: Sequence[float], iterations: int, clock: Clock) -> dict[str, float]:
    """What the rounds just measured say, and how busy the machine was (its load over a minute).

    Args:
        rounds_s: completion time per call of each round.
        iterations: calls per round.
        clock: that timed them.
    """
    load, _, _ = os.getloadavg()
    return {**clock.facts(rounds_s, iterations), "load": load}
