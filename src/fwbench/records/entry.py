"""Records: what is kept of a measured case, on the wire, in the journal and in the JSON.

A record is pytest-benchmark's own entry with ``extra_info["fwbench"]``. It travels on the test
report of its case, is appended to the session's journal when it arrives, and ends in
pytest-benchmark's JSON.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any

from fwbench.frameworks.contract import Framework
from fwbench.frameworks.variables import PLACEMENT
from fwbench.measure import condition
from fwbench.measure.clock import Clock
from fwbench.measure.limits import ITEMSIZE_BYTES
from fwbench.measure.nvml import Gpu
from fwbench.records.facts import SCHEMA, CaseFacts, GpuFacts
from fwbench.records.privacy import variables
from fwbench.terms.manifest import Manifest
from fwbench.terms.names import real_dtype
from fwbench.terms.toggles import TOGGLES
from fwbench.workloads.grid import Cell


def describe(
    cell: Cell, framework: Framework, manifest: Manifest, gpu: Gpu | None = None
) -> CaseFacts:
    """The facts of a case that do not depend on its times."""
    cost = cell.workload.cost_of(cell.direction, cell.size)
    facts = identity(cell) | CaseFacts(
        schema=SCHEMA,
        framework_version=framework.version,
        device_name=manifest.device(cell.device).model,
        gpu=None if gpu is None else GpuFacts(**gpu.identity()),
        threads=framework.threads(),
        composed=cell.workload.name in manifest.composed or None,
        threshold=cell.threshold,
        toggles={
            **_readable(framework.toggles),
            **variables(framework.variables),
            **{name: cell.toggle(name) for name in _own_toggles(cell)},
            **dict(cell.toggles),
        },
        libraries=_readable(lambda: framework.libraries),
        placement=variables(PLACEMENT) if cell.device != "cpu" else None,
        flops=None if cost is None else cost.flops,
        bytes=least_bytes(cell),
    )
    return facts.with_toggles(dict(cell.toggles))


def least_bytes(cell: Cell) -> float | None:
    """The bytes that a call of a case reads and writes at least; None where not declared."""
    cost = cell.workload.cost_of(cell.direction, cell.size)
    return None if cost is None else cost.bytes_moved(ITEMSIZE_BYTES[real_dtype(cell.dtype)])


def identity(cell: Cell) -> CaseFacts:
    """The facts that tell a case from others, which are known before it is measured."""
    return CaseFacts(
        workload=cell.workload.name,
        framework=cell.framework,
        device=cell.device,
        execution=cell.execution,
        direction=cell.direction,
        dtype=cell.dtype,
        size=cell.workload.number_of(cell.size),
        shape=None if isinstance(cell.size, int) else str(cell.size),
        family=cell.workload.family or None,
        toggles=dict(cell.toggles),
    )


def _own_toggles(cell: Cell) -> list[str]:
    """The workload's toggles, those of GPUs on GPUs alone."""
    on_cpu = cell.device == "cpu"
    return [name for name in sorted(cell.workload.toggles) if not (on_cpu and TOGGLES[name].gpu)]


def _readable(read: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer of a framework; if it fails, why: the case is right all the same.

    A framework may refuse to tell what a user has set in two ways at once.
    """
    try:
        return read()
    except Exception as error:  # noqa: BLE001 (whatever a framework raises)
        return {"unreadable": f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"}


def times(
    rounds_s: Sequence[float],
    iterations: int,
    clock: Clock,
    machine: CaseFacts,
    threads: int | None,
) -> CaseFacts:
    """The times of the rounds just measured, how busy the machine was, and what that means.

    Args:
        rounds_s: completion time per call of each round.
        iterations: calls per round.
    """
    load, _, _ = os.getloadavg()
    facts = machine | CaseFacts(**clock.facts(rounds_s, iterations), load=load)
    cpu_s = (facts.cpu_s or 0.0) / (iterations * len(rounds_s))
    return facts | CaseFacts(
        drift=condition.drift(rounds_s),
        condition=condition.of_rounds(rounds_s, facts),
        spinning=condition.is_spinning(rounds_s, cpu_s, threads),
    )
