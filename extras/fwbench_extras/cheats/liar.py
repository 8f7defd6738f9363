"""What a liar is: the honest framework with one thing changed, and what it says of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fwbench import workloads
from fwbench.errors import FwbenchError, WrongResult
from fwbench.workloads.workload import Workload
from fwbench_extras.cheats.honest import Honest


class Liar(Honest):
    """The honest framework with one thing changed.

    The first line of a liar's docstring says what it fakes. Its name is that of its class, in lower
    case with underscores.

    Attributes:
        mistake: the real-world mistake that it stands for.
        caught_by: the error in which fwbench's case of it ends; None if it gets a number.
        why: which check catches it; or why none can, and what remains to be seen of it.
        workload: shows the lie.
        size: of the workload.
        dtype: of the workload.
        directions: in which it lies; none where it does so before any work is bound.
    """

    mistake: ClassVar[str]
    caught_by: ClassVar[type[FwbenchError] | None] = WrongResult
    why: ClassVar[str]
    workload: ClassVar[Workload] = workloads.gemm
    size: ClassVar[int] = 64
    dtype: ClassVar[str] = "float32"
    directions: ClassVar[tuple[str, ...]] = ("forward", "backward")

    def __init_subclass__(cls) -> None:
        cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def leaves(result: Any) -> list[Any]:
    """The arrays of what a call returned, in their order.

    Args:
        result: an array, or lists and tuples of arrays.
    """
    if isinstance(result, list | tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def each(change: Callable[[Any], Any], result: Any) -> Any:
    """What a call returned, with every array of it changed.

    Args:
        change: what to do to an array.
        result: an array, or lists and tuples of arrays.
    """
    if isinstance(result, list | tuple):
        return type(result)(each(change, part) for part in result)
    return change(np.asarray(result))
