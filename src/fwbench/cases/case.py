"""One cell of the grid, made real: bind, verify, warm up, measure, record."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol, cast

from fwbench.cases import products, timing
from fwbench.cases.backward import Backward
from fwbench.cases.forward import Copy, Creation, Forward, InPlaceUpdate
from fwbench.cases.function import FunctionWork
from fwbench.cases.inputs import OPERAND_CACHE, check_room, drawn_operands
from fwbench.cases.random import Random
from fwbench.cases.work import OperationWork, Work
from fwbench.errors import FwbenchError, NotOnDevice, UsageError
from fwbench.frameworks import probes
from fwbench.frameworks.contract import Compilation, Framework
from fwbench.frameworks.gpus import DeviceClock
from fwbench.machine import REFERENCES_SPIN
from fwbench.measure import core_speed, nvml
from fwbench.measure.clock import Clock
from fwbench.measure.core_speed import Cpus, SpeedWatch
from fwbench.measure.device_time import device_time, kernel_time
from fwbench.measure.limits import Limits, of_link, of_memory
from fwbench.measure.nvml import Gpu, GpuWatch
from fwbench.measure.resources import (
    DeviceMemory,
    OtherProcesses,
    PeakMemory,
    RunQueue,
    cpu_clock_hz,
)
from fwbench.measure.stopping import Stopping
from fwbench.measure.warmup import WarmUp, wait_until_idle, warm_device, warm_up
from fwbench.records import entry
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count, gibibytes
from fwbench.terms.manifest import Manifest
from fwbench.terms.names import compiles
from fwbench.terms.presets import Size
from fwbench.workloads.function import Function
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation

#: Finds out something about a case, which it binds, in a process that does nothing else.
Probe = Callable[["Case", Clock], Any]


class Case:
    """One cell of the grid in the process that measures it: a test's ``case`` argument.

    Attributes:
        cell: the cell of the grid.
        framework: the framework, loaded in this process.
        measured: whether :meth:`measure` was called, even if it failed.
    """

    measured = False

    def __init__(
        self,
        cell: Cell,
        framework: Framework,
        manifest: Manifest,
        clock: Clock,
        benchmark: "Benchmark",
        warmup_s: float,
        tell: Callable[[Any], Any] = lambda _: None,
        cache: Path | None = None,
        limits: Limits = Limits(),  # noqa: B008 (it does not change)
        probe: Probe | None = None,
        *,
        is_first: bool | None = None,
    ) -> None:
        self.cell = cell
        self.framework = framework
        self._benchmark = benchmark
        self._manifest = manifest
        self._clock = clock
        self._warmup_s = warmup_s
        self._tell = tell
        self._cache = cache
        self._limits = limits
        self._was_called, self._is_parallel = False, True
        self._probe = probe
        self._is_first = is_first
        self._other_processes = OtherProcesses()
        self._run_queue = RunQueue()

    @property
    def statistic(self) -> str:
        """Statistic that stands for a launch: other work on a CPU only makes rounds slower.

        The fastest rounds on a GPU are those of a clock that it cannot keep.
        """
        return "min" if self.cell.device == "cpu" else "median"

    @property
    def benchmark(self) -> Any:
        """pytest-benchmark's fixture, for more ``extra_info`` and the like."""
        return self._benchmark.fixture

    def measure(self) -> Any:
        """Bind, verify, warm up, measure, and verify this case again; record what is known of it.

        What fails after the rounds has no record either. With ``--benchmark-disable`` the case is
        bound and verified, and nothing is timed; in the process of a probe it is only bound, but
        for a session for profiles.

        Returns:
            What the last timed call returned; None for a training loop, and for a probe.

        Raises:
            WrongResult: the result differs from the reference: of the first call, of the last
                timed one, or of one on changed inputs.
            WrongGradient: the gradient does.
            NotACopy: a created array shares memory with its source.
            UnreadableResult: a result cannot be read back.
            UnfinishedWork: work remains when a call is over for the clock.
            ImpossibleRate: the case was faster than its device can be.
            TooLargeToVerify: verifying it takes more memory than is free.
            WrongTraining: the first losses differ from the reference's.
            Diverged: a loss became infinite or NaN.
        """
        _refuse_again(self)
        self.measured = True
        with _explained(self.cell, self._lacking, lambda: self.gpu):
            is_timed = self._probe is None or probes.is_for_profiles()
            last = self._measure() if is_timed else None
            if self._probe is not None:
                self._probed(self._probe)
            return last

    @cached_property
    def gpu(self) -> Gpu | None:
        """Its GPU, as NVML knows it; None for the CPU, and where NVML cannot tell which it is."""
        device = self._manifest.device(self.cell.device)
        return nvml.gpu(device.name, device.uuid)

    def bind(self) -> Work:
        """Place the inputs on the device and build the zero-argument ``run``; untimed."""
        return bind(self.cell, self.framework)

    def alone(self, what: str) -> AbstractContextManager[None]:
        """A block of a probe in which the same case of another process does nothing."""
        return self._benchmark.alone(what, on_one_cpu=True)

    def _probed(self, probe: Probe) -> None:
        """Let a probe have the case, which was verified and timed before, as a rule elsewhere."""
        with self._unused_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            probe(self, self._clock)
        self._benchmark.leave_unused()

    def _measure(self) -> Any:
        benchmark = self._benchmark
        with self._unused_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            if isinstance(self.cell.workload, Operation):
                draw(self.cell.workload, self.cell.size)
            memory = PeakMemory()
            on_device = self._device_memory()
            bind_s, work, bound = self._compiling(self.bind)
            self._clock.before = work.before
            with benchmark.alone("first call"):
                first_call_s, result, called = self._compiling(work.run)
            self._was_called = True
            memory.pause()
            held, kept_bytes = _held(on_device), OPERAND_CACHE.size_bytes
            verified = work.verify(result)
            readable = work.is_readable(result)
            del result
            work.prepare()
            memory.resume(OPERAND_CACHE.size_bytes - kept_bytes)
        # Rounds alone may be too short to tell what others did.
        with self._other_processes:
            warmed_up = self._warm_up(work, readable=readable)
            watch = self._watch()
            speed = _watching_speed(self.cell, self._clock, is_parallel=self._is_parallel)
            scope = self.framework.scope(self.cell.device, self.cell.dtype)
            with scope, self._run_queue, speed as benchmark.speed:
                work.begin()
                last, work.last = benchmark.time(*work.runs)
            work.timed_calls = benchmark.calls
            if watch is not None:
                warmed_up |= self._energy(watch) | self._watched(watch)
            if benchmark.speed is not None:
                warmed_up |= CaseFacts(**benchmark.speed.facts())
            memory.pause()
            verified |= self._verify_again(work, last)
        warmed_up |= CaseFacts(bind_s=bind_s, first_call_in_process_s=first_call_s)
        warmed_up |= _compiled(bound, called) | CaseFacts(operand_sets=len(work.runs))
        self._record(warmed_up | verified | held | host_memory(memory))
        return last

    def _compiling(self, call: Callable[[], Any]) -> tuple[float, Any, Compilation | None]:
        """Time and result of a call, and what it compiled, of an execution that compiles."""
        if not compiles(self.cell.execution):
            return *self._clock.time(call), None
        compiled = self.framework.watch_compilation()
        try:
            seconds, result = self._clock.time(call)
        finally:
            compilation = compiled()
        return seconds, result, compilation

    def _device_memory(self) -> DeviceMemory | None:
        device = self.cell.device
        if device == "cpu":
            return None
        return DeviceMemory(device, self.framework.watch_memory(device))

    def _warm_up(self, work: Work, *, readable: bool) -> CaseFacts:
        """Warm up, and check that calls are over when their work is; nothing if none is timed."""
        if not self._benchmark.enabled:
            return CaseFacts()
        if REFERENCES_SPIN:
            wait_until_idle()
        waited = CaseFacts()
        with self._unused_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            warmup = self._warmed(work)
            self._is_parallel = warmup.is_parallel is not False
            if readable:
                wait_s = timing.check_finished(work, self.framework, self.cell, self._clock)
                if self._clock.wait is not None:
                    waited = CaseFacts(wait_s=wait_s)
            waited |= self._time_on_device(work)
            # Rounds behind an emptied cache are not of the same work.
            if warmup.burst_s is not None and self._clock.before is None:
                waited |= CaseFacts(burst_s=warmup.burst_s)
        return waited | CaseFacts(
            warmup_calls=warmup.calls, warmup_s=warmup.seconds, steady=warmup.steady
        )

    def _watch(self) -> GpuWatch | None:
        """Monitor of its GPU between rounds; None without one that NVML knows."""
        if not self.gpu or not self._benchmark.enabled:
            return None
        self._benchmark.watch = GpuWatch(self.gpu, self._clock)
        return self._benchmark.watch

    def _energy(self, watch: GpuWatch) -> CaseFacts:
        """Energy of a call, including waits; None where emptying the cache took part of it."""
        if self._clock.wait is not None:
            self._clock.wait()
        used, calls = watch.energy.used(), self._benchmark.calls
        if used is None or not calls or self._clock.before is not None:
            return CaseFacts(energy_j=None)
        return CaseFacts(energy_j=used.joules / calls, energy_uncertainty=used.uncertainty)

    def _watched(self, watch: GpuWatch) -> CaseFacts:
        others = self.gpu.others() if self.gpu else None
        return CaseFacts(**watch.facts(), others_on_gpu=others)

    def _warmed(self, work: Work) -> WarmUp:
        """Warm the GPU up until its clock has risen, and the work until its times have settled."""
        if self.cell.device == "cpu" or self._warmup_s <= 0:
            turns = partial(next, (run() for run in cycle(work.runs)))
            hands_over = self._clock.wait is not None
            return warm_up(turns, self._clock, self._warmup_s, hands_over=hands_over)
        device = warm_device(work.run, self._clock, self.gpu)
        warmup = warm_up(work.run, self._clock, self._warmup_s)
        steady = warmup.steady and device.steady is not False
        calls, seconds = warmup.calls + device.calls, warmup.seconds + device.seconds
        return WarmUp(calls, seconds, steady, device.burst_s)

    def _time_on_device(self, work: Work) -> CaseFacts:
        """Time of a call on the GPU itself; from here on its cache is cold if that is requested."""
        device = self.cell.device
        if device == "cpu" or self._clock.wait is None:
            return CaseFacts()
        cold = "l2" in self.cell.workload.toggles and self.cell.toggle("l2") == "cold"
        flush = self.framework.flusher(device) if cold else None
        clock = Clock(self._clock.read, self._clock.wait)
        before = flush or work.before
        timed = device_time(work.run, clock, self.framework.device_clock(device), before)
        self._clock.before = before
        clock_hz = self.gpu.sm_clock_hz() if self.gpu else None
        cycles = timed.device_s * clock_hz if timed.device_s and clock_hz else None
        return CaseFacts(**asdict(timed), device_cycles=cycles)

    def _verify_again(self, work: Work, last: Any) -> CaseFacts:
        """Verify what was timed, with a clock of its own: that of the rounds keeps them.

        Kernels are timed last, as launches take longer while CUPTI listens; and in the first launch
        of a comparison alone, which judges other times.
        """
        clock, rounds_s = Clock(self._clock.read, self._clock.wait), self._benchmark.rounds_s
        clock.before = work.before
        with self._discarded_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            timing.check_threads(self.framework, self._manifest.threads)
            verified = timing.verify_again(work, self.framework, self.cell, clock, last, rounds_s)
            kernels = _kernel_clock(self.framework, self.cell.device, self._benchmark)
            return verified | CaseFacts(**kernel_time(work.run, kernels, self._clock.before))

    def _busy(self, facts: CaseFacts) -> CaseFacts:
        others = self._other_processes
        clock = CaseFacts(cpu_clock_hz=cpu_clock_hz(), others_on_gpu=facts.others_on_gpu)
        if self._benchmark.has_company:  # which works between the rounds of this one
            return clock
        return clock | CaseFacts(
            others_cpus=others.cpus,
            siblings_cpus=others.siblings_cpus,
            idle_cpus=others.idle_cpus,
            queued_cpus=self._run_queue.cpus,
            throttled_cpus=self._run_queue.throttled_cpus,
        )

    @contextmanager
    def _unused_on_failure(self) -> Iterator[None]:
        """Keep pytest-benchmark from warning, after a failure, that its fixture was not used."""
        try:
            yield
        except BaseException:
            self._benchmark.leave_unused()
            raise

    @contextmanager
    def _discarded_on_failure(self) -> Iterator[None]:
        """Let what was timed have no record if it turns out to be wrong."""
        try:
            yield
        except BaseException:
            self._benchmark.discard()
            raise

    def _lacking(self, error: Exception) -> str | None:
        """A kernel that its device lacks; only of operations, and until their first call is over.

        Later it would hide what has gone wrong. Gaps on the CPU are known, and declared.
        """
        is_early = not self._was_called and isinstance(self.cell.workload, Operation)
        return self.framework.lacks(error) if is_early and self.cell.device != "cpu" else None

    def _record(self, facts: CaseFacts) -> None:
        benchmark = self._benchmark
        if benchmark.timed:
            case = entry.describe(self.cell, self.framework, self._manifest, self.gpu)
            times = entry.times(
                benchmark.rounds_s,
                benchmark.iterations,
                self._clock,
                self._busy(facts),
                case.threads,
            )
            known = case | CaseFacts(statistic=self.statistic) | times | facts
            if self._is_first is not None:
                known |= CaseFacts(first_in_process=self._is_first)
            if benchmark.stopping is not None:
                known |= CaseFacts(**benchmark.stopping.facts())
            with self._discarded_on_failure():
                possible = _possible(self.cell.workload, known, self.gpu) or self._limits
                known |= timing.check_rates(known, possible)
            benchmark.keep(dict(known))


def _refuse_again(case: Case) -> None:
    """A test has one record, with room for one case."""
    if case.measured:
        raise UsageError(
            f"{case.cell.id} is measured a second time in one test: call case.measure() once, and "
            "parametrize the test for more"
        )


def computing_cpus(cell: Cell, clock: Clock, *, is_parallel: bool) -> Cpus | None:
    """The CPUs that compute a case; None where not this process's do, or by another clock.

    Args:
        is_parallel: whether other threads than the one that makes the calls do.
    """
    by_others = cell.device != "cpu" or cell.gang or cell.toggle("workers") != "0"
    if by_others or clock.read is not time.perf_counter:
        return None
    return core_speed.cpus_of_process(is_parallel=is_parallel)


@contextmanager
def _watching_speed(cell: Cell, clock: Clock, *, is_parallel: bool) -> Iterator[SpeedWatch | None]:
    """Set rounds aside while CPUs are slow; None where nobody can tell that."""
    cpus = computing_cpus(cell, clock, is_parallel=is_parallel)
    with cpus.reached() if cpus is not None else nullcontext():
        yield None if cpus is None else SpeedWatch(clock, cpus)


def _possible(workload: Any, facts: CaseFacts, gpu: Gpu | None) -> Limits | None:
    """Rates that no copy on a GPU can exceed: those of its link or its memory; None of others."""
    if gpu is None or not isinstance(workload, Operation):
        return None
    if workload.copies_to:
        return of_link(gpu.link_generation)
    return of_memory(facts.device_name or "", facts.bytes) if workload.is_copy else None


def host_memory(memory: PeakMemory) -> CaseFacts:
    """The memory of the process before a case, and at most."""
    return CaseFacts(
        host_memory_before_bytes=memory.before_bytes,
        peak_host_memory_bytes=memory.peak_bytes,
        peak_children_memory_bytes=memory.children_bytes,
    )


def _compiled(bound: Compilation | None, called: Compilation | None) -> CaseFacts:
    """Compilations of binding, if there are any, and of the first call."""
    facts = CaseFacts(bind_phases=bound.phases_s) if bound and bound.number else CaseFacts()
    if called is None:
        return facts
    return facts | CaseFacts(
        first_call_phases=called.phases_s, first_call_compilations=called.number
    )


def _held(memory: DeviceMemory | None) -> CaseFacts:
    """The memory of a GPU that its operands, its result and what computes it take."""
    if memory is None:
        return CaseFacts()
    return CaseFacts(
        device_memory_before_bytes=memory.before_bytes,
        device_memory_left_bytes=memory.left_bytes,
        peak_device_memory_bytes=memory.peak_bytes,
    )


def draw(operation: Operation, size: Size) -> None:
    """Have the operands drawn, unless an earlier case has: before its memory is looked at.

    Raises:
        TooLargeToVerify: its arrays do not fit into memory.
    """
    cost = operation.cost_of("forward", size)
    if cost is not None:
        check_room(f"{operation.name} of size {size}", cost.elements)
    drawn_operands(operation, size)


def _kernel_clock(framework: Framework, device: str, benchmark: "Benchmark") -> DeviceClock | None:
    """CUPTI, where it is to tell more than the device's clock has; None if nothing was timed."""
    is_timed = device != "cpu" and benchmark.rounds_s and not timing.IS_EXAMINED
    return framework.kernel_clock(device) if is_timed else None


def bind(cell: Cell, framework: Framework) -> Work:
    """Place the inputs on the device and build the zero-argument ``run``; nothing is timed yet.

    Raises:
        TooLargeToVerify: its arrays do not fit into memory.
    """
    operation = cast("Operation", cell.workload)
    draw(operation, cell.size)
    kind = FunctionWork if isinstance(operation, Function) else _work(operation, cell)
    return kind(cell, framework)


def _work(operation: Operation, cell: Cell) -> Callable[[Cell, Framework], OperationWork]:
    if products.is_large(operation, cell):
        return products.ProductGradient if cell.direction == "backward" else products.Product
    if cell.direction == "backward":
        return Backward
    if operation.creates:
        return Creation
    if operation.copies_to:
        return Copy
    if operation.moments:
        return Random
    return InPlaceUpdate if operation.updates else Forward


class Benchmark(Protocol):
    """Times the work of one case."""

    #: pytest-benchmark's, which users know as ``case.benchmark``.
    fixture: Any
    #: What has ended the rounds; None where their number was fixed.
    stopping: Stopping | None
    #: Sets rounds aside at which a GPU was throttled; None where there is none to watch.
    watch: GpuWatch | None
    #: Sets rounds aside at which a CPU was slow; None where nobody looks.
    speed: SpeedWatch | None

    def time(self, *runs: Callable[[], Any]) -> tuple[Any, int]:
        """Make calls by turns in as many rounds as their timing takes.

        Returns:
            The last result that was timed, or the only one, and the position of its call.
        """

    def time_rounds(self, target: Callable[..., Any], **given: Any) -> Any:
        """Time ``rounds`` calls of the target, each after an untimed call of the ``setup``."""

    def rounds_of(self, round_s: float) -> int:
        """Number of rounds of this length within the limits of timing."""

    @property
    def has_company(self) -> bool:
        """True if the same case of another process is measured by turns with this one."""

    def alone(self, what: str, *, on_one_cpu: bool = False) -> AbstractContextManager[None]:
        """A block in which the same case of another process does nothing."""

    @property
    def enabled(self) -> bool:
        """True if anything is timed; not with ``--benchmark-disable``."""

    @property
    def timed(self) -> bool:
        """True if rounds have been timed."""

    @property
    def rounds_s(self) -> Sequence[float]:
        """The seconds per call of every round so far; empty where nothing is timed."""

    @property
    def iterations(self) -> int:
        """Number of calls in a round; known once rounds have been timed."""

    @property
    def calls(self) -> int:
        """Number of all calls, including those that are in no statistics.

        0 where that is not known.
        """

    def keep(self, facts: Mapping[str, Any]) -> None:
        """Store what fwbench knows of the case in its record."""

    def leave_unused(self) -> None:
        """Do not warn that nothing was timed: the case has failed before."""

    def discard(self) -> None:
        """Let what was timed have no record, as if a round had failed."""


_ONE_AT_A_TIME = (
    "it is in EXCLUSIVE_PROCESS mode and takes one process at a time: end the others, or "
    "set the mode with nvidia-smi -c DEFAULT"
)


@contextmanager
def _explained(
    cell: Cell, lacking: Callable[[Exception], str | None], gpu: Callable[[], Gpu | None]
) -> Iterator[None]:
    """Add to an error of a framework's what NVML knows of the GPU at that moment.

    The error stays as it is; what fwbench itself has found wrong needs no explanation.

    Args:
        lacking: lack of the device that an error tells of; None of other errors.
        gpu: gives its GPU; None where NVML does not know it.

    Raises:
        NotOnDevice: instead of an error that says so.
    """
    try:
        yield
    except FwbenchError:
        raise
    except Exception as error:
        if lack := lacking(error):
            raise NotOnDevice(f"{cell.device}: {lack}") from error
        if isinstance(cell.workload, Function):
            error.add_note(cell.workload.called_on(cell.size))
        known = None if cell.device == "cpu" else gpu()
        if known is not None and (occupancy := _occupancy(known, entry.least_bytes(cell))):
            error.add_note(f"{cell.device}: {occupancy}")
        raise


def _occupancy(gpu: Gpu, least_bytes: float | None) -> str:
    memory, users = gpu.memory(), gpu.users()
    parts = []
    if memory is not None:
        parts.append(f"{gibibytes(memory.free_bytes)} of {gibibytes(memory.total_bytes)} are free")
        if least_bytes:
            parts.append(f"operands and results of the case take {gibibytes(least_bytes)} at least")
    if users:
        parts.append(f"{count(users, 'other process', 'other processes')} on it")
    if gpu.takes_one_process():
        parts.append(_ONE_AT_A_TIME)
    return "; ".join(parts)
