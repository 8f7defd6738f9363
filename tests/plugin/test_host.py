"""The parts of pytest-benchmark that fwbench uses are in the installed release."""

import inspect
import itertools
import json
import weakref
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.measure.clock import Clock
from fwbench.measure.core_speed import Cpus, Loop, SetAside, SpeedWatch
from fwbench.plugin import host
from fwbench.plugin.host import BenchmarkSession, FixtureBenchmark
from fwbench.testing import HandClock
from support import fakes
from support.neighbours import blocking


@pytest.fixture
def session(pytester: pytest.Pytester) -> BenchmarkSession:
    return BenchmarkSession(_configured(pytester))


def _configured(pytester: pytest.Pytester, *arguments: str) -> pytest.Config:
    return pytester.parseconfigure("-p", "no:cacheprovider", *arguments)


def test_the_loop_calls_work_without_a_frame_between() -> None:
    """Between a round and the work there is nothing; before and after it, only the timer."""
    callers = set()

    def work() -> None:
        callers.add(inspect.stack()[1].function)

    adapted = FixtureBenchmark(fakes.fixture(Clock(), fakes.cell(fakes.operation())))
    assert (adapted.timed, adapted.rounds_s) == (False, ())
    adapted.time_rounds(work, setup=lambda: None, rounds=3)
    assert adapted.timed
    assert callers == {"runner"}
    assert (len(adapted.rounds_s), adapted.iterations) == (3, 1)


def _timed(within: float = 0.0, **settings: Any) -> tuple[list[int], int, FixtureBenchmark]:
    """The results that were alive at each call, the one that was returned, and what timed it."""
    hand = HandClock()
    cell = fakes.cell(fakes.operation())
    adapted = FixtureBenchmark(fakes.fixture(Clock(read=hand), cell, **settings), within)
    alive: weakref.WeakSet[Any] = weakref.WeakSet()
    numbers: list[int] = []

    class Result:
        def __init__(self) -> None:
            hand.spend(1.0)
            numbers.append(len(alive))
            alive.add(self)
            self.number = len(numbers)

    result, _ = adapted.time(Result)
    return numbers, result.number, adapted


@pytest.mark.parametrize("calls", [1, 10])
def test_the_result_of_the_last_timed_call_is_kept(calls: int) -> None:
    """Not that of the call which pytest-benchmark makes afterwards for the sake of a result."""
    alive, number, adapted = _timed(min_time=float(calls), max_time=70.0)
    assert adapted.iterations == calls
    assert number == len(alive) - 1


def test_a_call_finds_no_result_but_the_last(benchmark: Any) -> None:
    alive, _, _ = _timed(max_time=70.0)
    assert {*alive[:-1]} == {0}, "the last call is not timed"
    FixtureBenchmark(benchmark).leave_unused()


@pytest.mark.parametrize("calls", [1, 10])
def test_calls_take_turns(calls: int) -> None:
    """From one round to the next, too; and the result says which call was the last."""
    hand, made = HandClock(), list[int]()

    def call(number: int) -> int:
        hand.spend(1.0)
        made.append(number)
        return number

    cell = fakes.cell(fakes.operation())
    settings = {"min_time": float(calls), "max_time": 70.0}
    adapted = FixtureBenchmark(fakes.fixture(Clock(read=hand), cell, **settings))
    last = adapted.time(*(partial(call, number) for number in range(4)))
    timed = made[:-1]  # the last one is for the sake of a result
    assert timed == [position % 4 for position in range(len(timed))]
    assert last == (timed[-1], timed[-1])


def test_each_asynchronous_call_of_a_round_is_waited_for() -> None:
    """So that none overlaps with another, and dispatch is that of the last."""
    hand, left = HandClock(), list[float]()

    def call() -> None:
        left.append(hand.idle_s - hand())
        hand.spend(1.0)
        hand.enqueue(3.0)

    clock = Clock(hand, hand.wait)
    settings = {"min_time": 40.0, "max_time": 400.0}
    adapted = FixtureBenchmark(fakes.fixture(clock, fakes.cell(fakes.operation()), **settings))
    adapted.time(call)
    assert adapted.iterations == 10
    assert {*adapted.rounds_s} == {4.0}
    assert max(left) <= 0.0
    facts = clock.facts(adapted.rounds_s, adapted.iterations)
    assert (facts["dispatch_s"], facts["completion_s"]) == (1.0, 4.0)


def test_rounds_on_a_slow_cpu_are_made_again() -> None:
    """The medians of time, dispatch and processor time are of those that count."""
    hand, looks_s = HandClock(), itertools.cycle([30e-6] * 5 + [55e-6] * 110)
    clock = Clock(hand)
    adapted = FixtureBenchmark(
        fakes.fixture(clock, fakes.cell(fakes.operation()), max_time=20.0), precision=0.02
    )
    adapted.speed = SpeedWatch(clock, Cpus({None: Loop(lambda: next(looks_s))}, SetAside()))
    adapted.time(lambda: hand.spend(2.0**-4))
    facts = adapted.speed.facts()
    assert facts["slow_rounds"] > 0
    assert len(adapted.rounds_s) == 20
    assert adapted.calls == 1 + facts["slow_rounds"] + 20 + 1
    assert clock.facts(adapted.rounds_s, adapted.iterations)["completion_s"] == 2.0**-4


def test_no_round_is_made_that_is_not_needed_to_see_the_others_count() -> None:
    """Speed is looked at once rounds have lasted for as long as is asked for."""
    hand = HandClock()
    clock = Clock(hand)
    fixture = fakes.fixture(clock, fakes.cell(fakes.operation()), max_time=2.0**-8, min_rounds=1)
    adapted = FixtureBenchmark(fixture, precision=0.02)
    adapted.speed = SpeedWatch(clock, Cpus({None: Loop(lambda: 30e-6)}, SetAside()))
    adapted.time(lambda: hand.spend(2.0**-10))
    assert len(adapted.rounds_s) == 4
    assert adapted.calls == 1 + 1 + 4 + 1, "one that sizes rounds, one behind the loops, the last"


def test_without_timing_the_only_result_is_returned() -> None:
    alive, number, adapted = _timed(disabled=True)
    assert (alive, number, adapted.timed) == ([0], 1, False)


def test_rounds_end_when_the_median_is_precise() -> None:
    _, _, adapted = _timed(precision=None, max_time=70.0)
    assert (len(adapted.rounds_s), adapted.stopping) == (70, None)
    _, number, adapted = _timed(within=0.02, max_time=70.0)
    assert adapted.stopping is not None
    assert adapted.stopping.facts()["stopped"] == "precise"
    assert len(adapted.rounds_s) == 20
    assert number == 1 + 20, "the last of them, after the call that sizes them"


def test_calls_of_a_round_are_one_round() -> None:
    _, _, adapted = _timed(within=0.02, min_time=10.0, max_time=70.0)
    assert (adapted.iterations, len(adapted.rounds_s)) == (10, 7)
    assert adapted.stopping is not None
    assert adapted.stopping.facts()["stopped"] == "time over"


def test_the_users_rule_of_pytest_benchmark_is_kept() -> None:
    _, _, by_rule = _timed(within=0.02, precision=0.1, confidence=0.99, min_rounds=6, max_time=70.0)
    assert (len(by_rule.rounds_s), by_rule.stopping) == (6, None)
    assert by_rule.fixture.stats.options["precision"] == 0.1
    _, _, other = _timed(within=0.02, max_time=70.0)
    assert other.fixture.stats.options["precision"] is None


def test_without_timing_no_rule_is_made() -> None:
    _, _, adapted = _timed(within=0.02, disabled=True)
    assert adapted.stopping is None


def test_a_case_that_failed_has_no_record_and_no_warning(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        from fwbench.measure.clock import Clock
        from fwbench.plugin import host

        def test_before(benchmark):
            host.FixtureBenchmark(benchmark).leave_unused()

        @pytest.mark.benchmark(timer=Clock())
        def test_after(benchmark):
            adapted = host.FixtureBenchmark(benchmark)
            adapted.time(int)
            assert host.record(benchmark) is not None
            adapted.discard()
            assert host.record(benchmark) is None
        """
    )
    options = [*blocking().split(), "-p", "no:cacheprovider", "--benchmark-max-time=0.01"]
    result = pytester.runpytest(*options, "-W", "error")
    result.assert_outcomes(passed=2)


def test_one_that_is_interrupted_while_it_waits_for_its_turn_has_no_record(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By pytest-timeout, say, whose exception pytest-benchmark does not catch."""

    monkeypatch.setattr(host.visits, "contest", lambda *_: pytest.fail("timed out"))
    pytester.makepyfile(
        """
        from fwbench.plugin import host

        def test_it(benchmark):
            host.take_turns(benchmark, "test_it")
            benchmark(int)
        """
    )
    options = [*blocking().split(), "-p", "no:cacheprovider", "--benchmark-json=run.json"]
    result = pytester.runpytest(*options)
    result.assert_outcomes(failed=1)
    assert "Traceback" not in str(result.stderr) + str(result.stdout)
    assert json.loads((pytester.path / "run.json").read_text())["benchmarks"] == []


def test_a_record_has_the_parameters_and_the_group_of_the_case(benchmark: Any) -> None:
    """In place of the fixture's own parameter; a group that a marker names stays."""
    benchmark.params = {"case": object(), "other": 1}
    FixtureBenchmark(benchmark).name_case({"size": 8}, "group")
    assert (benchmark.params, benchmark.group) == ({"other": 1, "size": 8}, "group")
    FixtureBenchmark(benchmark).name_case({"size": 9}, "another")
    assert (benchmark.params, benchmark.group) == ({"other": 1, "size": 9}, "group")
    FixtureBenchmark(benchmark).leave_unused()


def test_rounds_can_be_wrapped() -> None:
    made = []

    def wrap(make_runner: Any) -> Any:
        def make(*arguments: Any) -> Any:
            made.append(arguments)
            return make_runner(*arguments)

        return make

    adapted = FixtureBenchmark(fakes.fixture(Clock(), fakes.cell(fakes.operation())))
    adapted.wrap_rounds(wrap)
    adapted.time_rounds(int, setup=lambda: None, rounds=2)
    assert len(made) == 2


def test_a_clock_is_as_precise_as_the_timer_that_it_reads(benchmark: Any) -> None:
    """With a wait any round is long enough: the wait is not counted, and the clock not read."""
    clock = Clock()
    host.set_precision(clock)
    assert benchmark._get_precision(clock) == benchmark._get_precision(clock.read) > 0
    waiting = Clock(wait=lambda: pytest.fail("the clock was read"))
    host.set_precision(waiting)
    assert benchmark._get_precision(waiting) == 0.0
    FixtureBenchmark(benchmark).leave_unused()


def test_what_is_known_of_a_session(pytester: pytest.Pytester) -> None:
    plain = BenchmarkSession(_configured(pytester))
    assert (plain.written, plain.compared_name, plain.compared_paths, plain.compared) == (
        *([], None),
        *([], []),
    )
    assert callable(plain.timer)
    assert plain.min_time_s > 0
    path = pytester.path / "out.json"
    requested = BenchmarkSession(
        _configured(pytester, f"--benchmark-json={path}", "--benchmark-disable")
    )
    assert requested.written == [("--benchmark-json", path)]
    assert (requested.disabled, plain.disabled) == (True, False)


def test_records_of_another_process_are_this_sessions(session: BenchmarkSession) -> None:
    entry = {
        **dict.fromkeys(("group", "param", "params")),
        "name": "test_it",
        "fullname": "test_it.py::test_it",
        "extra_info": {"a": 1},
        "options": {},
        "stats": {"iterations": 1, "data": [1.0, 2.0]},
    }
    session.add({"entry": entry, "cprofile": None})
    (stored,) = session.to_json()["benchmarks"]
    assert (stored["fullname"], stored["extra_info"]) == ("test_it.py::test_it", {"a": 1})
    assert stored["stats"]["data"] == [1.0, 2.0]
    session.clear()
    assert session.to_json()["benchmarks"] == []


def test_writers_are_replaced(pytester: pytest.Pytester) -> None:
    """The JSON goes where fwbench writes it; a run that cannot be saved leaves nothing."""
    config = _configured(pytester, f"--benchmark-json={pytester.path / 'out.json'}")
    session, written, saved, unsaved = BenchmarkSession(config), [], [], []
    inner = config._benchmarksession  # type: ignore[attr-defined]

    def save(output_json: Any, _: str) -> None:
        folder = inner.storage.path / "unfinished"
        folder.mkdir(parents=True)
        (folder / "0001_x.json").write_text(json.dumps(output_json), encoding="utf-8")
        raise OSError(28, "No space left on device")

    inner.storage.save = save
    session.replace_writers(
        lambda *given: written.append(given), saved.append, lambda *why: unsaved.append(why)
    )
    inner.save_json({"a": 1})
    inner.storage.save({"b": 2}, "x")
    assert written == [(pytester.path / "out.json", {"a": 1})]
    ((place, error),) = unsaved
    assert saved == []
    assert (place, error.strerror) == (str(inner.storage), "No space left on device")
    assert [*inner.storage.query()] == []
    assert session.machine_info() is session.machine_info(), "asked once"


def test_rounds_in_which_the_clock_stood_still_do_not_count() -> None:
    """Nothing takes no time; where there are no others, they are kept."""
    for rounds_s, counted in (([2e-6, 0.0, 1e-6], [2e-6, 1e-6]), ([0.0, 0.0, 0.0], [0.0] * 3)):
        fixture: Any = SimpleNamespace(_precision=None, _run_until_precise=None, has_error=False)
        data: list[float] = []
        stats: Any = SimpleNamespace(update=data.append, stats=SimpleNamespace(data=data))
        host.InTurns(fixture, "test")
        left = iter(rounds_s)
        fixture._run_until_precise(lambda _, left=left: next(left), range(1), stats, 3)
        assert data == counted
