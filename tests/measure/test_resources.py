"""The use of memory and processors, and None where it is not known."""

import mmap
import os
import resource
import socket
import subprocess
import sys
import threading
import time
import zlib
from collections import deque, namedtuple
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import psutil
import pytest

from fwbench.measure import resources
from fwbench.measure.resources import (
    CpuClock,
    CpuUse,
    OtherProcesses,
    PeakMemory,
    RunQueue,
    cpu_use,
    other_threads_s,
    peak_memory_bytes,
    processors_s,
    reset_peak_memory,
    sent_bytes,
    thread_switches,
)
from support.tables import tabled

# Memory

MIB = 2**20


def _allocate(mebibytes: int) -> mmap.mmap:
    """Touch so much of the system's memory; malloc would reuse what earlier tests gave back."""
    memory = mmap.mmap(-1, mebibytes * MIB)
    for _ in range(mebibytes):
        memory.write(bytes(MIB))
    return memory


@pytest.mark.skipif(not reset_peak_memory(), reason="the peak cannot be reset on this machine")
def test_the_peak_of_this_process_rises_and_is_forgotten() -> None:
    """It stays when memory is given back, until it is reset."""
    reset_peak_memory()
    peaks = [peak_memory_bytes()]
    block = _allocate(64)
    peaks.append(peak_memory_bytes())
    block.close()
    peaks.append(peak_memory_bytes())
    reset_peak_memory()
    before, held, after, forgotten = (peak or 0 for peak in (*peaks, peak_memory_bytes()))
    # Linux counts in batches of pages, so none of them is exact.
    assert min(held, after) > before + 32 * MIB > 32 * MIB
    assert 0 < forgotten < after - 32 * MIB


STATUS = "Name:\tpythön\nVmPeak:\t  900 kB\nVmHWM:\t   300 kB\nVmRSS:\t   200 kB\n"


def test_the_peak_is_that_of_resident_memory(tmp_path: Path) -> None:
    """Not of address space, and not what is resident now; Linux does not escape names."""
    (tmp_path / "status").write_text(STATUS, encoding="utf-8")
    assert peak_memory_bytes(tmp_path) == 300 * 1024


def test_the_peak_alone_is_reset(tmp_path: Path) -> None:
    assert reset_peak_memory(tmp_path) is True
    assert (tmp_path / "clear_refs").read_text(encoding="ascii") == "5"


@pytest.mark.parametrize(
    "make",
    [
        lambda proc: None,
        lambda proc: proc.mkdir(),
        lambda proc: (proc.mkdir(), (proc / "status").write_text("Name:\tpython\n")),
        lambda proc: (proc.mkdir(), (proc / "status").mkdir(), (proc / "clear_refs").mkdir()),
    ],
    ids=["no folder", "no file", "no such line", "not to be read"],
)
def test_without_proc_the_peak_is_unknown(make: Callable[[Path], Any], tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    make(proc)
    assert peak_memory_bytes(proc) is None
    assert reset_peak_memory(proc) is (proc.is_dir() and not (proc / "clear_refs").is_dir())


@pytest.mark.parametrize(
    ("busy_s", "wall_s", "threads", "expected"),
    [(2.0, 2.0, 1, 1.0), (2.0, 2.0, 2, 0.5), (3.0, 2.0, 2, 0.75), (0.0, 2.0, 2, 0.0)],
)
def test_utilization_is_the_busy_share_of_the_threads(
    monkeypatch: pytest.MonkeyPatch, busy_s: float, wall_s: float, threads: int, expected: float
) -> None:
    reading = Mock(side_effect=[100.0, 100.0 + busy_s])
    monkeypatch.setattr(resources, "time", SimpleNamespace(process_time=reading))
    clock = CpuClock()
    clock.start()
    assert clock.utilization(wall_s, threads) == expected


def test_what_a_process_has_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """User and system time together; switches that the kernel forced, and no others."""
    usage = SimpleNamespace(ru_utime=1.5, ru_stime=0.25, ru_nivcsw=7, ru_nvcsw=100)
    monkeypatch.setattr(resources.resource, "getrusage", lambda _: usage)
    assert cpu_use() == CpuUse(1.75, 7)
    assert cpu_use() - CpuUse(1.0, 4) == CpuUse(0.75, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="the system counts those of all threads")
def test_switches_are_those_of_the_thread_that_asks() -> None:
    """It gives its processor away to wait for another thread, which does so more often."""
    before = thread_switches()
    other = threading.Thread(target=lambda: [time.sleep(1e-4) for _ in range(200)])
    other.start()
    other.join()
    assert 1 <= thread_switches() - before < 200


def test_time_of_other_threads_is_not_that_of_this_one() -> None:
    def compute(until_s: float) -> None:
        while time.thread_time() < until_s:
            pass

    before_s = other_threads_s()
    compute(time.thread_time() + 0.05)
    assert other_threads_s() - before_s < 0.02, "this thread alone has computed"
    other = threading.Thread(target=compute, args=(0.05,))
    other.start()
    other.join()
    assert 0.04 < other_threads_s() - before_s < 0.5


def test_processor_time_is_that_of_all_threads() -> None:
    def work() -> None:
        while time.thread_time() < 0.05:
            pass

    before = cpu_use()
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (cpu_use() - before).cpu_s >= 0.09  # the kernel's two accounts differ by a little


_GONE = 2


class Account:
    """Readings of all processors and of this process, one after the other."""

    def __init__(self, *readings: dict[str, float]) -> None:
        self._readings = iter(readings)
        self._reading: dict[str, float] = {}

    def perf_counter(self) -> float:
        """The first that is asked for: it begins a reading."""
        self._reading = next(self._readings)
        return self._reading["wall"]

    def process_time(self) -> float:
        return self._reading["own"]

    def getrusage(self, who: int) -> Any:
        """The use of children that have ended."""
        assert who == resource.RUSAGE_CHILDREN
        return SimpleNamespace(ru_utime=self._reading.get("ended", 0.0), ru_stime=0.0)

    def child(self, pid: int) -> Any:
        """A process that this one has started; the second has ended by now."""
        if pid == _GONE:
            raise psutil.NoSuchProcess(pid)
        return SimpleNamespace(cpu_times=lambda: (self._reading.get("child", 0.0), 0.0, 0.0, 0.0))

    def cpu_times(self) -> Any:
        names = ("user", "system", "steal", "idle", "iowait", "guest")
        return namedtuple("Times", names)(*(self._reading.get(name, 0.0) for name in names))


@tabled
def test_what_other_processes_kept_busy(
    monkeypatch: pytest.MonkeyPatch, used: dict[str, float], cpus: float | None
) -> None:
    """Processors that were neither idle nor this process's, meanwhile alone; never less than 0."""
    before = dict.fromkeys(used, 64.0)
    account = Account(before, {name: 64.0 + value for name, value in used.items()})
    monkeypatch.setattr(resources, "time", account)
    system = SimpleNamespace(cpu_times=account.cpu_times, Process=account.child, Error=psutil.Error)
    ours = resources._SELF
    by_parent: dict[Path, list[int]] = {ours: [1, _GONE], Path("/proc/1"): []}
    monkeypatch.setattr(
        resources, "_children", lambda process=ours: by_parent.get(process, [os.getpid(), 1])
    )
    monkeypatch.setattr(resources, "psutil", system)
    usage = SimpleNamespace(getrusage=account.getrusage, RUSAGE_CHILDREN=resource.RUSAGE_CHILDREN)
    monkeypatch.setattr(resources, "resource", usage)
    monkeypatch.setattr(resources, "_READINGS", deque())
    others = OtherProcesses()
    assert (others.cpus, others.siblings_cpus, others.idle_cpus) == (None, None, None)
    with others:
        pass
    assert others.cpus == cpus
    if cpus is not None:
        # The child stands for the sibling, too.
        assert others.siblings_cpus == used.get("child", 0.0) / used["wall"]
        assert others.idle_cpus == (used.get("idle", 0.0) + used.get("iowait", 0.0)) / used["wall"]


def test_short_cases_are_counted_with_those_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel counts in steps of 10 ms; siblings take turns with this process in between."""
    readings = [(0.0, 0.0, 0.0, 0.0, 0.0), (0.05, 0.1, 0.0, 0.05, 0.0)]
    readings += [(0.08, 0.14, 0.0, 0.08, 0.0), (0.125, 0.2, 0.05, 0.125, 0.025)]
    monkeypatch.setattr(resources, "_READINGS", deque())
    monkeypatch.setattr(resources, "_used", iter(readings).__next__)
    first, second = OtherProcesses(), OtherProcesses()
    for others in (first, second):
        with others:
            pass
    assert first.cpus is None
    assert (second.cpus, second.siblings_cpus) == (pytest.approx(0.4), 0.0)
    assert second.idle_cpus == pytest.approx(0.6)


def test_threads_that_wait_for_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread counts with what it has waited meanwhile, if the kernel counts that."""

    def waited(**threads: str) -> None:
        for thread, text in threads.items():
            (tmp_path / "task" / thread).mkdir(parents=True, exist_ok=True)
            (tmp_path / "task" / thread / "schedstat").write_text(text, encoding="ascii")

    monkeypatch.setattr(resources, "_queued_ns", partial(resources._queued_ns, tmp_path))
    monkeypatch.setattr(resources.time, "perf_counter", iter([0.0, 1.0, 1.0, 3.0]).__next__)
    queue = RunQueue()
    with queue:
        pass
    assert queue.cpus is None
    waited(t1="9 1000000000 5", t2="9 500000000 5")
    with queue:
        waited(t1="9 1500000000 6", t2="9 600000000 7", t3="1 400000000 1")
    assert queue.cpus == pytest.approx(0.5)


def test_a_processor_that_two_threads_want_is_waited_for() -> None:
    """By the kernel's own account."""
    if not resources._queued_ns():
        pytest.skip("the kernel does not tell how long threads wait")
    queue = RunQueue()
    until_s = time.perf_counter() + 0.3

    def work() -> None:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        while time.perf_counter() < until_s:
            zlib.crc32(bytes(2**20))  # without the lock of the interpreter

    threads = [threading.Thread(target=work) for _ in range(2)]
    with queue:
        for thread in threads:
            thread.start()
        time.sleep(0.25)
    for thread in threads:
        thread.join()
    assert queue.cpus is not None
    assert queue.cpus > 0.3


def test_children_are_those_of_all_threads(tmp_path: Path) -> None:
    """The kernel lists them; where it does not, there are none."""
    for thread, children in (("10", "11 12 "), ("13", ""), ("14", "15 ")):
        (tmp_path / "task" / thread).mkdir(parents=True)
        (tmp_path / "task" / thread / "children").write_text(children, encoding="ascii")
    assert sorted(resources._children(tmp_path)) == [11, 12, 15]
    assert resources._children(tmp_path / "elsewhere") == []


def test_a_process_that_ends_while_it_is_read_has_no_threads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def ended(*_: object) -> list[Path]:
        raise ProcessLookupError

    (tmp_path / "task" / "10").mkdir(parents=True)
    assert resources._children(tmp_path) == []  # a thread has
    monkeypatch.setattr(os, "scandir", ended)
    assert resources._children(tmp_path) == []
    assert resources._queued_ns(tmp_path) == {}


# Bounds leave 25 MiB for what earlier tests of this process have left, and give back meanwhile.


def test_processor_time_of_another_process_is_that_of_all_it_has_started() -> None:
    """Children that run, and those that have ended; a process that is not there has none."""
    spin = "import time\nwhile time.process_time() < 0.15: pass\n"
    start = (
        f"import subprocess, sys\nstart = lambda more: [sys.executable, '-c', {spin!r} + more]\n"
    )
    ended = "subprocess.run(start(''))\n"
    runs = (
        "print(subprocess.Popen(start('print(1, flush=True); input()')).pid, flush=True); input()"
    )
    command = [sys.executable, "-c", start + ended + runs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.readline()  # the child's, when it has spun
        # Three processes have two counters each, cut to ticks of 10 ms; one child alone has 0.15.
        assert 0.3 - 6 * 0.01 <= processors_s(process.pid) < 2.0
        process.communicate(b"\n\n")
    assert processors_s(process.pid) == 0.0


def _grown_bytes(measured: PeakMemory) -> int:
    assert measured.peak_bytes is not None
    assert measured.before_bytes is not None
    return measured.peak_bytes - measured.before_bytes


def test_the_peak_is_that_of_the_measured_parts() -> None:
    """Memory that is held in between does not count."""
    measured = PeakMemory()
    _allocate(80)
    measured.pause()
    _allocate(400)
    measured.resume()
    _allocate(120)
    measured.pause()
    measured.resume()
    _allocate(10)  # the largest part counts, not the latest
    measured.pause()
    assert 95 * MIB < _grown_bytes(measured) < 240 * MIB


def test_memory_of_children_is_added_up() -> None:
    """At their largest, also that of their own; not of those that ended before the pause."""
    held = "import subprocess, sys; held = bytearray(70 << 20); del held; "
    waits = "print(1, flush=True); input()"
    starts = f"subprocess.run([sys.executable, '-c', {held + waits!r}])"
    others = PeakMemory()  # what else this process has started
    others.pause()
    measured = PeakMemory()
    command = [sys.executable, "-c", held + starts]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        measured.pause()
        process.communicate(b"\n")
    measured.pause()
    assert 140 * MIB < measured.children_bytes - others.children_bytes < 240 * MIB
    assert _grown_bytes(measured) < 60 * MIB


def test_what_is_kept_for_others_does_not_count() -> None:
    """It is held while the next part is measured."""
    measured = PeakMemory()
    measured.pause()
    kept = _allocate(100)
    measured.resume(len(kept))
    _allocate(80)
    measured.pause()
    kept.close()
    assert 60 * MIB < _grown_bytes(measured) < 140 * MIB


def test_what_was_largest_can_be_forgotten() -> None:
    """Memory that is held then is returned, and the peak begins again."""
    measured = PeakMemory()
    _allocate(400)
    held = _allocate(100)
    held_bytes = measured.restart()
    _allocate(60)
    measured.pause()
    held.close()
    assert 125 * MIB < _grown_bytes(measured) < 240 * MIB
    assert measured.before_bytes is not None
    assert held_bytes is not None
    assert 75 * MIB < held_bytes - measured.before_bytes < 150 * MIB


def test_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "reset_peak_memory", lambda: False)
    measured = PeakMemory()
    measured.pause()
    measured.resume()
    assert measured.restart() is None
    assert (measured.before_bytes, measured.peak_bytes) == (None, None)


def test_siblings_may_be_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those of whoever started the session, which is no worker."""
    readings = [(0.0, 0.0, 0.0, 0.0, 0.0), (1.0, 1.5, 0.5, 1.0, 0.5)]
    monkeypatch.setattr(resources, "_READINGS", deque())
    monkeypatch.setattr(resources, "_used", iter(readings).__next__)
    with (others := OtherProcesses(siblings=False)):
        pass
    assert (others.cpus, others.siblings_cpus, others.idle_cpus) == (0.5, 0.0, 0.5)


def _connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        return client, listening.accept()[0]


def test_bytes_of_a_socket_that_is_closed_stay_sent() -> None:
    """Or else what others send meanwhile would be too little."""
    before = sent_bytes()
    client, other = _connected()
    with other:
        client.sendall(b"x" * 1000)
        sent = sent_bytes()
        client.close()
        other.sendall(b"x" * 10)
        assert (before, sent, sent_bytes()) == (before, (before or 0) + 1000, (before or 0) + 1010)


def test_a_copy_that_another_thread_closes_hides_no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the descriptor that comes first, and has gone when it is looked at."""
    client, other = _connected()
    with client, other:
        before = sent_bytes()
        client.sendall(b"x" * 1000)
        lost, real = os.dup(client.fileno()), os.dup
        listed = [Path(str(lost)), *resources._DESCRIPTORS.iterdir()]

        def dup(descriptor: int) -> int:
            if descriptor == lost:
                os.close(lost)
                monkeypatch.setattr(resources.os, "dup", real)
            return real(descriptor)

        monkeypatch.setattr(resources, "_DESCRIPTORS", SimpleNamespace(iterdir=lambda: listed))
        monkeypatch.setattr(resources.os, "dup", dup)
        assert sent_bytes() == (before or 0) + 1000
