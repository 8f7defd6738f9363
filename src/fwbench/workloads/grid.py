"""The grid: workload x framework x device x execution x dtype x size, as cells.

A cell that a framework cannot fill is still a cell, with a gap: the reason why. Gaps become skips,
so that nothing is missing in silence.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fwbench.errors import FwbenchError, UsageError, some, unknown
from fwbench.options.options import Selection
from fwbench.terms import toggles
from fwbench.terms.manifest import Absent, Manifest
from fwbench.terms.names import CALLED, EVERY_DTYPE
from fwbench.terms.presets import PRESETS, Schedule, Size, unread
from fwbench.terms.toggles import Combination
from fwbench.workloads import gaps
from fwbench.workloads.cell import Cell
from fwbench.workloads.data import Found, generated
from fwbench.workloads.workload import Workload

#: What ``--fw-size`` gives: the name of a preset, or numbers and the texts of shapes; None for
#: what is measured by default.
SizeRequest = tuple[int | str, ...] | str | None

#: Number of workloads that a message names; the others are counted.
_NAMED = 3

__all__ = ["Cell", "GridRequest", "cells", "check", "check_dtypes", "check_sizes"]


def check(
    selection: Selection,
    manifests: Mapping[str, Manifest],
    absent: Mapping[str, Absent],
    apart: Container[str] = (),
) -> None:
    """Refuse a selection that names what is not there.

    Args:
        manifests: the frameworks that can be used, those asked for among them.
        apart: those of named environments. If one of them cannot be used, its cells say so and the
            others run: what is compared are often environments, and one may have aged.

    Raises:
        UsageError: it does; the message names what is there.
    """
    for name in selection.frameworks or ():
        if name in absent and name not in apart:
            raise UsageError(f"framework {name!r} cannot be used here: {absent[name]}")
        if name not in manifests and name not in absent:
            raise unknown("framework", name, [*manifests, *absent], CALLED.get(name, ""))
    chosen = _chosen(selection, manifests)
    if not chosen:
        reasons = "".join(f"\n  {name}: {why}" for name, why in absent.items())
        raise UsageError(f"no framework can be used here:{reasons}")
    who = ", ".join(manifest.name for manifest in chosen)
    devices = _union(device.name for manifest in chosen for device in manifest.devices)
    executions = _union(name for manifest in chosen for name in manifest.every_execution)
    for name in selection.devices or ():
        if name not in devices:
            raise UsageError(f"device {name!r} is not there; {who}: {', '.join(devices)}")
    _all_known(f"execution (of {who})", selection.executions, executions)
    check_dtypes(selection, manifests)


def check_dtypes(selection: Selection, manifests: Mapping[str, Manifest]) -> None:
    """Refuse an unknown dtype; one that a framework lacks is a gap.

    Raises:
        UsageError: there is one.
    """
    there = (name for manifest in manifests.values() for name in manifest.dtypes)
    _all_known("dtype", selection.dtypes, _union((*EVERY_DTYPE, *there)))


def _all_known(kind: str, requested: Iterable[str] | None, known: Sequence[str]) -> None:
    for name in requested or ():
        if name not in known:
            raise unknown(kind, name, known)


@dataclass(frozen=True)
class GridRequest:
    """Settings of a marker's cells in addition to the selection."""

    toggles: toggles.Values = field(default_factory=dict)
    #: What is asked for over a preset's schedule.
    schedule: Callable[[Schedule], Schedule] = lambda preset: preset
    find: Callable[[str], Found] = generated
    #: Nothing will be timed, so the smallest size will do, in both directions.
    verify_only: bool = False
    threshold: float | None = None
    precision: float = 0.0
    #: Whether a batch grows with the number of replicas, and each of them keeps its share.
    weak: bool = False

    def size(self, workload: Workload, size: Size, values: Combination) -> Size:
        """The size of a case with these toggles."""
        replicas = int(dict(values).get("replicas", "1"))
        return workload.grown(size, replicas) if self.weak else size


def cells(
    workloads: Iterable[Workload],
    selection: Selection,
    manifests: Mapping[str, Manifest],
    absent: Mapping[str, Absent] = {},
    more: GridRequest = GridRequest(),
) -> Iterator[Cell]:
    """The cells of a selection: what is compared side by side comes one after the other.

    Args:
        selection: what is asked for; executions that a framework does not know are passed over.
    """
    for workload in workloads:
        yield from _unsized(workload, selection, manifests)
        for size, dtype, direction in itertools.product(
            _sizes(workload, selection, more),
            selection.dtypes or (workload.default_dtype,),
            _directions(workload, selection, more),
        ):
            facts = {"direction": direction, "dtype": dtype, "size": size}
            yield from _side_by_side(workload, selection, manifests, more, facts)
            for name in absent.keys() & {*(selection.frameworks or ())}:
                gap = f"{name}: {absent[name]}"
                yield Cell(workload, name, "cpu", "eager", direction, dtype, size, gap)


def _side_by_side(
    workload: Workload,
    selection: Selection,
    manifests: Mapping[str, Manifest],
    more: GridRequest,
    facts: dict[str, Any],
) -> Iterator[Cell]:
    """The cells of the same work: devices, frameworks, executions, toggles."""
    chosen = _chosen(selection, manifests)
    preset = selection.sizes or "quick"
    missing = _missing(workload, selection, preset, more)
    if missing is not None:
        # Once, not for everyone who is left out.
        for manifest in chosen[:1]:
            yield Cell(workload, manifest.name, "cpu", "eager", **facts, gap=missing)
        return
    facts |= {"threshold": more.threshold, "precision": more.precision}
    facts["timed"] = not more.verify_only
    facts |= _trained(workload, preset, facts["size"], more)
    for device, manifest in itertools.product(_devices(selection, chosen), chosen):
        if selection.devices is None and not manifest.has(device):
            continue
        for execution, values in _ways(workload, manifest, selection, more):
            cell_facts = facts | {"size": more.size(workload, facts["size"], values)}
            cell = Cell(workload, manifest.name, device, execution, **cell_facts, toggles=values)
            gap = gaps.why(cell, manifest)
            yield replace(cell, gap=gap) if gap else cell


def _ways(
    workload: Workload, manifest: Manifest, selection: Selection, more: GridRequest
) -> Iterator[tuple[str, Combination]]:
    """Executions and toggles, but for replicas where fwbench has none of the framework's."""
    for execution, values in itertools.product(
        _executions(workload, manifest, selection),
        toggles.combinations(more.toggles, workload.toggles, shared=workload.shared),
    ):
        strategy = dict(values).get("strategy")
        if strategy is None or gaps.is_built(manifest, execution, strategy):
            yield execution, values


def _missing(
    workload: Workload, selection: Selection, preset: tuple[int | str, ...] | str, more: GridRequest
) -> str | None:
    """Why the request leaves a workload out in every framework."""
    if workload.needs_replicas and {*more.toggles.get("replicas", ("1",))} == {"1"}:
        return f"{workload.name} is between replicas: add --fw-replicas 2"
    if workload.directions and selection.directions is not None:
        (only,) = workload.directions
        return f"--fw-direction is for operations, and {workload.name} has one direction: {only}"
    if isinstance(preset, str) and not more.verify_only:
        return workload.missing(preset)
    return None


def _trained(
    workload: Workload, preset: tuple[int | str, ...] | str, batch: int, more: GridRequest
) -> dict[str, Any]:
    """Schedule and data of a training loop or a part of one; or what is wrong with them.

    It is wrong for the cells that are left when others are deselected, so nothing is raised here.
    """
    try:
        schedule = workload.schedule(preset if isinstance(preset, str) else None)
        if schedule is not None:
            schedule = more.schedule(schedule)
        data = None if workload.data is None else more.find(workload.data)
        examples = None if data is None else data.train_examples
        if data is not None and examples is not None and batch > examples:
            raise UsageError(
                f"a batch of {batch} is larger than the {examples} training examples "
                f"of {data.name} ({data.source}); give a smaller --fw-size"
            )
    except FwbenchError as error:
        return {"problem": f"{workload.name}: {error}, or leave {workload.name} out (-k)"}
    return {"schedule": schedule, "data": data}


def _chosen(selection: Selection, manifests: Mapping[str, Manifest]) -> list[Manifest]:
    names = manifests if selection.frameworks is None else selection.frameworks
    return [manifests[name] for name in names if name in manifests]


def _union(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _sizes(workload: Workload, selection: Selection, more: GridRequest) -> tuple[Size, ...]:
    if selection.sizes is None and more.verify_only:
        return (workload.smallest,)
    return requested_sizes(workload, selection.sizes)


def requested_sizes(workload: Workload, requested: SizeRequest) -> tuple[Size, ...]:
    """The sizes of a workload that are asked for, as far as it has them; by default ``quick``."""
    if isinstance(requested, tuple):
        read = map(workload.size_of, requested)
        return tuple(size for size in read if size is not None)
    return workload.by_preset.preset(requested or "quick")


def _unsized(
    workload: Workload, selection: Selection, manifests: Mapping[str, Manifest]
) -> Iterator[Cell]:
    """A cell for each size that was asked for and that the workload does not have.

    Once, as it is the same in every framework, dtype and direction.
    """
    for size, why in lacked_sizes(workload, selection.sizes):
        for manifest in _chosen(selection, manifests)[:1]:
            direction = workload.directions or selection.directions or ("forward",)
            dtype = (selection.dtypes or (workload.default_dtype,))[0]
            cell = (workload, manifest.name, "cpu", "eager", direction[0], dtype, unread(size))
            yield Cell(*cell, gap=why, unsized=True)


def check_sizes(cells: Iterable[Cell]) -> None:
    """Refuse sizes that were asked for and that none of the cells has.

    Args:
        cells: those that are left when others are deselected.

    Raises:
        UsageError: there is one; the message says what sizes there are.
    """
    missing: dict[str, dict[Workload, None]] = {}
    there = set()
    for cell in cells:
        if cell.unsized:
            missing.setdefault(str(cell.size), {})[cell.workload] = None
        else:
            there.add(str(cell.size))
    refuse_sizes(missing, there)


def _directions(workload: Workload, selection: Selection, more: GridRequest) -> tuple[str, ...]:
    if workload.directions is not None:
        return workload.directions
    return selection.directions or (("forward", "backward") if more.verify_only else ("forward",))


def _devices(selection: Selection, chosen: Sequence[Manifest]) -> Sequence[str]:
    if selection.devices is not None:
        return selection.devices
    return _union(name for manifest in chosen for name in manifest.different_devices)


def _executions(workload: Workload, manifest: Manifest, selection: Selection) -> list[str]:
    if selection.executions is None:
        return [n for n in workload.executions(manifest) if n not in manifest.on_request]
    return [n for n in workload.executions_to_name(manifest) if n in selection.executions]


def lacked_sizes(workload: Workload, requested: SizeRequest) -> Iterator[tuple[str, str]]:
    """Requested sizes that the workload does not have: as they were written, and the reason."""
    if isinstance(requested, tuple):
        for size in requested:
            if workload.size_of(size) is None:
                yield str(size), f"sizes of {workload.name} are {_written(workload)}"
    elif requested is not None and not workload.by_preset.preset(requested):
        yield (
            requested,
            f"{workload.name} is not in the preset {requested}; it has {_presets([workload])}",
        )


def refuse_sizes(missing: Mapping[str, Collection[Workload]], there: Collection[str]) -> None:
    """Refuse what is asked for if nothing has it.

    Args:
        missing: the workloads that do not have a size or a preset, by its text.
        there: the texts of the sizes that are measured.

    Raises:
        UsageError: there is such a size; the message says what sizes there are.
    """
    for size, workloads in missing.items():
        if size in PRESETS and not there:
            raise UsageError(
                f"{_some(workloads)}: not in the preset {size!r}; give the preset "
                f"{_presets(workloads).replace(', ', ' or ')}"
            )
        if size not in PRESETS and size not in there:
            raise UsageError(
                f"nothing that is selected has the size {size!r}: {_all_written(workloads)}"
            )


def _written(workload: Workload) -> str:
    """Format of its sizes, with examples."""
    examples = ", ".join(map(str, workload.by_preset.quick))
    if workload.form is None:
        return f"whole numbers, such as {examples}"
    return f"shapes written {workload.form.template}, such as {examples}"


def _all_written(workloads: Collection[Workload]) -> str:
    """Formats of their sizes, each once, with the examples of the first one."""
    by_form: dict[str, list[Workload]] = {}
    for workload in workloads:
        form = "" if workload.form is None else workload.form.template
        by_form.setdefault(form, []).append(workload)
    parts = (f"sizes of {_some(group)} are {_written(group[0])}" for group in by_form.values())
    return "; ".join(parts)


def _presets(workloads: Collection[Workload]) -> str:
    return ", ".join(
        name for name in PRESETS if any(workload.by_preset.preset(name) for workload in workloads)
    )


def _some(workloads: Collection[Workload]) -> str:
    return some([workload.name for workload in workloads], _NAMED)
