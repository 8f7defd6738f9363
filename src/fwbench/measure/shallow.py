"""A stack without pytest's frames, for what is measured.

TensorFlow keeps the Python stack of every eager operation. Under the sixty frames of a pytest test
that makes small operations a third slower than they are in a script: a sigmoid of 8 elements takes
16.2 us instead of 12.0 (medians of 1,000 rounds, four times in each of three processes). So a
worker measures in a thread, whose stack begins empty. It is one thread for the process's life:
OpenMP keeps a team of threads for each thread that computes.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True


@functools.cache
def _thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="fwbench")


def call(function: Callable[[], Any]) -> Any:
    """Call a function at the foot of a stack, and wait for it.

    Returns:
        What it returned. What it raised is raised here, KeyboardInterrupt and the like included.
    """
    context = contextvars.copy_context()
    result, error = _thread().submit(context.run, _caught, function).result()
    if error is not None:
        raise error
    return result


def _caught(function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
    """Catch here, so that no frame of the executor is in the traceback."""
    try:
        return function(), None
    except BaseException as error:  # noqa: BLE001 (raised again by `call`)
        return None, error
