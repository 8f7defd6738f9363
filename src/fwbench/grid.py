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
    for name in selection.devices or ():
        if name not in devices:
            raise UsageError(f"device {name!r} is not there; {who}: {', '.join(devices)}")
    _all_known(f"execution (of {who})", selection.executions, executions)
    check_dtypes(selection, manifests)


def check_dtypes(selection: Selection, manifests: Mapping[str, Manifest]) -> None:
    """Refuse a dtype that nobody knows; one that a framework lacks is a gap.

    Raises:
        UsageError: there is one.
    """
    there = (name for manifest in manifests.values() for name in manifest.dtypes)
    _all_known("dtype", selection.dtypes, _union((*DTYPES, *there)))


def _all_known(kind: str, asked: Iterable[str] | None, known: Sequence[str]) -> None:
    for name in asked or ():
        if name not in known:
            raise unknown(kind, name, known)


def cells(
    operations: Iterable[Operation],
    selection: Selection,
    manifests: Mapping[str, Manifest],
    absent: Mapping[str, Absent] = {},
    *,
    verify_only: bool = False,
) -> Iterator[Cell]:
    """The cells of a selection: what is compared side by side comes one after the other.

    Args:
        operations: what to compute.
        selection: what is asked for; executions that a framework does not know are passed over.
        manifests: the frameworks that can be used.
        absent: those that cannot.
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
            for device, manifest in itertools.product(_devices(selection, chosen), chosen):
                if selection.devices is None and not manifest.has(device):
                    continue
                for execution in _executions(manifest, selection):
                    gap = _gap(operation, manifest, device, execution, direction, dtype)
                    place = (manifest.name, device, execution)
                    yield Cell(operation, *place, direction, dtype, size, gap)
            for name in absent.keys() & {*(selection.frameworks or ())}:
                place = (name, "cpu", "eager")
                yield Cell(operation, *place, direction, dtype, size, f"{name}: {absent[name]}")


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


def _devices(selection: Selection, chosen: Sequence[Manifest]) -> Sequence[str]:
    if selection.devices is not None:
        return selection.devices
    return _union(device.name for manifest in chosen for device in manifest.devices)


def _executions(manifest: Manifest, selection: Selection) -> Iterator[str]:
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
    backward = direction == "backward"
    written = (
        operation.creates
        or operation.name in manifest.operations
        or name in operation.implementations
    )
    reasons = {
        f"{operation.name} has no gradient": backward and not operation.differentiable,
        f"{operation.name} has nothing to compile": execution != "eager"
        and not operation.compilable,
        f"{operation.name} is not written for {name}": not written,
        f"{name} sees no {device}": not manifest.has(device),
        f"{name} offers no gradients": backward and not manifest.differentiable,
        f"{name} has no {dtype}": dtype not in manifest.dtypes,
    }
    for reason, holds in reasons.items():
        if holds:
            return reason
    return manifest.gap(operation.name, dtype, device)
