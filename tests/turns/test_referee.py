"""The referee gives turns: nobody runs while another is timed, and nobody waits for ever."""

import itertools
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.turns import referee
from fwbench.turns.contest import CaseVisits, Effort
from fwbench.turns.referee import Referee
from support.tables import tabled

_PATIENCE_S = 30.0

#: What every contestant can do; it writes what it has done, and when, as JSON.
_BASICS = """
import contextlib, json, os, sys, threading, time
from fwbench.turns import visits

done = []

def work(seconds=1e-3):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass

def iter_of_nothing():
    yield from ()

def contest(key, calls=1, until=10**9, work=work, slow=0):
    with visits.contest(key, calls) as begun:
        with contextlib.closing(begun.turns() if begun else iter_of_nothing()) as turns:
            for number, visit in enumerate(turns):
                if number == until:
                    os._exit(0)
                start = time.monotonic()
                for _ in range(visit.lead_in + visit.rounds):
                    work()
                visit.rounds_s = [1e-3] * visit.rounds
                visit.counts = number >= slow
                done.append([key, begun.calls, start, time.monotonic()])
    if begun is None:
        done.append([key, None, 0.0, 0.0])

def whole(key, part=""):
    with visits.whole(key, part):
        start = time.monotonic()
        work(0.05)
        done.append([key, 1, start, time.monotonic()])

def spin():
    threading.Thread(target=work, args=(60.0,), daemon=True).start()
"""

Done = list[list[Any]]


class Sides:
    """Processes that take turns, a script each.

    Attributes:
        done: what each has done, once all have ended.
        referee: theirs.
    """

    def __init__(self, folder: Path, enough: Callable[[str, CaseVisits], bool]) -> None:
        self._folder = folder
        self._enough = enough
        self.done: list[Done] = []
        self.looks: Callable[[], object] = lambda: None
        self.used_s: Callable[[int], float] | None = None
        self.told: list[tuple[Sequence[int], str]] = []

    def run(self, *scripts: str, row: bool = False, counted: int = 0) -> Sequence[Done]:
        """Run the scripts to their ends."""
        effort = Effort(self._enough, same_case=not row, counted=counted)
        self.referee = Referee(
            self._folder, len(scripts), effort, 1, row=row, used_s=self.used_s, tell=self.tell
        )
        with ExitStack() as stack:
            processes = [
                stack.enter_context(
                    subprocess.Popen(
                        [sys.executable, "-c", f"{_BASICS}\n{script}\nprint(json.dumps(done))"],
                        stdout=subprocess.PIPE,
                        env={"PATH": "", **self.referee.variables(side)},
                    )
                )
                for side, script in enumerate(scripts)
            ]
            self.referee.serve([_End(process, self.looks) for process in processes])
            outputs = [process.communicate(timeout=_PATIENCE_S)[0] for process in processes]
        self.done = [json.loads(output or "[]") for output in outputs]
        return self.done

    def tell(self, sides: Sequence[int], key: str, for_s: float) -> None:
        """Remember whom everybody waits for."""
        assert for_s > 0
        self.told.append((sides, key))


class _End:
    """A process that says nothing before its end."""

    def __init__(self, process: subprocess.Popen[bytes], looks: Callable[[], object]) -> None:
        assert process.stdout is not None
        self.fileno = process.stdout.fileno
        self._looks = looks

    def has_ended(self) -> bool:
        """Look, and remember that somebody has."""
        self._looks()
        return bool(select.select([self], [], [], 0)[0])


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    folder = tmp_path / ("long" * 30)  # longer than the name of a socket may be
    folder.mkdir()
    return Sides(folder, lambda _, contest: len(contest.visits_s) >= 20)


def _spans(done: Sequence[Done]) -> list[tuple[float, float, int]]:
    """When each side has worked, in order."""
    return sorted(
        (start, end, side)
        for side, each in enumerate(done)
        for _, calls, start, end in each
        if calls
    )


def _assert_one_at_a_time(done: Sequence[Done]) -> None:
    spans = _spans(done)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


@pytest.mark.parametrize("number", [2, 3])
def test_contestants_take_turns(sides: Sides, number: int) -> None:
    """One at a time, as often and with as many calls; each comes first as often as the others."""
    done = sides.run(*(f"contest('a', calls={calls})" for calls in range(1, number + 1)))
    _assert_one_at_a_time(done)
    assert {len(each) for each in done} >= {len(done[0])}
    assert {calls for each in done for _, calls, _, _ in each} == {number}
    # Those that are tries come before; where a row is left out, squares may be cut on either side.
    turns = [side for _, _, side in _spans(done)][-20 * number :]
    rows = [tuple(turns[i : i + number]) for i in range(0, len(turns), number)]
    assert all(sorted(row) == [*range(number)] for row in rows)
    firsts = [row[0] for row in rows]
    assert all(abs(firsts.count(side) - 20 / number) <= number for side in range(number))
    assert len({*rows}) > 1
    contest = sides.referee.contests["a"]
    assert len(contest.visits_s) == 20
    assert np.shape(contest.visits_s)[1] == number


def test_who_runs_while_another_is_timed_is_halted(sides: Sides) -> None:
    """Once its processor time has shown it; it goes on with its own visits, and afterwards."""
    spinning, _ = sides.run("spin(); contest('a'); work(0.05)", "contest('a')")
    contest = sides.referee.contests["a"]
    assert contest.left_out <= 3
    assert len(contest.visits_s) == 20
    assert spinning


def test_what_takes_no_turns_is_done_one_by_one(sides: Sides) -> None:
    parts = "whole('a', 'first call'); whole('a'); contest('b')"
    done = sides.run(parts, parts)
    _assert_one_at_a_time(done)
    assert [[key for key, *_ in each[:2]] for each in done] == [["a", "a"]] * 2
    assert [*sides.referee.contests] == ["b"]


def test_a_part_that_only_one_side_has(sides: Sides) -> None:
    """Another version of fwbench may not ask for it; nobody waits for ever."""
    done = sides.run("whole('a', 'first call'); contest('a')", "contest('a')")
    assert done[0][0][0] == "a"
    assert [*sides.referee.contests] == ["a"]


@tabled
def test_a_case_that_the_other_side_does_not_measure(sides: Sides, other: str) -> None:
    """It is measured alone, and as always."""
    alone, _ = sides.run("told = visits.Programme(['a']); contest('a')", other)
    assert alone == [["a", None, 0.0, 0.0]]


def test_cases_in_another_order(sides: Sides) -> None:
    """Each would wait for the other: one of the cases is measured alone, and then is on both."""
    programme = "told = visits.Programme(['a', 'b'])"
    done = sides.run(
        f"{programme}; contest('a'); contest('b')", f"{programme}; contest('b'); contest('a')"
    )
    alone = {(side, key) for side in (0, 1) for key, calls, *_ in done[side] if calls is None}
    assert len(alone) == 2
    assert len({key for _, key in alone}) == 1


def test_a_programme_within_a_session_ends_alone(sides: Sides) -> None:
    """A worker has one of its own; what its session has still to come is waited for."""
    both = "told = visits.Programme(['a', 'b'])"
    worker = "visits.Programme(['a'])._connection.close(); time.sleep(0.5)"
    sides.run(f"{both}; {worker}; contest('b')", f"{both}; told.done('a'); contest('b')")
    assert "b" in sides.referee.contests


def test_who_takes_long_is_told(sides: Sides, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a case, or on the way to one; again and again."""
    monkeypatch.setattr(referee, "LONG_S", 0.5)
    told = "told = visits.Programme(['a', 'b'])"
    slow = f"{told}; time.sleep(1.5); contest('a', until=4, work=lambda: time.sleep(1.5))"
    sides.run(slow, f"{told}; contest('a')")
    assert sides.told.count(([0], "a")) > 2
    assert {key for _, key in sides.told} <= {"a", ""}


def test_one_that_empties_its_environment(sides: Sides) -> None:
    """Tests do so; the place is that of the session."""
    text = "told = visits.Programme(['a']); os.environ.clear(); contest('a')"
    sides.run(text, text)
    assert "a" in sides.referee.contests


@pytest.mark.parametrize("visit", [0, 5])
def test_one_that_dies_in_its_turn(sides: Sides, visit: int) -> None:
    """The other one goes on to its next case."""
    told = "told = visits.Programme(['a', 'b']); "
    _, done = sides.run(f"{told}contest('a', until={visit})", f"{told}contest('a'); contest('b')")
    assert done[-1] == ["b", None, 0.0, 0.0]
    assert sides.referee.left[0] == ["a", "b"]


def test_threads_get_their_cpus_back(sides: Sides) -> None:
    """Also where a visit fails."""
    text = (
        "before = os.sched_getaffinity(0)\n"
        "def fail(): 1 / (len(done) < 9); work()\n"
        "try:\n    contest('a', work=fail)\n"
        "except ZeroDivisionError as error:\n    kept = error\n"
        "done.append(os.sched_getaffinity(0) == before)"
    )
    done, _ = sides.run(text, text)
    assert [each for each in done if isinstance(each, bool)] == [True]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_part_of_one_thread_is_done_on_one_cpu(sides: Sides, threads: int) -> None:
    """The same for all sides; several threads need theirs. It has it back, also of a failure."""
    text = (
        "before = os.sched_getaffinity(0)\n"
        "with contextlib.suppress(ZeroDivisionError), visits.whole('a', 'part', THREADS):\n"
        "    done.append(sorted(os.sched_getaffinity(0))); 1 / 0\n"
        "done.append(os.sched_getaffinity(0) == before)"
    ).replace("THREADS", str(threads))
    (cpus, is_back), other = sides.run(text, text)
    assert [cpus, is_back] == other
    assert is_back
    assert cpus == sorted(os.sched_getaffinity(0)) if threads > 1 else len(cpus) == 1


def test_one_that_ends_while_it_waits(sides: Sides) -> None:
    """Its session says so, as after a time-out; nobody waits for it, nor has a turn with it."""
    gone = (
        "told = visits.Programme(['a', 'b'])\n"
        "if not os.fork():\n    contest('a')\n    os._exit(0)\n"
        "time.sleep(0.3); told.done('a'); time.sleep(0.4); contest('b')"
    )
    seen = []
    sides.looks = lambda: seen.append((sides.referee.waits(0), sides.referee.waited_s(0) > 0.1))
    _, done = sides.run(
        gone, "time.sleep(1.5); told = visits.Programme(['a', 'b']); contest('a'); contest('b')"
    )
    assert done[0] == ["a", None, 0.0, 0.0]
    assert "b" in sides.referee.contests
    assert (False, True) in seen[: seen.index((True, True))]  # it is not waiting between both


@pytest.mark.parametrize("computes", [False, True])
def test_one_that_waits_for_what_the_other_holds(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, computes: bool
) -> None:
    """Each is measured alone, and then they take turns again; who computes is waited for."""
    monkeypatch.setattr(referee, "_STALLED_S", 1.5)
    start_s = time.monotonic()
    sides.used_s = lambda _: (time.monotonic() - start_s) * computes
    lock = f"import fcntl; file = open({str(tmp_path / 'lock')!r}, 'w')\n"
    told = "told = visits.Programme(['a', 'b']); "
    rest = "contest('a'); file.close(); told.done('a'); contest('b')"
    take = "fcntl.flock(file, fcntl.LOCK_EX); "
    other = "time.sleep(3.0); " if computes else f"time.sleep(0.5); {take}"
    both = sides.run(f"{lock}{take}{told}{rest}", f"{lock}{told}{other}{rest}")
    alone = [["a", None, 0.0, 0.0]] * 2
    assert ([done[0] for done in both] == alone) is not computes
    assert sides.referee.stalled == (set() if computes else {"a"})
    assert "b" in sides.referee.contests


def test_one_that_sleeps_in_a_case_says_nothing_of_later_ones(
    sides: Sides, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one, which is through with it, measures these alone, and they are not set apart."""
    monkeypatch.setattr(referee, "_STALLED_S", 1.0)
    sides.used_s = lambda _: 0.0
    told = "told = visits.Programme(['a', 'b', 'c']); "
    rest = "contest('a'); told.done('a'); contest('b'); told.done('b'); contest('c')"
    quick, slow = sides.run(f"{told}{rest}", f"{told}time.sleep(4.0); {rest}")
    alone = [["a", None, 0.0, 0.0], ["b", None, 0.0, 0.0]]
    assert (quick[:2], slow[:2]) == (alone, alone)
    assert sides.referee.stalled == {"a"}


def test_cases_of_a_row(sides: Sides) -> None:
    """Each has its own name and its own number of calls, and as many visits."""
    done = sides.run(*(f"contest('{n}', calls={n})" for n in (1, 2, 3)), row=True)
    _assert_one_at_a_time(done)
    assert [{calls for _, calls, _, _ in each} for each in done] == [{1}, {2}, {3}]
    contest = sides.referee.contests[""]
    assert contest.sides == [0, 1, 2]
    assert contest.medians_s() == pytest.approx(np.full((3, 20), 1e-3))


def test_a_row_goes_on_until_its_times_count(tmp_path: Path) -> None:
    """Where a contestant's CPU was slow; ratios of all visits count."""
    sides = Sides(tmp_path, lambda _, seen: min(len(seen.visits_s), seen.counted) >= 5)
    sides.run("contest('a', slow=15)", "contest('b')", row=True, counted=5)
    contest = sides.referee.contests[""]
    assert contest.counted == 5
    assert 5 <= len(contest.visits_s) <= 20
    assert contest.medians_s() == pytest.approx(np.full((2, len(contest.visits_s)), 1e-3))


@pytest.mark.parametrize("visit", [0, 7])
def test_one_of_a_row_that_dies(sides: Sides, visit: int) -> None:
    """The others begin again, still by turns."""
    sides.run(f"contest('a', until={visit})", "contest('b')", "contest('c')", row=True)
    contest = sides.referee.contests[""]
    assert (contest.sides, len(contest.visits_s)) == ([1, 2], 20)


def test_one_of_a_row_that_takes_no_turn(sides: Sides) -> None:
    """The others do not wait for it: its verification may have failed."""
    sides.run("time.sleep(0.5)", "contest('b')", "contest('c')", row=True)
    assert sides.referee.contests[""].sides == [1, 2]


def test_who_waits_is_known(sides: Sides) -> None:
    """Its time does not count then: one waits for the other, which is not ready yet."""
    seen = []
    sides.looks = lambda: seen.append((sides.referee.waits(0), sides.referee.waits(1)))
    sides.run("contest('a')", "time.sleep(1.0); contest('b')", row=True)
    assert (True, False) in seen
    assert not any(map(sides.referee.waits, (0, 1)))


def test_strangers_are_turned_away(sides: Sides) -> None:
    stranger = (
        "import socket\n"
        "path = os.environ[visits.VARIABLE].rpartition(':')[0]\n"
        "os.chdir(os.path.dirname(path)); path = os.path.basename(path)\n"
        "for text in (b'{', b'[]', b'[\"contest\", 7]', b'\\xff'):\n"
        "    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:\n"
        "        end.connect(path); end.send(text)\n"
        "silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); silent.connect(path)\n"
        "contest('a')"
    )
    sides.run(stranger, "contest('a')")
    assert [*sides.referee.contests] == ["a"]


def test_a_quantile_takes_several_visits_where_they_are_short() -> None:
    """The ratio of adjacent ones, whatever the machine does to both."""
    speed = np.repeat([1.0, 2.0, 1.0, 3.0], 2)[:, None, None]
    times_s = speed * np.array([1.0, 1.1])[None, :, None] * np.ones((8, 2, 3))
    contest = CaseVisits([*times_s.tolist()])
    assert contest.ratios() == pytest.approx([np.log(1.1)] * 8)
    assert contest.ratios(0.1, at_least=6) == pytest.approx([np.log(1.1)] * 4)
    assert contest.ratios(0.1, at_least=100) == pytest.approx([np.log(1.1)])
