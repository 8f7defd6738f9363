"""Rounds are set aside while a CPU is slow, by a loop beside them and never by their times."""

import itertools
import math
import os
import statistics
import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fwbench.measure.clock import Clock
from fwbench.measure.core_speed import Cpus, Loop, SetAside, SpeedWatch, cpus_of_process
from fwbench.measure.resources import CpuUse
from fwbench.testing import HandClock

_FAST_S, _SLOW_S = 30e-6, 55e-6

#: What a look at a slow CPU finds: it goes on for 3 ms.
_SLOW_LOOK_S = [_SLOW_S] * 55


def _loop(looks_s: Iterator[float]) -> Loop:
    """A loop that takes these times, in looks a second apart."""
    return Loop(lambda: next(looks_s), itertools.count().__next__)


def _watch(hand: HandClock, looks_s: Iterator[float]) -> tuple[Clock, SpeedWatch]:
    """A clock and a watch of a process that has seen full speed, whose loops take these times."""
    clock = Clock(hand)
    return clock, SpeedWatch(clock, Cpus({None: _loop(looks_s)}, SetAside()))


def _counted(rounds_s: Sequence[float], slow: Sequence[bool]) -> list[int]:
    """Which rounds count, if the loop is slow or not after each of them."""
    hand = HandClock()
    after = (_SLOW_LOOK_S if each else [_FAST_S] for each in slow)
    looks_s = itertools.chain([_FAST_S] * 2, *after)
    clock, watch = _watch(hand, looks_s)
    watch.begin()
    counted = []
    for number, round_s in enumerate(rounds_s):
        clock.time(lambda round_s=round_s: hand.spend(round_s))
        counted += [number] * len(watch.sift(round_s))
    return counted


def test_long_rounds_count_between_two_loops_at_full_speed() -> None:
    slow = [False, True, True, False, False]
    assert _counted([0.05] * 5, slow) == [0, 4]


def test_the_round_behind_the_loops_does_not_count_if_it_is_short() -> None:
    """Loops have run at full speed; then a CPU is slow once, and fast again."""
    slow = [False, True, False, False]
    assert _counted([0.005] * 12, slow) == [2, 2, 11, 11]


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.002, 0.01, 0.03])), min_size=2, max_size=9)
)
def test_the_choice_does_not_look_at_times(rounds: list[tuple[bool, float]]) -> None:
    """But at that of the first round: which rounds are looked at together depends on them."""
    slow = [each for each, _ in rounds]
    times_s = [0.05, *(0.02 + round_s for _, round_s in rounds)]
    assert _counted(times_s, [*slow, False]) == _counted([0.05] * len(times_s), [*slow, False])


def test_short_rounds_are_looked_at_together() -> None:
    hand = HandClock()
    clock, watch = _watch(hand, iter([_FAST_S, _FAST_S, _FAST_S, *_SLOW_LOOK_S]))
    watch.begin()
    sifted = []
    for _ in range(18):
        clock.time(lambda: hand.spend(2.0**-10))
        sifted.append(len(watch.sift(2.0**-10)))
    assert [number for number in sifted if number] == [7]
    facts = watch.facts()
    assert facts == {"full_speed": 1.0, "slow_rounds": 7, "loop_s": pytest.approx(_FAST_S)}


def test_rounds_are_looked_at_once_they_are_as_long_as_is_wanted() -> None:
    """A case would last for another few milliseconds."""
    hand = HandClock()
    clock, watch = _watch(hand, itertools.repeat(_FAST_S))
    watch.begin()
    sifted = []
    for _ in range(4):
        clock.time(lambda: hand.spend(2.0**-9))
        sifted.append(len(watch.sift(2.0**-9, 2.0**-8)))
    assert sifted == [0, 0, 2, 0]  # the first one is behind the loops


def test_a_clock_that_changes_by_itself_is_full_speed() -> None:
    loop = _loop(iter([30e-6, 38e-6, *[40e-6] * 75]))
    assert [loop.is_fast() for _ in range(3)] == [True, True, False]


def test_a_cpu_that_has_just_woken_up_is_not_slow() -> None:
    """Nor one that was interrupted."""
    awake_at_last = [*_SLOW_LOOK_S[1:], _FAST_S]
    loop = _loop(iter([_FAST_S, _SLOW_S, _FAST_S, *awake_at_last, *_SLOW_LOOK_S]))
    assert [loop.is_fast() for _ in range(4)] == [True, True, True, False]


def test_a_cpu_that_stays_slow_is_not_waited_for_at_each_look() -> None:
    """It has not slept since the look before, unless that was long ago."""
    moments_s = iter([0.0, 1.0, 1.01, 1.05, 2.0])  # before and after each wait
    looks_s = iter([_FAST_S, *_SLOW_LOOK_S, _SLOW_S, *_SLOW_LOOK_S])
    loop = Loop(lambda: next(looks_s), lambda: next(moments_s))
    assert [loop.is_fast() for _ in range(4)] == [True, False, False, False]
    assert (next(looks_s, None), next(moments_s, None)) == (None, None)


def test_what_was_faster_long_ago_is_forgotten() -> None:
    """A laptop's clock is highest for the first few seconds."""
    loop = _loop(itertools.chain([_FAST_S] * 100, itertools.repeat(_SLOW_S)))
    fast = [loop.is_fast() for _ in range(10_000)]
    assert not any(fast[100:1_500])
    assert all(fast[5_000:])


def test_after_a_while_rounds_count_as_they_are() -> None:
    hand = HandClock()
    clock, watch = _watch(hand, itertools.chain([_FAST_S] * 2, itertools.repeat(_SLOW_S)))
    watch.begin()
    counted = []
    for _ in range(10):
        clock.time(lambda: hand.spend(0.25))
        counted.append(len(watch.sift(0.25)))
    assert counted == [0] + [1] * 9
    facts = watch.facts()
    assert (facts["full_speed"], facts["slow_rounds"]) == (0.0, 1)
    assert clock.facts([0.25] * 9, 1)["completion_s"] == 0.25


def test_slow_cpus_are_not_waited_for_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where CPUs are of two kinds, each case would take seconds longer."""
    monkeypatch.setattr(time, "process_time", lambda: 0.0)  # that of all tests before this one
    hand = HandClock()
    cpus = Cpus({None: _loop(itertools.cycle([_FAST_S, *_SLOW_LOOK_S]))}, SetAside())
    set_aside = []
    for _ in range(8):
        clock = Clock(hand)
        watch = SpeedWatch(clock, cpus)
        watch.begin()
        for _ in range(5):
            clock.time(lambda: hand.spend(0.25))
            watch.sift(0.25)
        set_aside.append(watch.facts()["slow_rounds"])
    assert set_aside[0] > 0
    assert set_aside[-1] == 0


def test_a_process_waits_for_its_cpus_as_long_whichever_are_slow() -> None:
    waits = [cpus_of_process(is_parallel=is_parallel).set_aside for is_parallel in (False, True)]
    assert waits[0] is waits[1]


class _Neighbour:
    """A machine whose other guest slows it down for a fifth of the time, 15 ms or more at a time.

    The loop suffers from it by another factor than the work does.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self.hand = HandClock()
        self._rng = rng
        self._changes_s = 0.0
        self._is_slow = True

    def spend(self, work_s: float, factor: float) -> float:
        """Do work that takes so many seconds at full speed; returns the seconds that it took."""
        began_s = self.hand()
        while work_s > 0.0:
            if self.hand() >= self._changes_s:
                self._is_slow = not self._is_slow
                mean_s = 0.05 if self._is_slow else 0.25
                self._changes_s = self.hand() + 0.015 + self._rng.exponential(mean_s)
            slowed = factor if self._is_slow else 1.0
            done_s = min(work_s, (self._changes_s - self.hand()) / slowed + 1e-9)
            self.hand.spend(done_s * slowed)
            work_s -= done_s
        return self.hand() - began_s

    def median_s(self, round_s: float, cpus: Cpus) -> tuple[float, float]:
        """Medians of a case's first twelve rounds that count, and of its first twelve."""
        clock = Clock(self.hand, use=lambda: CpuUse(0.0, 0))
        watch = SpeedWatch(clock, cpus)
        watch.begin()
        counted: list[float] = []
        every: list[float] = []
        while len(counted) < 12:
            work_s = round_s * math.exp(0.02 * self._rng.standard_normal())
            every.append(clock.time(lambda work_s=work_s: self.spend(work_s, 1.9))[0])
            counted += watch.sift(every[-1])
        return statistics.median(counted[:12]), statistics.median(every[:12])


@pytest.mark.parametrize("longer", [1, 10])
def test_twins_stay_twins(longer: int) -> None:
    """In 10,000 contests, also of rounds of one millisecond with rounds of ten."""
    rng = np.random.default_rng(11)
    logs = []
    for _ in range(10_000):
        machine = _Neighbour(rng)
        loop = Loop(lambda machine=machine: machine.spend(30e-6, 1.5), machine.hand)
        for _ in range(20):  # earlier cases
            machine.spend(0.03, 1.9)
            loop.is_fast()
        cpus = Cpus({None: loop}, SetAside())
        first = machine.median_s(1e-3, cpus)
        second = machine.median_s(longer * 1e-3, cpus)
        logs.append([math.log(longer * a / b) for a, b in zip(first, second, strict=True)])
    counted, every = np.array(logs).T
    assert abs(np.sum(np.sign(counted))) <= 3 * math.sqrt(len(counted))
    assert abs(np.mean(counted)) <= 0.001
    assert np.std(counted) <= np.std(every) / 3


def test_loops_run_on_each_cpu_where_other_threads_compute() -> None:
    """Only while somebody looks: their threads would be in every dump of a process that hangs."""
    before = threading.active_count()
    cpus = cpus_of_process(is_parallel=True)
    assert cpus is cpus_of_process(is_parallel=True), "one for a process"
    numbers = os.sched_getaffinity(0)
    with cpus.reached():
        cpus.are_fast()
        assert 1e-6 < cpus.loop_s < 1.0
        own = [thread for thread in threading.enumerate() if thread.name.startswith("fwbench")]
        places = [os.sched_getaffinity(thread.native_id or 0) for thread in own]
    assert sorted(places, key=min) == [{number} for number in sorted(numbers)]
    assert threading.active_count() == before


def test_the_loop_runs_in_the_thread_that_computes_alone() -> None:
    cpus, before = cpus_of_process(is_parallel=False), threading.active_count()
    with cpus.reached():
        cpus.are_fast()
        assert threading.active_count() == before
