"""THE definition of a record: every key of ``extra_info["fwbench"]``, declared once.

To add a fact, add a line here and its meaning in ``facts.toml``, and write the page again:
``python -m fwbench_extras.pages record > docs/record.md``. What is recorded of the session
as a whole is in :mod:`fwbench.records.session_facts`.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Self

from fwbench.frameworks.gpus import CUPTI, DEVICE_CLOCKS
from fwbench.frameworks.profiler import CLASSES
from fwbench.measure.condition import CONDITIONS
from fwbench.measure.device_time import SLOPE
from fwbench.measure.stopping import PRECISE, TIME_OVER
from fwbench.records.table import Table, fact, one_of

#: Version of the layout; a file with a higher one is refused.
SCHEMA = 1


class EpochGpu(Table):
    """State of a GPU at a moment, from NVML."""

    utilization: float = fact()
    memory_bytes: int = fact()
    energy_j: float | None = fact()
    energy_uncertainty: float | None = fact()


class GpuFacts(Table):
    """Which GPU a case ran on, and how it was set up, as NVML knows it."""

    uuid: str | None = fact()
    vbios: str | None = fact()
    ecc: bool | None = fact()
    power_limit_w: float | None = fact()
    default_sm_clock_hz: float | None = fact()
    mig: str | None = fact()
    pcie_generation: int | None = fact()
    pcie_lanes: int | None = fact()
    numa_node: int | None = fact()


class MeasuredOnGpu(Table):
    """Measurements of a case on a GPU."""

    sm_clock_hz: float | None = fact()
    throttled: list[str] | None = fact()
    power_w: float | None = fact()
    energy_j: float | None = fact()
    energy_uncertainty: float | None = fact()
    burst_s: float | None = fact()
    temperature_c: float | None = fact()
    discarded_rounds: int | None = fact()
    device_memory_before_bytes: int | None = fact()
    device_memory_left_bytes: int | None = fact()


class _OfGang(Table):
    """A process of a gang."""

    rank: int = fact()
    cpus: int = fact()
    threads: int | None = fact()
    cpu_s: float = fact()
    preempted: int = fact()
    sent_bytes: float | None = fact()


class Replica(_OfGang):
    """One replica, by its own clock."""

    host: str | None = fact()
    step_s: float = fact()
    p90_s: float = fact()
    max_s: float = fact()


class Serving(_OfGang):
    """A process that takes no steps itself: a parameter server, or what works for a coordinator."""

    role: str = fact()


class Checked(Table):
    """Verification of replicas, before and after the timing."""

    steps: int = fact()
    steps_timed: int | None = fact()
    sent_bytes: int | None = fact()
    shard_loss_spread: float | None = fact()
    gradient_error: float | None = fact()
    weights_equal: bool | None = fact()
    updates: int | None = fact()


class GangFacts(Table):
    """The processes that did a case together."""

    replicas: int = fact()
    strategy: str = fact()
    equal_work: bool = fact()
    servers: int = fact()
    engine: str = fact()
    network: str = fact()
    link_bytes_per_s: float | None = fact()
    link_delay_s: float | None = fact()
    link_utilization: float | None = fact()
    straggler: str | None = fact()
    oversubscribed: bool = fact()
    start_s: float = fact()
    steps_per_round: int = fact()
    ranks: list[Replica] = fact()
    serving: list[Serving] = fact()
    skew: float = fact()
    least_bytes_per_step: float = fact()
    bytes_per_step: float | None = fact()
    bus_bytes_per_s: float | None = fact()
    alone_s: float | None = fact()
    verified: Checked = fact()

    @property
    def communication_share(self) -> float | None:
        """The part of a step that it is longer by than without its exchange."""
        return None if self.alone_s is None else max(0.0, 1 - self.alone_s / self.ranks[0].step_s)

    @property
    def places(self) -> str:
        """Where its workers were, machine by machine, without their names: ``2 x 4 CPUs``."""
        by_host: dict[str | None, list[int]] = {}
        for rank in self.ranks:
            by_host.setdefault(rank.host, []).append(rank.cpus)
        return " + ".join(
            f"{len(of_host)} x {'/'.join(map(str, sorted({*of_host})))} CPUs"
            for of_host in by_host.values()
        )


class ProfiledOperator(Table):
    """An operator in the calls that were profiled."""

    name: str = fact()
    operator_class: str = fact(one_of(*CLASSES))
    time_s: float = fact()
    calls: float = fact()
    error_s: float | None = fact()


class Profile(Table):
    """Where the time of a call goes, by the framework's own profiler."""

    gap: str | None = fact()
    calls: int | None = fact()
    call_s: float | None = fact()
    operators_s: float | None = fact()
    shares: dict[str, float] | None = fact()
    shares_within: float | None = fact()
    operators: list[ProfiledOperator] | None = fact()
    events: dict[str, float] | None = fact()
    events_gap: str | None = fact()
    trace: str | None = fact()
    onednn_isa: str | None = fact()


#: In folded stacks: what is between two functions, and the calls themselves, which all begin with.
SEPARATOR, ROOT = ";", "<call>"


class Sampled(Table):
    """Functions that the time of a call goes to, by samples of the stack."""

    gap: str | None = fact()
    calls: int | None = fact()
    call_s: float | None = fact()
    overhead: float | None = fact()
    noise: float | None = fact()
    stacks: dict[str, float] | None = fact()


class Memory(Table):
    """The memory of a process that has made a few calls of a case, and nothing else."""

    gap: str | None = fact()
    before_bytes: int | None = fact()
    bound_bytes: int | None = fact()
    peak_bytes: int | None = fact()
    device_peak_bytes: int | None = fact()
    planned_bytes: int | None = fact()
    planned_by_strategy: dict[str, int] | None = fact()
    saved_bytes: int | None = fact()
    saved_tensors: int | None = fact()

    @property
    def above_bytes(self) -> int | None:
        """The peak above what was held before."""
        if self.peak_bytes is None or self.before_bytes is None:
            return None
        return max(0, self.peak_bytes - self.before_bytes)

    @property
    def calls_bytes(self) -> int | None:
        """The peak above what was held with the model built, or the inputs placed."""
        if self.peak_bytes is None or self.bound_bytes is None:
            return None
        return max(0, self.peak_bytes - self.bound_bytes)


class Epoch(Table):
    """One epoch of a training loop."""

    repetition: int = fact()
    epoch: int | None = fact()
    warmup: bool | None = fact()
    seconds: float = fact()
    train_loss: float = fact()
    train_losses: list[float] | None = fact()
    validation_loss: float | None = fact()
    validation_accuracy: float | None = fact()
    validation_s: float | None = fact()
    cpu_utilization: float | None = fact()
    gpu: EpochGpu | None = fact()
    test_accuracy: float | None = fact()


class Tested(Table):
    """The test accuracy at one point of a training."""

    repetition: int = fact()
    epoch: int | None = fact()
    accuracy: float = fact()


class Unequal(Table):
    """Where a training differs most from another one of the same work."""

    to: str = fact()
    nats: float = fact()
    allowed: float = fact()
    epoch: int = fact()


class Data(Table):
    """The data set of a training."""

    name: str | None = fact()
    source: str | None = fact()
    origin: str | None = fact()
    digest: str | None = fact()
    train: int | None = fact()
    validation: int | str | None = fact()
    test: int | None = fact()


class RowVisits(Table):
    """Visits that a case made by turns with others that do the same work."""

    row: str = fact()
    visits_s: list[float] = fact()


class Measured(MeasuredOnGpu):
    """Facts that every launch measures; the case has the median over its launches, or the first."""

    # Times of its rounds.
    dispatch_s: float | None = fact()
    completion_s: float | None = fact()
    wait_s: float | None = fact()
    device_s: float | None = fact()
    device_clock: str | None = fact(one_of(*DEVICE_CLOCKS, SLOPE))
    slope_reason: str | None = fact()
    kernels_s: float | None = fact()
    kernels_reason: str | None = fact()
    device_cycles: float | None = fact()
    throughput_s: float | None = fact()
    cpu_s: float | None = fact()
    wall_s: float | None = fact()
    preempted: float | None = fact()
    load: float | None = fact()
    cpu_clock_hz: float | None = fact()
    others_cpus: float | None = fact()
    siblings_cpus: float | None = fact()
    idle_cpus: float | None = fact()
    queued_cpus: float | None = fact()
    throttled_cpus: float | None = fact()
    others_on_gpu: int | None = fact()
    full_speed: float | None = fact()
    slow_rounds: int | None = fact()
    loop_s: float | None = fact()
    drift: float | None = fact()
    condition: str | None = fact(one_of(*CONDITIONS))
    spinning: bool | None = fact()
    median_interval: float | None = fact()
    stopped: str | None = fact(one_of(PRECISE, TIME_OVER))
    turns: RowVisits | None = fact()

    # Before the rounds.
    first_call_s: float | None = fact()
    bind_s: float | None = fact()
    bind_phases: dict[str, float] | None = fact()
    first_call_in_process_s: float | None = fact()
    first_call_phases: dict[str, float] | None = fact()
    first_call_compilations: int | None = fact()
    first_in_process: bool | None = fact()
    compile_s: float | None = fact()
    warmup_calls: int | None = fact()
    warmup_s: float | None = fact()
    steady: bool | None = fact()

    # Memory of the process.
    host_memory_before_bytes: int | None = fact()
    peak_host_memory_bytes: int | None = fact()
    peak_children_memory_bytes: int | None = fact()

    @property
    def on_device_s(self) -> Mapping[str, float]:
        """Seconds of a call on a GPU, by each of the GPU's own clocks that told them."""
        by_clock = {CUPTI: self.kernels_s, self.device_clock or "": self.device_s}
        return {clock: s for clock, s in by_clock.items() if clock in DEVICE_CLOCKS and s}

    @property
    def memory_above_bytes(self) -> int | None:
        """Peak memory of the process above what it held before the model was built."""
        before, peak = self.host_memory_before_bytes, self.peak_host_memory_bytes
        return None if before is None or peak is None else max(0, peak - before)

    @property
    def memory_taken_bytes(self) -> int | None:
        """The same, and the peak memory of the processes that it has started."""
        above_bytes, children_bytes = self.memory_above_bytes, self.peak_children_memory_bytes
        return None if above_bytes is None else above_bytes + (children_bytes or 0)


class Launch(Measured):
    """One launch of a case, in a fresh process."""

    launch: int = fact()
    resumed_from: str | None = fact()
    value_s: float = fact()
    min_s: float | None = fact()
    median_s: float | None = fact()
    iterations: int | None = fact()
    rounds_s: list[float] | None = fact()


class CaseFacts(Measured):
    """Facts of a case; empty for a benchmark that is not fwbench's."""

    # The case: parts of its id.
    workload: str = fact()
    framework: str = fact()
    device: str = fact()
    execution: str = fact()
    direction: str = fact()
    dtype: str = fact()
    size: int = fact()
    shape: str | None = fact()
    family: str | None = fact()

    plain_test: bool | None = fact()

    # What it was measured with.
    schema: int | None = fact()
    framework_version: str | None = fact()
    device_name: str | None = fact()
    gpu: GpuFacts | None = fact()
    threads: int | None = fact()
    threshold: float | None = fact()
    toggles: dict[str, Any] | None = fact()
    libraries: dict[str, str] | None = fact()
    placement: dict[str, str] | None = fact()
    flops: float | None = fact()
    bytes: float | None = fact()

    composed: bool | None = fact()

    # How it was measured.
    resumed_from: str | None = fact()
    statistic: str | None = fact()
    precision: float | None = fact()

    # Verification.
    max_relative_error: float | None = fact()
    tolerance: float | None = fact()
    precision_bits: int | None = fact()
    changed_seed: int | None = fact()
    operand_sets: int | None = fact()
    limit_flops_per_s: float | None = fact()
    limit_bytes_per_s: float | None = fact()
    result_is_view: bool | None = fact()
    verified_against: str | None = fact()
    inputs_digest: int | None = fact()
    side_error: float | None = fact()
    different_results: str | None = fact()
    parameters: int | None = fact()
    accuracy: float | None = fact()
    agreement: float | None = fact()
    int8_features: str | None = fact()
    exported_from: str | None = fact()
    model_bytes: int | None = fact()
    checkpoint_bytes: int | None = fact()
    checkpoint_sync_s: float | None = fact()
    imported_modules: int | None = fact()
    imported_bytes: int | None = fact()
    import_parts: dict[str, float] | None = fact()
    checked_steps: int | None = fact()
    checked_steps_timed: int | None = fact()
    checked_updates: int | None = fact()
    checked_updates_timed: int | None = fact()
    max_loss_deviation: float | None = fact()
    loss_tolerance: float | None = fact()
    unequal: Unequal | None = fact()
    recomputed_segments: int | None = fact()
    parameters_on_devices: dict[str, int] | None = fact()
    optimizer: dict[str, Any] | None = fact()

    # Training.
    data: Data | None = fact()
    data_memory_bytes: int | None = fact()
    steps_per_epoch: int | None = fact()
    warmup_epochs: int | None = fact()
    repetitions: int | None = fact()
    epochs: list[Epoch] | None = fact()
    epoch_s: float | None = fact()
    step_s: float | None = fact()
    total_s: list[float] | None = fact()
    first_epoch_excess: float | None = fact()
    images_per_s: float | None = fact()
    loaded_bytes: int | None = fact()
    decoder: str | None = fact()
    tokens_per_s: float | None = fact()
    examples_per_s: float | None = fact()
    test_accuracy: list[Tested] | None = fact()
    tested_examples: int | None = fact()
    validated_examples: int | None = fact()
    cpu_utilization: float | None = fact()
    peak_device_memory_bytes: int | None = fact()

    gang: GangFacts | None = fact()

    # Against what the machine can do at most.
    attainable_s: float | None = fact()
    attainable_share: float | None = fact()

    # What probes found out, each in a process of its own.
    profile: Profile | None = fact()
    sampled: Sampled | None = fact()
    memory: Memory | None = fact()
    forward_memory: Memory | None = fact()

    # Launches.
    launch: int | None = fact()
    launches: list[Launch] | None = fact()
    contended: bool | None = fact()

    @property
    def call_s(self) -> float | None:
        """Median time of a call; of a training loop, of a step."""
        return self.completion_s if self.step_s is None else self.step_s

    @property
    def profile_overhead(self) -> float | None:
        """Extra time of a call under the profiler, as a share; None where it is not known."""
        profiled_s = None if self.profile is None else self.profile.call_s
        return None if not (profiled_s and self.call_s) else profiled_s / self.call_s - 1

    def is_known(self, name: str) -> bool:
        """True if a key is declared, or a requested toggle."""
        return super().is_known(name) or name in (self.toggles or {})

    @property
    def size_text(self) -> str:
        """The size as people read it: the shape where there is one."""
        return self.shape or f"{self.size:,}"

    def with_toggles(self, requested: Mapping[str, str]) -> Self:
        """With the requested toggles, which are parts of the case's id.

        Args:
            requested: values by the toggles' names; they are among :attr:`toggles`.
        """
        return self.unchecked({**self, **requested})

    @property
    def work(self) -> tuple[Any, ...]:
        """Key of the work: workload to size, and the data."""
        data = self.data
        return (
            *(self.workload, self.device, self.direction, self.dtype, self.size, self.shape),
            None if data is None else data.digest,
        )


class PlainFacts(CaseFacts):
    """Facts of a benchmark that is no case: what it does is known to its author alone.

    They say so: :attr:`CaseFacts.plain_test`.
    """

    def __bool__(self) -> bool:
        """False: there is no case."""
        return False

    @classmethod
    @cache
    def required(cls) -> list[str]:
        """Nothing: none of them is there."""
        return []


class CaseLine(Table):
    """A line of ``fwbench report --csv`` and ``--json``: columns that are not facts of a case."""

    run: str = fact()
    case: str = fact()
    median_s: float | None = fact()
    low_s: float | None = fact()
    high_s: float | None = fact()
    values: int | None = fact()  # type: ignore[assignment] # a column's name; no line is a Table
    of: str | None = fact()
    outcome: str = fact()
    nodeid: str = fact()
    requested: str | None = fact()
    date: str | None = fact()
    cpu: str | None = fact()
    usable_cpus: int | None = fact()
    os: str | None = fact()
    python: str | None = fact()
    fwbench: str | None = fact()
    commit: str | None = fact()


def recorded(values: Mapping[str, Any]) -> CaseFacts:
    """The facts in a record that is known to be sound; false if they are not of a case."""
    return (PlainFacts if values.get("plain_test") else CaseFacts).unchecked(values)
