"""Memory and processors: what a stretch of work used of them."""

import os
import re
import resource
import socket
import stat
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil

from fwbench.machine import throttled_s

_SELF = Path("/proc/self")
#: What resets the peak of resident memory (Linux' Documentation/filesystems/proc.rst).
_RESET_PEAK = "5"


class CpuUse(NamedTuple):
    """Processor time of a process, and its preemptions."""

    cpu_s: float
    preempted: int

    def __sub__(self, earlier: "CpuUse") -> "CpuUse":
        return CpuUse(self.cpu_s - earlier.cpu_s, self.preempted - earlier.preempted)


class OtherProcesses:
    """Processors that other processes kept busy while this context was entered.

    Processes that this one has started, such as those that load data, are its own.

    Args:
        siblings: whether processes with the same parent are told apart: other workers.
    """

    def __init__(self, *, siblings: bool = True) -> None:
        self._siblings = siblings
        #: Kept busy, time stolen by other virtual machines included; None where the system does not
        #: tell. Of a time that is too short to be counted, it is that of the contexts before it,
        #: too, siblings left out; None without any.
        self.cpus: float | None = None
        #: Of these, by processes with the same parent: other workers of the session.
        self.siblings_cpus: float | None = None
        #: Left idle by all processes.
        self.idle_cpus: float | None = None

    def __enter__(self) -> None:
        self._began = _used()
        _READINGS.append(self._began)

    def __exit__(self, *_: object) -> None:
        now = _used()
        long_ago = [reading for reading in _READINGS if now[0] - reading[0] >= _COUNTED_S]
        if not long_ago:
            return
        used = [later - earlier for later, earlier in zip(now, long_ago[-1], strict=True)]
        wall_s, busy_s, idle_s, own_s, siblings_s = used
        if not self._siblings:
            siblings_s = 0.0
        if long_ago[-1] is not self._began:  # siblings have had their own turns meanwhile
            busy_s, idle_s, siblings_s = busy_s - siblings_s, idle_s + siblings_s, 0.0
        self.cpus = max(0.0, (busy_s - own_s) / wall_s)
        self.siblings_cpus = max(0.0, siblings_s / wall_s)
        self.idle_cpus = max(0.0, idle_s / wall_s)


#: The kernel counts the time of all processes together in steps of 10 ms on each processor.
_COUNTED_S = 0.1

#: What had been used when the latest contexts began.
_READINGS: deque[tuple[float, ...]] = deque(maxlen=16)


def _used() -> tuple[float, ...]:
    """Seconds of the clock; of all processors, busy and idle; of this process and its siblings."""
    siblings = [pid for pid in _children(Path(f"/proc/{os.getppid()}")) if pid != os.getpid()]
    return time.perf_counter(), *_busy_and_idle_s(), _own_s(), sum(map(processors_s, siblings))


def _busy_and_idle_s() -> tuple[float, float]:
    """Seconds that all processors together have been busy, and idle."""
    times = psutil.cpu_times()._asdict()
    # What guests take is in `user` already.
    idle_s = times["idle"] + times.get("iowait", 0.0)
    guests_s = times.get("guest", 0.0) + times.get("guest_nice", 0.0)
    return sum(times.values()) - idle_s - guests_s, idle_s


def _own_s() -> float:
    """Seconds of processors that this process and those that it has started have had."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running_s = sum(map(processors_s, _children()))
    return time.process_time() + ended.ru_utime + ended.ru_stime + running_s


def processors_s(pid: int) -> float:
    """Seconds of processors that a process, and all that it has started, have had."""
    with suppress(psutil.Error):
        used = psutil.Process(pid).cpu_times()[:4]  # its own, and of children that have ended
        return sum(used) + sum(map(processors_s, _children(Path(f"/proc/{pid}"))))
    return 0.0


def _children(process: Path = _SELF) -> list[int]:
    """The processes that this one has started; none where the system does not tell.

    psutil would look at every process of the machine, which takes some ten milliseconds.
    """
    return [int(pid) for text in _of_threads(process, "children").values() for pid in text.split()]


def _of_threads(process: Path, name: str) -> dict[str, bytes]:
    """Content of the file of a name for each thread; none of a process that has ended meanwhile.

    A case reads some hundred of them, for which pathlib takes twice as long.
    """
    texts = {}
    with suppress(OSError):
        for thread in os.scandir(process / "task"):
            path = f"{thread.path}/{name}"
            with suppress(OSError), open(path, "rb", buffering=0) as file:  # noqa: PTH123
                texts[thread.name] = file.readall()
    return texts


class RunQueue:
    """Processors for which threads of this process waited while this context was entered."""

    #: Waited for: a thread that is ready to run and waits all the time counts 1; None where the
    #: system does not tell (Linux' Documentation/scheduler/sched-stats.rst, field 2).
    cpus: float | None = None
    #: Taken by the quota of the process's cgroup; None where none is counted.
    throttled_cpus: float | None = None

    def __enter__(self) -> None:
        self._throttled_s = throttled_s()
        self._before = time.perf_counter(), _queued_ns()

    def __exit__(self, *_: object) -> None:
        started_s, before_ns = self._before
        wall_s = time.perf_counter() - started_s
        after_ns = _queued_ns()
        if after_ns:
            # Those of threads that have ended meanwhile are gone.
            waited_ns = sum(ns - before_ns.get(thread, 0) for thread, ns in after_ns.items())
            self.cpus = 1e-9 * waited_ns / wall_s
        stopped_s = throttled_s()
        if stopped_s is not None and self._throttled_s is not None:
            self.throttled_cpus = (stopped_s - self._throttled_s) / wall_s


def _queued_ns(process: Path = _SELF) -> dict[str, int]:
    """Nanoseconds that each thread has waited for a processor; none where that is not known."""
    waited_ns = {}
    for thread, text in _of_threads(process, "schedstat").items():
        with suppress(IndexError):  # the kernel does not count
            waited_ns[thread] = int(text.split()[1])
    return waited_ns


def cpu_use() -> CpuUse:
    """Processor use of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return CpuUse(usage.ru_utime + usage.ru_stime, usage.ru_nivcsw)


def cpu_clock_hz() -> float | None:
    """The highest clock of a CPU at this moment; None where the system does not tell."""
    with suppress(OSError, AttributeError, NotImplementedError, RuntimeError):
        clocks = psutil.cpu_freq(percpu=True)
        return 1e6 * max((clock.current for clock in clocks), default=0.0) or None
    return None


#: Whose switches are counted: those of the thread, where the system tells (Linux).
_OF_THREAD = getattr(resource, "RUSAGE_THREAD", resource.RUSAGE_SELF)


def thread_switches() -> int:
    """Times that this thread has lost its processor so far, or given it away to wait."""
    usage = resource.getrusage(_OF_THREAD)
    return usage.ru_nvcsw + usage.ru_nivcsw


def other_threads_s() -> float:
    """Processor time of this process's other threads so far, in seconds.

    Of one that is running on another CPU the kernel knows it to a tick, milliseconds.
    """
    return time.process_time() - time.thread_time()


def reset_peak_memory(process: Path = _SELF) -> bool:
    """Forget the largest resident memory so far; returns whether that is possible, as on Linux."""
    with suppress(OSError):
        (process / "clear_refs").write_text(_RESET_PEAK, encoding="ascii")
        return True
    return False


def peak_memory_bytes(process: Path = _SELF) -> int | None:
    """The largest resident memory since the last reset; None where it is not known.

    VmHWM, not ``ru_maxrss``: a child's begins with its parent's. Processes that load data are not
    in it.
    """
    with suppress(OSError):
        status = (process / "status").read_text(encoding="utf-8", errors="replace")
        match = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        return int(match[1]) * 1024 if match else None
    return None


def resident_bytes(pid: int) -> int | None:
    """The resident memory of a process now; None where the system does not tell."""
    with suppress(psutil.Error):
        return int(psutil.Process(pid).memory_info().rss)
    return None


def _children_bytes(process: Path = _SELF) -> int:
    """The largest resident memory of each process that this one and its children have started."""
    children = [Path(f"/proc/{pid}") for pid in _children(process)]
    return sum((peak_memory_bytes(child) or 0) + _children_bytes(child) for child in children)


@dataclass
class CpuClock:
    """The processor time of all threads of this process, those of data loaders apart."""

    started_s: float = 0.0

    def start(self) -> None:
        """Begin a stretch of work."""
        self.started_s = time.process_time()

    def utilization(self, wall_s: float, threads: int) -> float:
        """The fraction of processors that was busy since :meth:`start`."""
        return (time.process_time() - self.started_s) / (wall_s * threads)


_DESCRIPTORS = Path("/proc/self/fd")

#: ``tcpi_bytes_sent`` and ``tcpi_bytes_retrans``, which are among them, in ``struct tcp_info``
#: (linux/tcp.h, since Linux 4.19).
_BYTES_SENT = struct.Struct("=QQ")
_OFFSET_BYTES = 200


#: Bytes of each socket, by its number, when it was last looked at; it may be closed since then.
_sent: dict[int, int] = {}
_counting = threading.Lock()


def sent_bytes() -> int | None:
    """Bytes that TCP sockets of this process have sent; None where the system does not tell.

    Those that were sent again count once: on a busy machine even a loopback does that.
    It never falls: of a socket that has been closed, those count that it had at an earlier call.
    """
    if sys.platform != "linux":
        return None
    with _counting:
        for number, end in _sockets():
            sent = _sent_by(end)
            if sent is None:
                return None
            _sent[number] = max(sent, _sent.get(number, 0))
        return sum(_sent.values())


def _sockets() -> Iterator[tuple[int, socket.socket]]:
    """Number and copy of each TCP socket of this process; closed when the next is asked for.

    A socket with several descriptors, such as another thread's copy, is one socket.
    """
    seen = set()
    for descriptor in [int(entry.name) for entry in _DESCRIPTORS.iterdir()]:
        with suppress(OSError):  # it has been closed meanwhile
            # Looked at as a copy, which nobody else closes: one that is lost is not seen.
            copied = os.dup(descriptor)
            status = os.fstat(copied)
            if not stat.S_ISSOCK(status.st_mode) or status.st_ino in seen:
                os.close(copied)
                continue
            seen.add(status.st_ino)
            with socket.socket(fileno=copied) as copy:
                internet = copy.family in (socket.AF_INET, socket.AF_INET6)
                if internet and copy.type == socket.SOCK_STREAM:
                    yield status.st_ino, copy


def _sent_by(end: socket.socket) -> int | None:
    info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _OFFSET_BYTES + _BYTES_SENT.size)
    if len(info) < _OFFSET_BYTES + _BYTES_SENT.size:
        return None
    sent, again = _BYTES_SENT.unpack_from(info, _OFFSET_BYTES)
    return int(sent - again)


class PeakMemory:
    """The resident memory of this process while a case is measured.

    Memory of verification does not count, nor what is cached of it for other cases:
    :meth:`pause` before it, :meth:`resume` after.

    Attributes:
        before_bytes: when this was made; None where the system does not tell.
        peak_bytes: the largest since then, pauses apart; None likewise.
        children_bytes: peaks of the processes that it has started, and that ran before a pause.
    """

    def __init__(self) -> None:
        self._known = reset_peak_memory()
        self.before_bytes = peak_memory_bytes() if self._known else None
        self.peak_bytes = self.before_bytes
        self.children_bytes = self._uncounted_bytes = 0

    def pause(self) -> None:
        """Note the largest so far."""
        if self._known:
            peak_bytes = (peak_memory_bytes() or 0) - self._uncounted_bytes
            self.peak_bytes = max(self.peak_bytes or 0, peak_bytes)
            self.children_bytes = max(self.children_bytes, _children_bytes())

    def restart(self) -> int | None:
        """Forget what was largest so far; returns what is held now, None if that is not known."""
        self.resume()
        self.peak_bytes = peak_memory_bytes() if self._known else None
        return self.peak_bytes

    def resume(self, kept_bytes: int = 0) -> None:
        """Look for a new one from here on; ``kept_bytes`` more since the pause do not count."""
        self._uncounted_bytes += kept_bytes
        if self._known:
            reset_peak_memory()


#: What the first case of this process found in use on each of its GPUs, in bytes.
FOUND_FIRST: dict[str, int] = {}


class DeviceMemory:
    """The memory of a GPU that a framework has in use while a case is bound.

    Args:
        peak_bytes: the most in use since just now, as :meth:`fwbench.Framework.watch_memory` has
            it; so its first answer is what is in use before the case.
        found_first: what the first case of this process found, by device; it is added to.
            By default what this process knows.
    """

    def __init__(
        self,
        device: str,
        peak_bytes: Callable[[], int | None],
        found_first: MutableMapping[str, int] | None = None,
    ) -> None:
        self._peak_bytes = peak_bytes
        #: Before the case; None where the framework does not tell.
        self.before_bytes = peak_bytes()
        #: What earlier cases of this process have left of that; None likewise.
        self.left_bytes = None
        if self.before_bytes is not None:
            known = FOUND_FIRST if found_first is None else found_first
            first_bytes = known.setdefault(device, self.before_bytes)
            self.left_bytes = max(0, self.before_bytes - first_bytes)

    @property
    def peak_bytes(self) -> int | None:
        """The most in use since the case began."""
        return self._peak_bytes()
