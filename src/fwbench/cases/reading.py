"""Results on the host: read as numbers, or an error that says why they cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from fwbench.errors import TooLargeToVerify, UnreadableResult, VerificationError
from fwbench.frameworks.contract import Array, Framework
from fwbench.records.units import gibibytes

#: What ``to_numpy`` may return: booleans, integers, floating-point and complex numbers.
_NUMBERS = "biufc"

#: How many arrays of float64 a comparison has at once, for each that it is given.
_COPIES = 4


@contextmanager
def guarded(framework: Framework, *arrays: Array) -> Iterator[None]:
    """Say of an error of the framework that a result could not be read.

    Args:
        framework: whose arrays they are.
        arrays: what is read.

    Raises:
        UnreadableResult: an error was raised meanwhile.
    """
    try:
        yield
    except (MemoryError, VerificationError):
        raise
    except Exception as error:
        kinds = ", ".join(dict.fromkeys(type(array).__name__ for array in arrays))
        said = str(error).strip().partition("\n")[0]
        raise UnreadableResult(
            f"the result ({kinds}) cannot be read back: {framework.name} raised "
            f"{type(error).__name__}: {said}"
        ) from error


def read(framework: Framework, array: Array) -> NDArray[Any]:
    """The values of an array of a result.

    Args:
        framework: whose array it is.
        array: the array.

    Raises:
        UnreadableResult: it is no array of numbers, or reading it fails.
    """
    with guarded(framework, array):
        values = np.asarray(framework.to_numpy(array))
    if values.dtype.kind not in _NUMBERS:
        raise UnreadableResult(
            f"the result ({type(array).__name__}) cannot be read back: {framework.name}'s "
            f"to_numpy returned {values.dtype} instead of numbers"
        )
    return values


def room(work: str, elements: float) -> None:
    """Check that there is room for the arrays of a case before any is made.

    Args:
        work: what it is, for the message.
        elements: of its operands and results, which are drawn and computed in float64 first.

    Raises:
        TooLargeToVerify: they take more memory than is free.
    """
    needed_bytes, free_bytes = int(8 * elements), psutil.virtual_memory().available
    if needed_bytes > free_bytes:
        raise TooLargeToVerify(
            f"{work} has arrays of {elements:,.0f} elements: drawn in float64 they take "
            f"{gibibytes(needed_bytes)} of memory, and {gibibytes(free_bytes)} are free; measure a "
            "smaller size"
        )


def fits(inputs: Sequence[NDArray[Any]], results: Sequence[NDArray[Any]]) -> None:
    """Check that there is room to compare a result with its reference.

    The kernel grants memory that it does not have, and ends the process that uses it.

    Args:
        inputs: of the reference.
        results: of the framework, on the host.

    Raises:
        TooLargeToVerify: it takes more memory than is free.
    """
    elements = sum(array.size for array in inputs), sum(array.size for array in results)
    needed_bytes = _COPIES * 8 * sum(elements)
    free_bytes = psutil.virtual_memory().available
    if needed_bytes > free_bytes:
        raise TooLargeToVerify(
            f"to verify {elements[1]:,} elements of results against {elements[0]:,} of inputs "
            f"takes {gibibytes(needed_bytes)} of memory, and {gibibytes(free_bytes)} are free; "
            "measure a smaller size"
        )
