"""Counters of the kernel: of all threads, and with the reason where there are none."""

import errno
import mmap
import threading

import pytest

from fwbench.measure import counters

_PAGES = 1000


def _touch() -> None:
    with mmap.mmap(-1, mmap.PAGESIZE * _PAGES) as pages:
        for number in range(_PAGES):
            pages[number * mmap.PAGESIZE] = 1


def _touch_elsewhere() -> None:
    thread = threading.Thread(target=_touch)
    thread.start()
    thread.join()


@pytest.mark.parametrize("work", [_touch, _touch_elsewhere])
def test_events_of_every_thread_are_counted(work: object) -> None:
    counts, _ = counters.counted(work)  # type: ignore[arg-type]
    assert _PAGES <= counts["page_faults"] <= _PAGES * 1.1


def test_threads_that_were_there_are_counted() -> None:
    begin, end = threading.Event(), threading.Event()

    def run() -> None:
        begin.wait()
        _touch()
        end.set()

    thread = threading.Thread(target=run)
    thread.start()
    counts, _ = counters.counted(lambda: (begin.set(), end.wait()))
    thread.join()
    assert counts["page_faults"] >= _PAGES


@pytest.mark.parametrize(
    ("number", "why"),
    [
        (errno.EACCES, "the kernel forbids them: sysctl kernel.perf_event_paranoid=2"),
        (errno.ENOENT, "the processor has none, or a virtual machine does not pass them on"),
        (errno.EMFILE, "Too many open files"),
    ],
)
def test_missing_counters_have_a_reason(
    monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, "Too many open files")

    monkeypatch.setattr(counters, "_perf_event_open", fail)
    names = "instructions, cycles, cache misses, branch misses"
    counts, reason = counters.counted(_touch)
    assert (counts.keys(), reason) == ({"page_faults"}, f"{names}: {why}")


def test_counters_that_took_turns_are_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the share of the time in which they counted; a thread that did not run has none."""
    reads = iter([(100, 50, 25), (7, 50, 0), (0, 0, 0)])
    monkeypatch.setattr(counters.os, "read", lambda *_: counters._READ.pack(*next(reads)))
    assert [counters._count(0), counters._count(0), counters._count(0)] == [200, None, 0]


def test_events_that_were_never_counted_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """All counters were taken by others: 0 would be a figure."""
    monkeypatch.setattr(counters, "_opened", lambda *_: iter([1]))
    monkeypatch.setattr(counters, "_count", lambda _: None)
    counts, reason = counters.counted(_touch)
    assert counts.keys() == {"page_faults"}
    assert reason.endswith(": the processor's counters were taken")


def test_another_system_has_no_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters.sys, "platform", "darwin")
    assert counters.counted(_touch)[1].endswith(": this system has none")
