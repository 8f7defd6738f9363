"""The adapter under test, and checks of its declarations: manifest, devices, threads."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import ConformanceError
from fwbench.frameworks.contract import Array, Framework
from fwbench.terms.manifest import Absent, Manifest

_DEVICE = re.compile(r"cpu|gpu:\d+")

_UNDECLARED_DEVICE = "gpu:99"


@dataclass(frozen=True)
class Adapter:
    """A framework that is loaded into this process.

    Attributes:
        framework: the adapter itself.
        manifest: its declarations.
        timer: the clock that runs while it works; in seconds.
        processor_timer: the processor time that this process has used; in seconds.
    """

    framework: Framework
    manifest: Manifest
    timer: Callable[[], float] = time.perf_counter
    processor_timer: Callable[[], float] = time.process_time

    @contextmanager
    def scope(self, device: str, dtype: str = "float32") -> Iterator[None]:
        """The adapter's scope, in which all work of a check happens."""
        with self.framework.scope(device, dtype):
            yield

    def create(self, source: Any, device: str, dtype: str) -> Array:
        """Create an array of the framework."""
        return self.framework.creator(device, dtype)(source)

    def read(self, array: Array) -> NDArray[Any]:
        """Read the array's values on the host."""
        return self.framework.to_numpy(array)

    def finish(self, device: str) -> None:
        """Wait until all work on the device is done, the adapter's way."""
        wait = self.framework.waiter(device)
        if wait is not None:
            wait()


def manifest_survives_json(adapter: Adapter) -> None:
    """Check that the manifest reaches the process that runs pytest as it was sent.

    Raises:
        ConformanceError: it is not JSON, or differs after a trip through it.
    """
    manifest = adapter.manifest
    try:
        received = Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
    except TypeError as error:
        raise ConformanceError(
            f"the manifest cannot be sent as JSON ({error}); use strings, numbers, booleans and "
            "tuples of them in the adapter's declarations and in the result of build"
        ) from error
    for name, sent in vars(manifest).items():
        if getattr(received, name) != sent:
            raise ConformanceError(
                f"the manifest's {name} is {sent!r} and arrives as {getattr(received, name)!r}; "
                "use strings, numbers, booleans and tuples of them"
            )


def devices_are_named(adapter: Adapter) -> None:
    """Check that the CPU comes first and every device is named ``cpu`` or ``gpu:N``.

    Raises:
        ConformanceError: the CPU is not first, or a name has another form.
    """
    names = [device.name for device in adapter.manifest.devices]
    wrong = [name for name in names if not _DEVICE.fullmatch(name)]
    if wrong or names[:1] != ["cpu"] or len({*names}) < len(names):
        raise ConformanceError(
            f"devices returns {', '.join(names) or 'nothing'}; return cpu first "
            "(super().devices does), then gpu:0, gpu:1, ..., each once"
        )


def undeclared_device_is_refused(adapter: Adapter) -> None:
    """Check that work for a GPU that is not there raises instead of running elsewhere.

    Raises:
        ConformanceError: it ran.
    """
    try:
        with adapter.scope(_UNDECLARED_DEVICE):
            adapter.read(
                adapter.create(np.ones(3, dtype=np.float32), _UNDECLARED_DEVICE, "float32")
            )
    except Exception:  # noqa: BLE001 (frameworks differ in the exceptions that they raise)
        return
    raise ConformanceError(
        f"an array was created on {_UNDECLARED_DEVICE}, which devices does not list; scope or "
        "creator must raise for a device that is not there"
    )


def threads_are_set(answers: Mapping[int, Manifest | Absent]) -> None:
    """Check that the framework computes with the threads that a session requests.

    Args:
        answers: of a new process of the framework, by the requested number of threads.

    Raises:
        ConformanceError: it computes with another number, or does not start.
    """
    for threads, answer in answers.items():
        if isinstance(answer, Absent):
            raise ConformanceError(f"in a new process with --fw-threads={threads}: {answer}")
        if answer.threads not in (threads, None):
            raise ConformanceError(
                f"a new process of the framework was set to {threads} threads and reports "
                f"{answer.threads}; set_threads must set them, and threads() must "
                "return what is set, or None if it cannot be known"
            )
