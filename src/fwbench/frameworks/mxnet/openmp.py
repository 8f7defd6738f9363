"""Reading and placing arrays without the OpenMP threads that MXNet leaves behind for it.

MXNet computes in threads of its engine. But the calling thread copies from and to NumPy, and undoes
oneDNN's layouts, large arrays with OpenMP; its team of threads stays. Then OpenMP has more threads
than there are CPUs, and those of the engine do not wait for each other actively any more: with two
threads on two CPUs a softmax of 64 rows takes 81 us instead of 17, a convolution of 16 channels 90
instead of 28, a small LSTM 920 instead of 60. So what fwbench reads and places must leave none.
"""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

import threadpoolctl

T = TypeVar("T")

#: ``omp_pause_hard`` of OpenMP 5.0, section 3.2.44: threads end, and start again when needed.
_HARD = 2


def copied(copy: Callable[..., T], *arguments: Any, **how: Any) -> T:
    """Copy from or to NumPy, and end the threads that OpenMP keeps for it; returns the copy."""
    result = copy(*arguments, **how)
    for library in _libraries():
        with suppress(AttributeError):  # older than OpenMP 5.0
            library.omp_pause_resource(_HARD, library.omp_get_initial_device())
    return result


@cache
def _libraries() -> Sequence[ctypes.CDLL]:
    pools = threadpoolctl.threadpool_info()
    return [ctypes.CDLL(pool["filepath"]) for pool in pools if pool["user_api"] == "openmp"]
