"""Everything that is taken from inside pytest-benchmark, so that its next release affects no other.

pytest-benchmark has no public way to its session, to the records of another process, or to the loop
that makes a round. Nothing else of fwbench touches its objects. At the end, facts about other
plugins, none of which need be installed.
"""

from __future__ import annotations

import functools
import gc
import itertools
import math
import os
import pstats
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import pytest
from pytest_benchmark import __version__
from pytest_benchmark.fixture import BenchmarkFixture, PauseInstrumentation
from pytest_benchmark.stats import Metadata
from pytest_benchmark.timers import compute_timer_precision

from fwbench.errors import StorageError, UsageError
from fwbench.measure.stopping import Stopping
from fwbench.records import files
from fwbench.turns import visits

if TYPE_CHECKING:  # a launch of plain benchmarks needs none of them
    from fwbench.cases.sampling import RepeatedCall
    from fwbench.frameworks.results import AwaitedResults
    from fwbench.measure.clock import Clock, Timer
    from fwbench.measure.core_speed import SpeedWatch
    from fwbench.measure.nvml import GpuWatch
    from fwbench.records.facts import Sampled
    from fwbench.records.launches import Entry

#: Version of pytest-benchmark, for what is written in its format.
version = __version__

#: Turns the function that returns what makes a round into another such function.
Wrap = Callable[[Callable[..., Callable[..., Any]]], Callable[..., Callable[..., Any]]]

# Records


def record(fixture: BenchmarkFixture) -> dict[str, Any] | None:
    """A measured case as plain values; None if nothing was measured."""
    if not fixture.stats or fixture.has_error:
        return None
    profile = fixture.stats.cprofile_stats
    return {
        "entry": fixture.stats.as_dict(include_data=True),
        "cprofile": [(where, what[:4]) for where, what in profile.stats.items()]
        if profile
        else None,
    }


def has_measured_nothing(fixture: Any) -> bool:
    """True for a test's ``benchmark`` that could have timed something, and was not used."""
    return _times(fixture) and fixture.stats is None


def _times(fixture: Any) -> TypeGuard[BenchmarkFixture]:
    """True for pytest-benchmark's own fixture that times; those of others may derive from it."""
    return isinstance(fixture, BenchmarkFixture) and not getattr(fixture, "disabled", True)


def _is_of_case(extra_info: Mapping[str, Any]) -> bool:
    facts = extra_info.get("fwbench")
    return facts is not None and not facts.get("plain_test")


def restore(record: Mapping[str, Any]) -> Metadata:
    """A record as pytest-benchmark's own object, for its tables, comparisons and files."""
    entry = record["entry"]
    fixture = SimpleNamespace(
        **{name: entry[name] for name in ("name", "fullname", "group", "param", "params")},
        extra_info=entry["extra_info"],
        cprofile_stats=None,
        has_error=False,
    )
    metadata = Metadata(fixture, iterations=entry["stats"]["iterations"], options=entry["options"])
    metadata.stats.data = entry["stats"]["data"]
    if record["cprofile"] is not None:
        # pstats reads anything that looks like a profiler; callers are not kept.
        functions = {tuple(where): (*what, {}) for where, what in record["cprofile"]}
        profiler = SimpleNamespace(create_stats=lambda: None, stats=functions)
        metadata.cprofile_stats = pstats.Stats(profiler)  # type: ignore[arg-type]
    return metadata


def with_statistics(entry: Entry) -> dict[str, Any]:
    """An entry with all statistics, which one that was merged from launches does not have."""
    if "launches" not in entry.get("extra_info", {}).get("fwbench", {}):
        return dict(entry)
    complete = restore({"entry": entry, "cprofile": None}).as_dict(include_data=True)
    return {**entry, "stats": complete["stats"]}


# The fixture of a case


class FixtureBenchmark:
    """pytest-benchmark's fixture as cases see it: a :class:`fwbench.cases.case.Benchmark`.

    Args:
        precision: how wide the interval of the median may be, as a share; 0: the fixture's rounds.
    """

    def __init__(self, fixture: BenchmarkFixture, precision: float = 0.0) -> None:
        self.fixture = fixture
        self._rounds = Rounds(fixture)
        fixture._make_runner = self._rounds.make_runner  # noqa: SLF001
        self._precision = precision
        self.mark_rounds: Callable[[], Any] = lambda: None
        self.stopping: Stopping | None = None
        self.watch: GpuWatch | None = None
        self.speed: SpeedWatch | None = None
        self._key = ""
        self._threads = 0
        self._takes_turns = False

    def time(self, *runs: Callable[[], Any]) -> tuple[Any, int]:
        """Time rounds of calls by turns; the last result, or the only one, and which call's."""
        self.stopping = stop_when_precise(self.fixture, self._precision, self.watch or self.speed)
        self._rounds.runs = runs
        turns = None
        if self._takes_turns:
            turns = InTurns(self.fixture, self._key, self._threads, self.speed)
        with nullcontext() if turns else visits.whole(self._key):
            self.mark_rounds()
            only = self.fixture(runs[0])
            self.mark_rounds()
        if turns is not None and turns.taken:
            self.stopping = None
        return self._rounds.take_last() if self.timed else (only, 0)

    def time_rounds(self, target: Callable[..., Any], **given: Any) -> Any:
        """Time ``rounds`` calls of the target, each after an untimed call of the ``setup``."""
        with visits.whole(self._key):
            return self.fixture.pedantic(target, **given)

    @property
    def has_company(self) -> bool:
        """True if the same case of another process is measured by turns with this one."""
        return bool(self._key)

    def alone(self, what: str, *, on_one_cpu: bool = False) -> AbstractContextManager[None]:
        """A block in which the same case of another process does nothing.

        Args:
            on_one_cpu: whether both have it on the same CPU, if a single thread computes.
        """
        return visits.whole(self._key, what, self._threads if on_one_cpu else 0)

    def take_turns(self, key: str, threads: int, *, by_visits: bool) -> None:
        """Measure this case in turns with those of other processes: by visits, or as a whole.

        Args:
            threads: that compute.
        """
        self._key = key
        self._threads = threads
        self._takes_turns = by_visits and bool(self.fixture.enabled)

    @property
    def enabled(self) -> bool:
        """True if anything is timed; not with ``--benchmark-disable``."""
        return bool(self.fixture.enabled)

    @property
    def timed(self) -> bool:
        """True if rounds have been timed."""
        return self.fixture.stats is not None

    def rounds_of(self, round_s: float) -> int:
        """Number of rounds of this length within the limits of pytest-benchmark."""
        wanted = self.fixture._max_time / round_s  # noqa: SLF001
        return max(int(self.fixture._min_rounds), math.ceil(wanted))  # noqa: SLF001

    @property
    def rounds_s(self) -> Sequence[float]:
        """The seconds per call of every round so far; empty where nothing is timed."""
        stats = self.fixture.stats
        return stats.stats.data if stats else ()

    @property
    def iterations(self) -> int:
        """Number of calls in a round; known once rounds have been timed."""
        return int(self.fixture.stats.iterations)

    @property
    def calls(self) -> int:
        """Number of all calls, including those that are in no statistics.

        0 where they are profiled: those calls are not counted.
        """
        # The fixture makes one more behind its rounds, for what the test gets.
        return 0 if self.fixture.cprofile else self._rounds.calls + 1

    def keep(self, facts: Mapping[str, Any]) -> None:
        """Store what fwbench knows of the case in its record."""
        self.fixture.extra_info["fwbench"] = facts

    def leave_unused(self) -> None:
        """Do not warn that nothing was timed: the case has failed before."""
        self.fixture._mode = "fwbench: failed before it was measured"  # noqa: SLF001

    def discard(self) -> None:
        """Let what was timed have no record, as if a round had failed."""
        self.fixture.has_error = True

    def name_case(self, params: Mapping[str, Any], group: str) -> None:
        """Give the record of the case its parameters and its group."""
        fixture_params = {k: v for k, v in (self.fixture.params or {}).items() if k != "case"}
        self.fixture.params = {**fixture_params, **params}
        self.fixture.group = self.fixture.group or group

    def wrap_rounds(self, wrap: Wrap) -> None:
        """Change how rounds are made; see :func:`fwbench.measure.empty_stack.rounds`."""
        self.fixture._make_runner = wrap(self.fixture._make_runner)  # noqa: SLF001


def set_precision(clock: Clock) -> None:
    """Tell pytest-benchmark the precision of a clock: that of the timer which the clock reads.

    It would find out by readings that are not rounds, and take the wait for a lack of precision,
    which makes rounds longer. For a clock that waits any round is long enough.
    """
    known = BenchmarkFixture._precisions  # noqa: SLF001
    if clock.precision_s is not None:
        known[clock] = clock.precision_s
        return
    if clock.read not in known:
        known[clock.read] = compute_timer_precision(clock.read)
    known[clock] = known[clock.read] if clock.wait is None else 0.0


# The session


class BenchmarkSession:
    """pytest-benchmark's session, as far as fwbench needs it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._session: Any = config._benchmarksession  # type: ignore[attr-defined] # noqa: SLF001

    @property
    def disabled(self) -> bool:
        """True if nothing will be timed."""
        return bool(self._session.disabled)

    @property
    def timer(self) -> Timer:
        """The timer of ``--benchmark-timer``, or pytest-benchmark's own."""
        return self._session.options["timer"].target

    @property
    def min_time_s(self) -> float:
        """The shortest round of ``--benchmark-min-time``."""
        return float(self._session.options["min_time"])

    @property
    def max_time_s(self) -> float:
        """Longest time of all rounds together, from ``--benchmark-max-time``."""
        return float(self._session.options["max_time"])

    def check_writable(self) -> None:
        """Find out before the first measurement whether the files can be written."""
        for option, path in self.written:
            try:
                files.check_writable(path)
            except StorageError as error:
                raise pytest.UsageError(f"{option}: {error}") from None

    @property
    def written(self) -> list[tuple[str, Path]]:
        """Files that the session writes at its end: each option, and its path."""
        session, storage = self._session, self._session.storage
        paths = []
        if session.json:
            paths.append(("--benchmark-json", Path(session.json)))
        # Not of a storage elsewhere: Elasticsearch.
        if (session.save or session.autosave) and hasattr(storage, "path"):
            option = "--benchmark-save" if session.save else "--benchmark-autosave"
            paths.append((option, storage.get("run.json")))
        if session.histogram:
            paths.append(("--benchmark-histogram", Path(f"{session.histogram}.svg")))
        return paths

    @property
    def compared_name(self) -> str | None:
        """The run that ``--benchmark-compare`` names; None without, or for the latest one."""
        compare = self._session.compare
        return str(compare) if compare and compare is not True else None

    @property
    def compared_paths(self) -> list[Path]:
        """The files of the runs that ``--benchmark-compare`` names."""
        # Files, or named relative to the folder in which pytest-benchmark saves.
        storage = Path(getattr(self._session.storage, "path", ""))
        named = map(Path, self._session.compared_mapping)
        return [path if path.is_file() else storage / path for path in named]

    @property
    def compared(self) -> list[tuple[str, list[Entry]]]:
        """The runs of ``--benchmark-compare``: the name of each file, and its entries."""
        return [
            (Path(path).name, [*entries.values()])
            for path, entries in self._session.compared_mapping.items()
        ]

    def take_back_compare_fail(self) -> bool:
        """Take back ``--benchmark-compare-fail`` where there is no run to compare with.

        pytest-benchmark would log a traceback of its own.
        """
        in_vain = bool(self._session.groups) and not self._session.compared_mapping
        if in_vain:
            self._session.compare_fail = []
        return in_vain

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record of another process, as if it had been measured in this one."""
        self._session.benchmarks.append(restore(record))

    def remove(self, fullname: str) -> None:
        """Forget what was measured in a test, which will be run again."""
        every = self._session.benchmarks
        every[:] = [measured for measured in every if measured.fullname != fullname]

    def plain_entries(self, first: int) -> tuple[list[Entry], int]:
        """Entries of others' benchmarks measured last, and the number of all measured by now."""
        entries, number = self.entries(first)
        return [entry for entry in entries if not _is_of_case(entry["extra_info"])], number

    def entries(self, first: int) -> tuple[list[Entry], int]:
        """Entries of the benchmarks measured last, and the number of all measured by now."""
        every = self._session.benchmarks
        entries = [each.as_dict(include_data=True) for each in every[first:] if not each.has_error]
        return entries, len(every)

    def clear(self) -> None:
        """Forget all records of this process."""
        self._session.benchmarks.clear()

    def machine_info(self) -> dict[str, Any]:
        """Facts of the machine that pytest-benchmark stores."""
        return self._session.get_machine_info()

    def commit_info(self) -> dict[str, Any]:
        """Facts of the revision that pytest-benchmark stores."""
        hook = self._config.hook
        info: dict[str, Any] = hook.pytest_benchmark_generate_commit_info(config=self._config)
        hook.pytest_benchmark_update_commit_info(config=self._config, commit_info=info)
        return info

    def to_json(self) -> dict[str, Any]:
        """The session so far as a run, before any plugin has added to it."""
        return self._config.hook.pytest_benchmark_generate_json(
            config=self._config,
            benchmarks=self._session.benchmarks,
            include_data=True,
            machine_info=self.machine_info(),
            commit_info={},
        )

    def replace_writers(
        self,
        write_json: Callable[[Path, dict[str, Any]], Any],
        on_saved: Callable[[Path], Any],
        on_unsaved: Callable[[str, OSError], Any],
    ) -> None:
        """Have runs written without harm to earlier files.

        Args:
            on_saved: called with the file of a run that was saved (``--benchmark-save``).
            on_unsaved: called when it cannot be saved, with the place and the error; nothing is
                left of the run then.
        """
        # Asking what the CPU is takes a second, and pytest-benchmark asks again each time.
        self._session.get_machine_info = functools.cache(self._session.get_machine_info)
        self._session.save_json = lambda output: write_json(Path(self._session.json), output)
        storage = self._session.storage
        storage.save = functools.partial(_save, storage, storage.save, on_saved, on_unsaved)

    def say(self, text: str) -> None:
        """Print a line as pytest-benchmark prints its own."""
        self._session.logger.info(text, purple=True)


def _save(
    storage: Any,
    save: Callable[[dict[str, Any], str], Any],
    on_saved: Callable[[Path], Any],
    on_unsaved: Callable[[str, OSError], Any],
    output_json: dict[str, Any],
    name: str,
) -> None:
    before = {*storage.query()}
    try:
        save(output_json, name)
    except OSError as error:
        for unfinished in {*storage.query()} - before:
            unfinished.unlink(missing_ok=True)
        on_unsaved(str(storage), error)
    else:
        for path in {*storage.query()} - before:
            if isinstance(path, Path):  # not of a storage elsewhere
                on_saved(path)


def stop_when_precise(
    fixture: BenchmarkFixture, precision: float, watch: GpuWatch | SpeedWatch | None = None
) -> Stopping | None:
    """Let a rule end the rounds of a fixture, unless ``--benchmark-precision`` asks for another.

    That one is of the mean, and of rounds that are normally distributed.

    Args:
        precision: the width of the median's interval that is narrow enough, as a share of the
            median; 0 for no rule.
        watch: sets rounds aside that do not count; None where all do.
    """
    if not precision or fixture.disabled or fixture._precision is not None:  # noqa: SLF001
        return None
    stopping = Stopping(precision, fixture._max_time, fixture._min_rounds)  # noqa: SLF001

    def make_rounds(runner: Callable[..., Any], calls: range, stats: Metadata, _: int) -> None:
        stats.options |= {"precision": None, "confidence": None}  # those of the other rule
        is_over = False
        if watch is not None:
            watch.begin()
        while not is_over:
            duration_s = runner(calls)
            counted = (duration_s,) if watch is None else watch.sift(duration_s, stopping.left_s)
            for counted_s in counted:
                stats.update(counted_s)
                is_over = stopping.add(counted_s) or is_over

    fixture._precision = precision  # noqa: SLF001 (has it ask for rounds until they are enough)
    fixture._run_until_precise = make_rounds  # noqa: SLF001
    return stopping


class InTurns:
    """Has a fixture make its rounds as visits, by turns with the same case of other processes.

    Args:
        threads: that compute; 0 where that is not known.
        speed: tells which visits of a row count; None where all do.
    """

    def __init__(
        self, fixture: BenchmarkFixture, key: str, threads: int = 0, speed: SpeedWatch | None = None
    ) -> None:
        #: Whether turns were taken; a case that no other process has is measured as always.
        self.taken = False
        self._threads = threads
        self._speed = speed
        self._fixture = fixture
        self._key = key
        self._precision = fixture._precision  # noqa: SLF001
        self._alone = fixture._run_until_precise  # noqa: SLF001
        fixture._precision = 1.0  # noqa: SLF001 (has it ask for rounds until they are enough)
        fixture._run_until_precise = self._make_rounds  # noqa: SLF001

    def _make_rounds(
        self, runner: Callable[..., float], calls: range, stats: Metadata, most: int
    ) -> None:
        # One that is interrupted while it waits has no rounds, which pytest-benchmark must know.
        self._fixture.has_error = True
        with visits.contest(self._key, len(calls), self._threads) as seat:
            self._fixture.has_error = False
            if seat is not None:
                stats.options |= {"precision": None, "confidence": None}
                stats.iterations = seat.calls
                calls = range(seat.calls)
                self._visit(seat, runner, stats)
            self.taken = bool(stats.stats.data)  # unless the other one has gone at once
            if not self.taken and self._precision is not None:
                self._alone(runner, calls, stats, most)
            elif not self.taken:
                for _ in range(most):
                    stats.update(runner(calls))
        # A clock stands still where a thread goes on on a CPU whose counter is behind.
        stats.stats.data[:] = [*filter(None, stats.stats.data)] or stats.stats.data

    def _visit(self, seat: visits.Seat, runner: Callable[..., float], stats: Metadata) -> None:
        calls = range(seat.calls)
        speed = self._speed if seat.is_in_row else None
        untimed = getattr(self._fixture._timer, "untimed", nullcontext)  # noqa: SLF001
        with closing(seat.turns()) as turns:
            for turn in turns:
                if speed is not None:
                    speed.begin()
                with untimed():
                    for _ in range(turn.lead_in):
                        runner(calls)
                rounds_s = [runner(calls) for _ in range(turn.rounds)]
                turn.rounds_s = [round_s / seat.calls for round_s in rounds_s]
                at_speed = speed is None or speed.end(turn.rounds)
                turn.counts = at_speed and all(rounds_s)
                for round_s in rounds_s if turn.counts else ():
                    stats.update(round_s)


def take_turns(fixture: object, key: str) -> None:
    """Have a benchmark that is no case take turns; a fixed number of rounds is one visit.

    Args:
        fixture: a test's ``benchmark``; one of another plugin is left as it is.
    """
    if not _times(fixture):
        return
    InTurns(fixture, key)
    pedantic = fixture.pedantic

    def as_a_whole(*given: Any, **more: Any) -> Any:
        with visits.whole(key):
            return pedantic(*given, **more)

    fixture.pedantic = as_a_whole


@contextmanager
def waiting(fixture: Any, results: AwaitedResults) -> Iterator[None]:
    """Let rounds that a plain test makes within the block end when the results of its calls exist.

    Then its record has dispatch and completion.

    Args:
        fixture: the test's ``benchmark``; one of another plugin is left as it is.
    """
    if not _times(fixture):
        yield
        return
    rounds = WaitingRounds(fixture, results)
    yield
    if rounds.dispatches_s and fixture.stats and not fixture.has_error:
        dispatch_s = statistics.median(rounds.dispatches_s)
        completion_s = statistics.median(fixture.stats.stats.data)
        _keep(fixture, dispatch_s=dispatch_s, completion_s=completion_s)


@contextmanager
def watching_others(fixture: Any) -> Iterator[None]:
    """Record which processors others kept busy while a plain test measures within the block.

    Not where it takes turns: between its rounds the other one works.

    Args:
        fixture: the test's ``benchmark``; one of another plugin is left as it is.
    """
    if not _times(fixture) or visits.are_taken():
        yield
        return
    from fwbench.measure.resources import OtherProcesses, RunQueue

    others, queue = OtherProcesses(), RunQueue()
    with others, queue:
        yield
    if fixture.stats and not fixture.has_error:
        _keep(
            fixture,
            others_cpus=others.cpus,
            siblings_cpus=others.siblings_cpus,
            idle_cpus=others.idle_cpus,
            queued_cpus=queue.cpus,
            throttled_cpus=queue.throttled_cpus,
        )


def _keep(fixture: BenchmarkFixture, **facts: Any) -> None:
    """Add facts to the record of a plain test."""
    known = fixture.extra_info.get("fwbench", {})
    fixture.extra_info["fwbench"] = {**known, "plain_test": True, **facts}


def repeat(
    fixture: Any, look: Callable[[RepeatedCall], Sampled], results: AwaitedResults | None, key: str
) -> None:
    """Have a plain test's calls looked at once they were timed, before the test goes on.

    What they need may be gone when the test is over.

    Args:
        fixture: the test's ``benchmark``; one of another plugin is left as it is.
        look: makes calls again.
        results: waits for what they return; None where nobody does.
        key: of the test, for the other process that has it, if one has.
    """
    if not _times(fixture):
        return
    raw, raw_pedantic = fixture._raw, fixture._raw_pedantic  # noqa: SLF001
    again = partial(_look_again, fixture, look, results)

    def timed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = raw(function, *args, **kwargs)
        with visits.whole(key, "samples"):  # a fixed number of rounds is within such a block
            again(function, result, arguments=lambda: (args, kwargs))
        return result

    def timed_pedantic(target: Callable[..., Any], **given: Any) -> Any:
        result = raw_pedantic(target, **given)
        setup = given["setup"]
        usual = given["args"], given["kwargs"] or {}
        again(
            target,
            result,
            arguments=lambda: (setup() if setup else None) or usual,
            together=setup is None and given["teardown"] is None,
            finish=given["teardown"],
            at_most=given["rounds"] * given["iterations"],
        )
        return result

    fixture._raw = timed  # noqa: SLF001
    fixture._raw_pedantic = timed_pedantic  # noqa: SLF001


def _look_again(
    fixture: Any,
    look: Callable[[RepeatedCall], Sampled],
    results: AwaitedResults | None,
    function: Callable[..., Any],
    result: Any,
    **more: Any,
) -> None:
    """Have a function looked at that was timed, and keep with its record what was seen.

    Args:
        more: of the call: its arguments, and how calls are made.
    """
    from fwbench.cases.sampling import RepeatedCall

    stats = fixture.stats
    assert stats is not None  # noqa: S101 (it has timed the function)
    is_awaited = results is not None and results.are_pending(result)
    wait = results.wait if results is not None and is_awaited else None
    call = RepeatedCall(function, stats.stats.median, wait=wait, **more)
    with PauseInstrumentation():
        _keep(fixture, sampled=dict(look(call)))


class WaitingRounds:
    """Makes rounds as the fixture does, and waits for each result if the first is asynchronous.

    Calls whose work is over when they return are timed by the fixture's own loop, but for the first
    round of all. Calls of asynchronous work would overlap within a round, so each is waited for.
    """

    def __init__(self, fixture: BenchmarkFixture, results: AwaitedResults) -> None:
        self._fixture = fixture
        self._results = results
        self._are_pending: bool | None = None
        self._made = fixture._make_runner  # noqa: SLF001
        #: Time until the last call of each round returned; empty if nothing is waited for.
        self.dispatches_s: list[float] = []
        results.look()
        fixture._make_runner = self.make_runner  # noqa: SLF001

    def make_runner(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Callable[..., Any]:
        """In place of the fixture's own, with its arguments."""
        usual, call = self._made(function, args, kwargs), partial(function, *args, **kwargs)

        def runner(loops_range: range | None) -> Any:
            if self._are_pending is False:
                return usual(loops_range)
            collects = gc.isenabled()
            if self._fixture._disable_gc:  # noqa: SLF001
                gc.disable()
            try:
                took_s, result = self._round(call, len(loops_range) if loops_range else 1)
            finally:
                if collects:
                    gc.enable()
            return took_s if loops_range else (took_s, result)

        return runner

    def _round(self, call: Callable[[], Any], calls: int) -> tuple[float, Any]:
        """Make a round; returns seconds, and the last result."""
        timer, waits = self._fixture._timer, self._are_pending  # noqa: SLF001
        wait = self._results.wait if waits else _no_wait
        start_s = timer()
        for _ in range(calls - 1):
            wait(call())
        called_s = timer()
        result = call()
        end_s = returned_s = timer()
        if waits is None:
            self._results.look()  # the function may have imported one
            waits = self._are_pending = self._results.are_pending(result)
        if waits:
            self._results.wait(result)
            end_s = timer()
            self.dispatches_s.append(returned_s - called_s)
        return end_s - start_s, result


def _no_wait(*_: Any) -> None:
    """In place of a wait, where there is nothing to wait for, or it is not yet known."""


class Rounds:
    """Makes rounds as the fixture does, and keeps what the last call of the latest returned.

    Every result but the last is gone when the next call begins, as in the fixture's own loop, so
    that a call finds the memory that its predecessor has left; the last of a round is gone when the
    next round has begun. So every round has the cost of as many results. Calls of asynchronous work
    would overlap within a round, so each is waited for: the last one by the clock, the timer.
    """

    def __init__(self, fixture: BenchmarkFixture) -> None:
        self._fixture = fixture
        self._last: list[Any] = []
        self.calls = 0
        self.runs: Sequence[Callable[[], Any]] = ()

    def take_last(self) -> tuple[Any, int]:
        """Result of the last timed call, which is not stored any longer, and its position."""
        return self._last.pop(), (self.calls - 1) % len(self.runs)

    def make_runner(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Callable[..., Any]:
        """In place of the fixture's own, with its arguments; those of the call are bound to it.

        Returns:
            ``runner(loops_range)``, which returns seconds; with None, of one call, and its result.
        """
        clock, last = cast("Clock", self._fixture._timer), self._last  # noqa: SLF001
        turns = itertools.cycle(self.runs or [partial(function, *args, **kwargs)])

        def runner(loops_range: range | None) -> Any:
            calls = len(loops_range) if loops_range else 1
            waited = 0 if clock.wait is None else calls - 1
            wait = clock.wait or _no_wait
            first, now = itertools.islice(turns, waited), itertools.islice(turns, calls - waited)
            result = last.pop() if last else None
            collects = gc.isenabled()
            if self._fixture._disable_gc:  # noqa: SLF001
                gc.disable()
            try:
                start = clock()
                for call in first:
                    result = None  # before the call, which then finds its memory free
                    result = call()
                    wait()
                if waited:
                    clock.mark_last()
                for call in now:
                    result = None
                    result = call()
                end = clock()
            finally:
                if collects:
                    gc.enable()
            last.append(result)
            self.calls += calls
            return end - start if loops_range else (end - start, result)

        return runner


# Other plugins

#: The outcome that pytest-rerunfailures gives the report of a test that it is about to run again.
RERUN: str = "rerun"

#: What coverage sets where it measures the processes that a session starts, too.
_COVERING = ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START")


def notices(config: pytest.Config) -> list[str]:
    """Lines on what other plugins do not do for cases in processes of their own."""
    # pytest-cov registers this with --cov alone.
    if not config.pluginmanager.hasplugin("_cov") or any(map(os.environ.get, _COVERING)):
        return []
    missed = "pytest-cov does not see what runs in frameworks' processes"
    return [f"  {missed}: add patch = subprocess under [run] to coverage's settings"]


def check_benchmark(config: pytest.Config) -> None:
    """See that pytest-benchmark is there."""
    if not config.pluginmanager.hasplugin("benchmark"):
        raise UsageError(
            "cases need pytest-benchmark, and this session has not loaded it: leave out -p "
            "no:benchmark; where plugins do not load by themselves give -p benchmark -p fwbench; "
            "or ignore the files with tests marked fwbench"
        )


def check_cases(config: pytest.Config) -> None:
    """See that cases get the fixture of pytest-benchmark."""
    if getattr(config.option, "forked", False):
        raise pytest.UsageError(
            "cases have processes of their own, and pytest-forked would fork them once more: leave "
            '--forked out, or deselect the tests marked fwbench (-m "not fwbench")'
        )
    codspeed = config.pluginmanager.get_plugin("codspeed_plugin")
    if getattr(codspeed, "is_codspeed_enabled", False):
        raise pytest.UsageError(
            "cases need pytest-benchmark, and pytest-codspeed takes its place: leave out "
            "--codspeed (and unset CODSPEED_ENV), or deselect the tests marked fwbench "
            '(-m "not fwbench")'
        )
