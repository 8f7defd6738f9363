"""The adapter under test, with what the checks need of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fwbench.frameworks.contract import Array, Framework
from fwbench.manifest import Manifest


@dataclass(frozen=True)
class Adapter:
    """A framework that is loaded into this process.

    Attributes:
        framework: the adapter itself.
        manifest: what it declares.
        timer: the clock that runs while it works; in seconds.
        processor_timer: the processor time that this process has used; in seconds.
    """

    framework: Framework
    manifest: Manifest
    timer: Callable[[], float] = time.perf_counter
    processor_timer: Callable[[], float] = time.process_time

    @contextmanager
    def scope(self, device: str, dtype: str = "float32") -> Iterator[None]:
        """The adapter's scope, in which all work of a check happens.

        Args:
            device: where arrays are created and work runs.
            dtype: of the work.
        """
        with self.framework.scope(device, dtype):
            yield

    def create(self, source: Any, device: str, dtype: str) -> Array:
        """Returns a new array of the framework's.

        Args:
            source: a NumPy array or a list.
            device: where the array is to lie.
            dtype: of the array.
        """
        return self.framework.creator(device, dtype)(source)

    def read(self, array: Array) -> NDArray[Any]:
        """Returns the array's values on the host."""
        return self.framework.to_numpy(array)

    def finish(self, device: str) -> None:
        """Wait until all work on the device is done, the adapter's own way."""
        wait = self.framework.waiter(device)
        if wait is not None:
            wait()
