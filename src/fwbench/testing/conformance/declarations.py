"""What an adapter declares: manifest, devices, threads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np

from fwbench.errors import ConformanceError
from fwbench.manifest import Absent, Manifest
from fwbench.testing.conformance.adapter import Adapter

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

_DEVICE = re.compile(r"cpu|gpu:\d+")

_UNKNOWN = "gpu:99"


def manifest_survives_json(adapter: Adapter) -> None:
    """Check that the manifest reaches the process that runs pytest as it was sent.

    Args:
        adapter: the adapter under test.

    Raises:
        ConformanceError: it is not JSON, or differs after a trip through it.
    """
    manifest = adapter.manifest
    try:
        received = Manifest.from_json(json.loads(json.dumps(manifest.to_json())))
    except TypeError as error:
        raise ConformanceError(
            f"the manifest cannot be sent as JSON ({error}); use strings, numbers, booleans and "
            "tuples of them in what the adapter declares and in what build returns"
        ) from error
    for name, sent in vars(manifest).items():
        if getattr(received, name) != sent:
            raise ConformanceError(
                f"the manifest's {name} is {sent!r} and arrives as {getattr(received, name)!r}; "
                "use strings, numbers, booleans and tuples of them"
            )


def devices_are_named(adapter: Adapter) -> None:
    """Check that the CPU comes first and every device is named ``cpu`` or ``gpu:N``.

    Args:
        adapter: the adapter under test.

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

    Args:
        adapter: the adapter under test, with more devices than the CPU.

    Raises:
        ConformanceError: it ran.
    """
    try:
        with adapter.scope(_UNKNOWN):
            adapter.read(adapter.create(np.ones(3, dtype=np.float32), _UNKNOWN, "float32"))
    except Exception:  # noqa: BLE001 (whichever the framework raises)
        return
    raise ConformanceError(
        f"an array was created on {_UNKNOWN}, which devices does not list; scope or creator must "
        "raise for a device that is not there"
    )


def threads_are_set(answers: Mapping[int, Manifest | Absent]) -> None:
    """Check that the framework computes with the threads that a session asks for.

    Args:
        answers: by the number of threads asked for, what a new process of the framework answered.

    Raises:
        ConformanceError: it computes with another number, or does not start.
    """
    for threads, answer in answers.items():
        if isinstance(answer, Absent):
            raise ConformanceError(f"in a new process with --fw-threads={threads}: {answer}")
        if answer.threads not in (threads, None):
            raise ConformanceError(
                f"asked for {threads} threads, a new process of the framework says that it "
                f"computes with {answer.threads}; set_threads must set them, and threads() must "
                "return what is set, or None if it cannot be known"
            )
