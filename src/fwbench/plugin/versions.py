"""A folder in which workers leave what their versions of a model came to, for those of others."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from fwbench.cases.versions import VARIABLE
from fwbench.grid import Cell
from fwbench.processes import scratch
from fwbench.workloads.model import ModelInference, ModelTraining


@contextmanager
def compared(cells: Iterable[Cell]) -> Iterator[None]:
    """Have a folder for as long as cases run; none where every model has one version.

    Args:
        cells: of the session.
    """
    if not any(map(_has_several_versions, cells)):
        yield
        return
    with scratch.folder() as folder:
        os.environ[VARIABLE] = str(folder)  # which workers inherit
        try:
            yield
        finally:
            del os.environ[VARIABLE]


def _has_several_versions(cell: Cell) -> bool:
    workload = cell.workload
    if not isinstance(workload, ModelInference | ModelTraining):
        return False
    return len(workload.model.versions) > 1
