"""Copies between host and GPU, verified to have the values, and to lie where they must."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.forward import check_count
from fwbench.cases.inputs import Inputs
from fwbench.cases.work import OperationWork
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.frameworks.gpus import PINNED
from fwbench.records.facts import CaseFacts
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import DEVICE


class Copy(OperationWork):
    """A copy of an array from the host to a GPU, or back."""

    def __init__(self, cell: Cell, framework: Framework) -> None:
        super().__init__(cell, framework)
        self.allowed = 0.0  # a copy rounds nothing
        pinned = cell.toggle("pinned") == "on"
        self._copies = framework.copier(cell.device, pinned=pinned)
        host = PINNED if pinned else "cpu"
        if self.operation.copies_to == DEVICE:
            self._from, self._to, call = host, cell.device, self._copies.to_device
            self._placed = Inputs(framework, cell.device, self.dtype, self._copies.on_host)
        else:
            self._from, self._to, call = cell.device, host, self._copies.to_host
            self._placed = Inputs(framework, cell.device, self.dtype)
        (values,) = self._operands(changed=False)
        array = self._placed.place(values)
        self._check_place("what is copied", array, self._from)
        self.run = self._first = partial(call, array)

    def _check_place(self, what: str, array: Array, expected: str) -> None:
        found = self._copies.place(array)
        if found != expected:
            raise WrongResult(
                f"{what} lies in the memory of {found} instead of {expected}, so that other memory "
                "is copied than was asked for"
            )

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The values are those of the input."""
        (values,) = expected = self._placed.check()
        check_count(on_host, expected)
        return self._facts(
            verify.compare(on_host[0], values, self.allowed, by="array that was copied")
        )

    def _memory(self, result: Any) -> CaseFacts:
        """The copy lies where it must; and that is somewhere else, so it is no view.

        Raises:
            WrongResult: it lies elsewhere.
        """
        self._check_place("the copy", result, self._to)
        return CaseFacts(result_is_view=False)

    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        return self._placed.change(self._first, operands)

    def _check_inputs(self) -> None:
        self._placed.check()


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
