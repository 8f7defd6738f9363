"""The grid: workload x framework x device x execution x dtype x size, as cells.

A cell that a framework cannot fill is still a cell, with a gap: the reason why. Gaps become skips,
so that nothing is missing in silence.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fwbench.errors import UsageError, unknown
from fwbench.frameworks.manifest import Absent, Manifest
from fwbench.options import DTYPES, Selection
from fwbench.workloads.operation import Operation


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the grid; its id names its pytest node.

    Attributes:
        operation: what is computed.
        framework: by which framework.
        device: where.
        execution: how.
        direction: forward, or backward.
        dtype: in which precision.
        size: how large.
        gap: why it cannot be measured; None if it can.
    """

    operation: Operation
    framework: str
    device: str
    execution: str
    direction: str
    dtype: str
    size: int
    gap: str | None = None

    @property
    def id(self) -> str:
        """``gemm-mxnet-cpu-eager-forward-float32-1024``."""
        return (
            f"{self.operation.name}-{self.framework}-{self.device}-{self.execution}"
            f"-{self.direction}-{self.dtype}-{self.size}"
        )

    @property
    def group(self) -> str:
        """What is compared side by side: frameworks and executions of the same work."""
        return f"{self.operation.name} {self.device} {self.direction} {self.dtype} {self.size}"

    @property
    def params(self) -> dict[str, str | int]:
        """The parts of the id, for ``--benchmark-group-by=param:framework`` and the like."""
        return {
            "workload": self.operation.name,
            "framework": self.framework,
            "device": self.device,
            "execution": self.execution,
            "direction": self.direction,
            "dtype": self.dtype,
            "size": self.size,
        }


def check(
    selection: Selection, manifests: Mapping[str, Manifest], absent: Mapping[str, Absent]
) -> None:
    """Refuse a selection that names what is not there.

    Args:
        selection: what is asked for.
        manifests: the frameworks that can be used, those asked for among them.
        absent: those that cannot.

    Raises:
        UsageError: it does; the message names what is there.
    """
    for name in selection.frameworks or ():
        if name in absent:
            raise UsageError(f"framework {name!r} cannot be used here: {absent[name]}")
        if name not in manifests:
            raise unknown("framework", name, [*manifests, *absent])
    chosen = _chosen(selection, manifests)
    if not chosen:
        reasons = "".join(f"\n  {name}: {why}" for name, why in absent.items())
        raise UsageError(f"no framework can be used here:{reasons}")
    who = ", ".join(manifest.name for manifest in chosen)
    devices = _union(device.name for manifest in chosen for device in manifest.devices)
    executions = _union(name for manifest in chosen for name in manifest.executions)
    dtypes = _union((*DTYPES, *(name for manifest in chosen for name in manifest.dtypes)))
    for name in selection.devices or ():
        if name not in devices:
            raise UsageError(f"device {name!r} is not there; {who}: {', '.join(devices)}")
    _all_known(f"execution (of {who})", selection.executions, executions)
    _all_known("dtype", selection.dtypes, dtypes)


def _all_known(kind: str, asked: Iterable[str] | None, known: Sequence[str]) -> None:
    for name in asked or ():
        if name not in known:
            raise unknown(kind, name, known)


def cells(
    operations: Iterable[Operation],
    selection: Selection,
    manifests: Mapping[str, Manifest],
    *,
    verify_only: bool = False,
) -> Iterator[Cell]:
    """The cells of a selection: what is compared side by side comes one after the other.

    Args:
        operations: what to compute.
        selection: what is asked for; names that a framework does not know are passed over.
        manifests: the frameworks that can be used.
        verify_only: nothing will be timed, so the smallest size will do, in both directions.
    """
    default_directions = ("forward", "backward") if verify_only else ("forward",)
    chosen = _chosen(selection, manifests)
    for operation in operations:
        for size, dtype, direction in itertools.product(
            _sizes(operation, selection, verify_only),
            selection.dtypes or ("float32",),
            selection.directions or default_directions,
        ):
            for device in selection.devices or _union(
                device.name for manifest in chosen for device in manifest.devices
            ):
                for manifest in chosen:
                    for execution in _executions(manifest, selection, device):
                        yield Cell(
                            operation,
                            manifest.name,
                            device,
                            execution,
                            direction,
                            dtype,
                            size,
                            _gap(operation, manifest, device, execution, direction, dtype),
                        )


def _chosen(selection: Selection, manifests: Mapping[str, Manifest]) -> list[Manifest]:
    asked = manifests if selection.frameworks is None else selection.frameworks
    return [manifests[name] for name in asked if name in manifests]


def _union(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _sizes(operation: Operation, selection: Selection, verify_only: bool) -> tuple[int, ...]:
    if isinstance(selection.sizes, tuple):
        return selection.sizes
    if selection.sizes is None and verify_only:
        return (min(operation.by_preset.quick),)
    return operation.by_preset.preset(selection.sizes or "quick")


def _executions(manifest: Manifest, selection: Selection, device: str) -> Iterator[str]:
    if device not in (there.name for there in manifest.devices):
        return
    for execution in manifest.executions:
        if selection.executions is None:
            if execution not in manifest.on_request:
                yield execution
        elif execution in selection.executions:
            yield execution


def _gap(
    operation: Operation,
    manifest: Manifest,
    device: str,
    execution: str,
    direction: str,
    dtype: str,
) -> str | None:
    """Why a cell cannot be filled; what never makes sense comes before what a framework lacks."""
    name = manifest.name
    if direction == "backward" and not operation.differentiable:
        return f"{operation.name} has no gradient"
    if execution != "eager" and not operation.compilable:
        return f"{operation.name} has nothing to compile"
    if not (
        operation.creates
        or operation.name in manifest.operations
        or name in operation.implementations
    ):
        return f"{operation.name} is not written for {name}"
    if direction == "backward" and not manifest.differentiable:
        return f"{name} offers no gradients"
    if dtype not in manifest.dtypes:
        return f"{name} has no {dtype}"
    return manifest.gap(operation.name, dtype, device)
