"""Counters of the kernel: what the threads of this process do in some work.

See the manual page perf_event_open(2). A kernel may forbid counters (``perf_event_paranoid``), and
virtual machines mostly have none of the processor's.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

#: The number of the system call, by architecture.
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}

#: Type and number of the events, by name: PERF_TYPE_HARDWARE is 0, PERF_TYPE_SOFTWARE 1.
EVENTS = {
    "instructions": (0, 1),
    "cycles": (0, 0),
    "cache_misses": (0, 3),
    "branch_misses": (0, 5),
    "page_faults": (1, 2),
}

#: Size of struct perf_event_attr, and where its flags are: inherit, exclude_kernel, exclude_hv.
_SIZE, _FLAGS = 128, 40
_INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6

#: After the flags of what is read: the count, and the times in which it was wanted and was counted.
_READ_TIMES = 3
_READ = struct.Struct("3Q")

_REASONS = {
    errno.ENOENT: "the processor has none, or a virtual machine does not pass them on",
    errno.EACCES: "the kernel forbids them: sysctl kernel.perf_event_paranoid=2",
    errno.EPERM: "the kernel forbids them: sysctl kernel.perf_event_paranoid=2",
    errno.ENOSYS: "this system has none",
}


def counted(work: Callable[[], object]) -> tuple[dict[str, float], str]:
    """The events of all threads of this process while some work is done, by name.

    Threads that the work starts are counted, too. Where the processor has fewer counters than are
    asked for, the kernel lets them take turns, and a count is extrapolated.

    Returns:
        The events, and why some are missing; empty if none is.
    """
    opened: dict[str, list[int]] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        for name, event in EVENTS.items():
            try:
                opened[name] = [*_opened(*event, stack)]
            except OSError as error:
                missing[name] = _REASONS.get(error.errno or 0, str(error.strerror))
        work()
        counts = {name: sum(map(_count, files)) for name, files in opened.items()}
    reasons: dict[str, list[str]] = {}
    for name, why in missing.items():
        reasons.setdefault(why, []).append(name.replace("_", " "))
    return counts, "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def _opened(kind: int, number: int, stack: ExitStack) -> Iterator[int]:
    """A running counter of each thread."""
    # Pages fault within system calls, too.
    scope = _NO_KERNEL | _NO_HYPERVISOR if kind == 0 else 0
    attributes = bytearray(_SIZE)
    struct.pack_into("IIQ", attributes, 0, kind, _SIZE, number)
    struct.pack_into("QQ", attributes, _FLAGS - 8, _READ_TIMES, _INHERIT | scope)
    for thread in [*Path("/proc/self/task").iterdir()]:
        try:
            file = _perf_event_open(attributes, int(thread.name))
        except ProcessLookupError:  # it has ended
            continue
        stack.callback(os.close, file)
        yield file


def _perf_event_open(attributes: bytearray, thread: int) -> int:
    call = _SYSTEM_CALLS.get(platform.machine())
    if call is None or not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * _SIZE).from_buffer(attributes)
    anywhere, no_group, no_flags = -1, -1, 0
    file = libc.syscall(call, buffer, thread, anywhere, no_group, no_flags)
    if file < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(file)


def _count(file: int) -> float:
    with suppress(OSError):
        value, wanted, counted = _READ.unpack(os.read(file, _READ.size))
        return value * wanted / counted if counted else 0.0
    return 0.0
