"""Counters: what the threads of this process have the processor and the kernel do in some work.

See the manual page perf_event_open(2). A kernel may forbid the processor's counters
(``perf_event_paranoid``), and most virtual machines have none. Page faults are counted always.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

#: The number of the system call, by architecture.
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}

#: The number of each event of the processor (PERF_TYPE_HARDWARE, which is 0), by name.
EVENTS = {"instructions": 1, "cycles": 0, "cache_misses": 3, "branch_misses": 5}
_HARDWARE = 0

#: Size of struct perf_event_attr, where its flags are, and these: inherit, exclude_kernel,
#: exclude_hv.
_SIZE, _FLAGS = 128, 40
_INHERITED = 1 << 1 | 1 << 5 | 1 << 6

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
        for name, number in EVENTS.items():
            try:
                opened[name] = [*_opened(number, stack)]
            except OSError as error:
                missing[name] = _REASONS.get(error.errno or 0, str(error.strerror))
        faults = _page_faults()
        work()
        counts = {"page_faults": _page_faults() - faults}
        for name, files in opened.items():
            of_threads = [*map(_count, files)]
            if None in of_threads:
                missing[name] = "the processor's counters were taken"
            else:
                counts[name] = sum(filter(None, of_threads))
    reasons: dict[str, list[str]] = {}
    for name, why in missing.items():
        reasons.setdefault(why, []).append(name.replace("_", " "))
    return counts, "; ".join(f"{', '.join(names)}: {why}" for why, names in reasons.items())


def _page_faults() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return float(used.ru_minflt + used.ru_majflt)


def _opened(event: int, stack: ExitStack) -> Iterator[int]:
    """A running counter of each thread."""
    call = _SYSTEM_CALLS.get(platform.machine())
    if call is None or not sys.platform.startswith("linux"):
        raise OSError(errno.ENOSYS, "")
    attributes = bytearray(_SIZE)
    struct.pack_into("IIQ", attributes, 0, _HARDWARE, _SIZE, event)
    struct.pack_into("QQ", attributes, _FLAGS - 8, _READ_TIMES, _INHERITED)
    for thread in [*Path("/proc/self/task").iterdir()]:
        try:
            file = _perf_event_open(call, attributes, int(thread.name))
        except ProcessLookupError:  # it has ended
            continue
        stack.callback(os.close, file)
        yield file


def _perf_event_open(call: int, attributes: bytearray, thread: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = (ctypes.c_char * _SIZE).from_buffer(attributes)
    anywhere, no_group, no_flags = -1, -1, 0
    file = libc.syscall(call, buffer, thread, anywhere, no_group, no_flags)
    if file < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(file)


def _count(file: int) -> float | None:
    """Events of a thread; None if they were not counted at any time of those that it ran."""
    with suppress(OSError):
        value, wanted, counted = _READ.unpack(os.read(file, _READ.size))
        if counted:
            return float(value * wanted / counted)
        return None if wanted else 0.0
    return None
