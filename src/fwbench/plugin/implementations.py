"""Implementations that users write beside their tests, for frameworks that may not be there."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

import pytest

from fwbench.errors import UsageError, unknown
from fwbench.workloads.grid import Cell
from fwbench.workloads.model import Model, ModelInference, ModelTraining
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Workload

#: How similar a name must be to be taken for a misspelled one.
_SIMILAR = 0.85


def workloads_of(mark: pytest.Mark, known: Sequence[str]) -> Sequence[Workload]:
    """The workloads that a marker names.

    Args:
        known: the frameworks that have an adapter, by name.

    Raises:
        UsageError: it names something else, nothing, or a workload twice; or a workload has an
            implementation for a framework whose name is probably misspelled.
    """
    given = [
        workload
        for value in mark.args
        for workload in (value.workloads if isinstance(value, Model) else (value,))
    ]
    wrong = [value for value in given if not isinstance(value, Workload)]
    if wrong or not mark.args:
        raise UsageError(
            f"@pytest.mark.fwbench was given {', '.join(map(repr, wrong)) or 'nothing'}; give it "
            "the operations or models to measure: @pytest.mark.fwbench(gemm, dot)"
        )
    for workload in given:
        _refuse_near_misses(workload, known)
    names = [workload.name for workload in given]
    if len({*names}) < len(names):
        raise UsageError(f"@pytest.mark.fwbench names a workload twice: {', '.join(names)}")
    return tuple(given)


def without_adapter(workloads: Iterable[Workload], known: Collection[str]) -> Iterator[Cell]:
    """A cell with a gap for each implementation that nothing can run: once, not in every size.

    Args:
        known: the frameworks that have an adapter, by name.
    """
    for workload in workloads:
        direction = (workload.directions or ("forward",))[0]
        for name in _implemented(workload):
            if name not in known:
                dtype, size = workload.default_dtype, workload.smallest
                yield Cell(
                    *(workload, name, "cpu", "eager", direction, dtype, size),
                    gap=f"{name}: no installed package has an adapter for it; install one, or "
                    "write it (docs/extending.md)",
                )


def _implemented(workload: Workload) -> Mapping[str, Any]:
    """Users' implementations, by framework."""
    if isinstance(workload, Operation):
        return workload.implementations
    if isinstance(workload, ModelInference | ModelTraining):
        return {name: version.given for name, version in workload.model.versions.items()}
    return {}


def _refuse_near_misses(workload: Workload, known: Sequence[str]) -> None:
    """An implementation for a framework that is not installed is fine; a misspelled one is not."""
    for name, implementation in _implemented(workload).items():
        if name in known or not difflib.get_close_matches(name, known, n=1, cutoff=_SIMILAR):
            continue
        where = workload.name
        if isinstance(implementation, FunctionType):
            code = implementation.__code__
            where = f"{workload.name} in {code.co_filename}:{code.co_firstlineno}"
        raise unknown(f"framework (implemented by {where})", name, known)
