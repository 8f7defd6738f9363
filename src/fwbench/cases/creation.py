"""Creation: an array from host data, verified to be a copy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.work import OperationWork
from fwbench.frameworks.contract import BoundCall, Framework
from fwbench.grid import Cell
from fwbench.records.facts import CaseFacts


class Creation(OperationWork):
    """An array from host data: verified to be a copy."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        (self.values,) = self._operands(changed=False)
        self.source = self.operation.source(np.array(self.values))
        self.run = partial(framework.creator(cell.device, cell.dtype), self.source)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The values are the source's."""
        return self._facts(verify.compare(on_host[0], self.values, self.allowed))

    def _memory(self, result: Any) -> CaseFacts:
        """The values stay as they are when the source changes.

        Raises:
            NotACopy: they change with it.
        """
        before = np.copy(self.framework.to_numpy(result))
        kept = self.source.copy()
        self.source[:] = [0.0] * len(self.source)
        try:
            verify.copied(before, self.framework.to_numpy(result))
        finally:
            self.source[:] = kept
        is_array = isinstance(self.source, np.ndarray)
        addresses = {int(self.source.ctypes.data)} if is_array else set()
        return CaseFacts(result_is_view=self._is_view([result], addresses))

    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        """The call stays; the source has other values."""
        assert self.operation.source is not None  # noqa: S101 (what makes it a creation)
        (self.values,) = operands
        self.source[:] = self.operation.source(np.array(self.values))
        return self.run
