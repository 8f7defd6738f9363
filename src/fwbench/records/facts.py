"""THE definition of a record: every key of ``extra_info["fwbench"]``, declared once.

To add a fact, add a line here and write the page again:
``python -m fwbench_extras.pages record > docs/record.md``. What is recorded of the session
as a whole is in :mod:`fwbench.records.session_facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from fwbench.frameworks.gpus import DEVICE_CLOCKS
from fwbench.frameworks.profiler import CLASSES
from fwbench.measure.condition import CONDITIONS
from fwbench.measure.device_time import SLOPE
from fwbench.measure.stopping import PRECISE, TIME_OVER
from fwbench.records.table import (
    ABOVE_MINUS_1,
    ANY,
    BETWEEN,
    FRACTION,
    POSITIVE,
    Table,
    fact,
    one_of,
)
from fwbench.records.units import (
    BYTES,
    CELSIUS,
    COUNT,
    CPUS,
    FLOPS,
    HERTZ,
    JOULES,
    NATS,
    PER_SECOND,
    SECONDS,
    SHARE,
    WATTS,
)

#: Version of the layout; a file with a higher one is refused.
SCHEMA = 1

_NO_GPU = "where NVML knows no GPU"
_NO_PROC = "where the system does not tell"
_NOTHING_SHOWN = "where nothing was warmed up"
UNKNOWN_TO_NVML = "where NVML does not tell"
_UNKNOWN_TO_FRAMEWORK = "where the framework does not tell"
_NO_COUNTER = "where the system does not count what a process sends"


class EpochGpu(Table):
    """State of a GPU at a moment, from NVML."""

    utilization: float = fact("share of the last second in which a kernel ran", SHARE)
    memory_bytes: int = fact("memory in use by all processes", BYTES)
    energy_j: float | None = fact(
        "energy that it took in an epoch", JOULES, POSITIVE,
        null="where NVML does not tell, and of less than two seconds",
    )  # fmt: skip


class GpuFacts(Table):
    """Which GPU a case ran on, and how it was set up, as NVML knows it."""

    uuid: str | None = fact("its own, or that of a slice (MIG)", null=UNKNOWN_TO_NVML)
    vbios: str | None = fact("version of its firmware", null=UNKNOWN_TO_NVML)
    ecc: bool | None = fact("whether its memory corrects errors", null=UNKNOWN_TO_NVML)
    power_limit_w: float | None = fact("what it may draw", WATTS, POSITIVE, null=UNKNOWN_TO_NVML)
    default_sm_clock_hz: float | None = fact(
        "clock of its multiprocessors unless settings or heat want another", HERTZ, POSITIVE,
        null=UNKNOWN_TO_NVML,
    )  # fmt: skip
    mig: str | None = fact("profile of a slice", null="for a whole GPU")


class MeasuredOnGpu(Table):
    """Measurements of a case on a GPU."""

    sm_clock_hz: float | None = fact(
        "median clock of a GPU's multiprocessors while it was measured", HERTZ, POSITIVE,
        null=UNKNOWN_TO_NVML,
    )  # fmt: skip
    throttled: list[str] | None = fact(
        "why that was not higher, settings apart, such as `power` or `heat`", null=UNKNOWN_TO_NVML
    )
    power_w: float | None = fact("what the GPU drew at the end", WATTS, null=UNKNOWN_TO_NVML)
    energy_j: float | None = fact(
        "energy of a call or an epoch", JOULES, POSITIVE, null=UNKNOWN_TO_NVML
    )
    temperature_c: float | None = fact("its temperature then", CELSIUS, ANY, null=UNKNOWN_TO_NVML)
    discarded_rounds: int | None = fact(
        "rounds that were made again, because its clock was below 75 % of its default", COUNT
    )
    device_memory_before_bytes: int | None = fact(
        "memory of the GPU that the framework had in use before a call was bound", BYTES,
        null=_UNKNOWN_TO_FRAMEWORK,
    )  # fmt: skip
    device_memory_left_bytes: int | None = fact(
        "what earlier cases of its process had left of that: beyond what the first one found",
        BYTES, null=_UNKNOWN_TO_FRAMEWORK,
    )  # fmt: skip


class _OfGang(Table):
    """A process of a gang."""

    rank: int = fact("which one of its role, from 0", COUNT)
    cpus: int = fact("CPUs that it may use", COUNT, POSITIVE)
    threads: int | None = fact(
        "threads that it computes with", COUNT, POSITIVE, null=_UNKNOWN_TO_FRAMEWORK
    )
    cpu_s: float = fact("processor time of a step", SECONDS)
    preempted: int = fact("how often it lost a processor", COUNT)
    sent_bytes: float | None = fact("bytes that it sent in a step", BYTES, null=_NO_COUNTER)


class Replica(_OfGang):
    """One replica, by its own clock."""

    host: str | None = fact("name of the machine that it ran on")
    step_s: float = fact("median time of its steps", SECONDS, POSITIVE)
    p90_s: float = fact("time that nine in ten rounds do not exceed, of a step", SECONDS, POSITIVE)
    max_s: float = fact("longest round, of a step", SECONDS, POSITIVE)


class Serving(_OfGang):
    """A process that takes no steps itself: a parameter server, or what works for a coordinator."""

    role: str = fact("what it is: `server`, or a `worker` that a coordinator gives work")


class Checked(Table):
    """Verification of replicas, before and after the timing."""

    steps: int = fact("steps with known results; of a loop after the timing", COUNT, POSITIVE)
    steps_timed: int | None = fact("those after the timing", COUNT, POSITIVE)
    sent_bytes: int | None = fact(
        "bytes that all processes sent in the first of them", BYTES, null=_NO_COUNTER
    )
    shard_loss_spread: float | None = fact(
        "largest difference between losses of replicas at a step: they learn from different "
        "examples",
        NATS,
    )
    gradient_error: float | None = fact(
        "error of the gradient that was exchanged in the first step, against the reference", SHARE,
        null="of narrow dtypes, or where a framework does not tell",
    )  # fmt: skip
    weights_equal: bool | None = fact("whether all replicas had the same weights after every step")
    updates: int | None = fact(
        "updates that servers made in them, by their own count: as many as were sent",
        COUNT, POSITIVE,
    )  # fmt: skip


class GangFacts(Table):
    """The processes that did a case together."""

    replicas: int = fact("workers that shared the case", COUNT, POSITIVE)
    strategy: str = fact("how they agreed")
    equal_work: bool = fact(
        "whether they did the work of one process: asynchronous workers do not, and are not ranked "
        "with others"
    )
    servers: int = fact("parameter servers", COUNT)
    engine: str = fact("what started them")
    network: str = fact(
        "what joined them: `loopback` is this machine's memory, not a wire; `real` is what is "
        "between several machines"
    )
    link_bytes_per_s: float | None = fact(
        "what the link of each worker carries in each direction; absent of `loopback`",
        PER_SECOND,
        POSITIVE,
    )
    link_delay_s: float | None = fact(
        "how long everything takes from a worker to another, in addition; absent of `loopback`",
        SECONDS,
    )
    link_utilization: float | None = fact(
        "what the busiest worker sent in a step, over what its link carries meanwhile; absent of "
        "`loopback`",
        SHARE,
    )
    straggler: str | None = fact(
        "worker that slept in every step, and how long; absent where none did"
    )
    oversubscribed: bool = fact("whether they had more threads than CPUs: times show no scaling")
    start_s: float = fact("time until all were connected", SECONDS, POSITIVE)
    steps_per_round: int = fact("steps between two readings of worker 0's clock", COUNT, POSITIVE)
    ranks: list[Replica] = fact(
        "every worker; where a coordinator gives them work, the coordinator alone", filled=True
    )
    serving: list[Serving] = fact("every other process")
    skew: float = fact("longest median step of a worker over the shortest, minus 1", SHARE)
    least_bytes_per_step: float = fact(
        "bytes that all processes together must send in a step at least", BYTES
    )
    bytes_per_step: float | None = fact("bytes that they sent", BYTES, null=_NO_COUNTER)
    bus_bytes_per_s: float | None = fact(
        "bus bandwidth of an exchange, as nccl-tests defines it: size / time, of an all-reduce "
        "x 2 (W - 1) / W, of its halves x (W - 1) / W",
        PER_SECOND, POSITIVE,
    )  # fmt: skip
    alone_s: float | None = fact(
        "median time of worker 0's steps without an exchange, on its share", SECONDS, POSITIVE
    )
    verified: Checked = fact("what was verified")

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

    name: str = fact("name, as the framework's profiler has it")
    operator_class: str = fact("class of the operator", check=one_of(*CLASSES))
    time_s: float = fact("own time in a call", SECONDS)
    calls: float = fact("how often a call calls it", COUNT)


class Profile(Table):
    """Where the time of a call goes, by the framework's own profiler."""

    gap: str | None = fact("why nothing was profiled")
    calls: int | None = fact("calls that were profiled, none of them timed", COUNT, POSITIVE)
    call_s: float | None = fact("median time of a call under the profiler", SECONDS, POSITIVE)
    operators_s: float | None = fact("own times of all operators in a call", SECONDS)
    shares: dict[str, float] | None = fact(
        "share of that time by class of operators", SHARE, FRACTION
    )
    shares_within: float | None = fact(
        "largest difference between a class's shares in quarters of these calls", SHARE, FRACTION,
        null="where there was no time for four",
    )  # fmt: skip
    operators: list[ProfiledOperator] | None = fact("the ten operators that take most of it")
    trace: str | None = fact("file for Perfetto, in the folder of traces")


class Memory(Table):
    """The memory of a process that has made a few calls of a case, and nothing else."""

    gap: str | None = fact("why nothing was measured")
    before_bytes: int | None = fact(
        "memory of the process before the work was bound: interpreter and framework", BYTES,
        null=_NO_PROC,
    )  # fmt: skip
    bound_bytes: int | None = fact(
        "memory of the process with the model built, or the inputs placed", BYTES, null=_NO_PROC
    )
    peak_bytes: int | None = fact("peak memory of the process in the calls", BYTES, null=_NO_PROC)
    device_peak_bytes: int | None = fact(
        "peak memory of the device", BYTES, null=_UNKNOWN_TO_FRAMEWORK
    )
    planned_bytes: int | None = fact(
        "memory that the framework's planner reserves for results; of one framework only", BYTES,
        null="where there is no planner",
    )  # fmt: skip
    planned_by_strategy: dict[str, int] | None = fact(
        "the same by what MXNet's planner shares: `in place` and `both` are its own plans, `none` "
        "and `co-share` are computed from the log of `both`", BYTES,
    )  # fmt: skip
    saved_bytes: int | None = fact(
        "memory of the tensors that are kept for the backward pass, parameters apart", BYTES,
        null=_UNKNOWN_TO_FRAMEWORK,
    )  # fmt: skip
    saved_tensors: int | None = fact("how many these are", COUNT, null=_UNKNOWN_TO_FRAMEWORK)

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

    repetition: int = fact("which training, from 1", COUNT, POSITIVE)
    epoch: int | None = fact("which epoch of it, from 1", COUNT, POSITIVE)
    warmup: bool | None = fact("whether it is kept out of the statistics")
    seconds: float = fact("time until its last update was done", SECONDS)
    train_loss: float = fact("mean loss over its steps", NATS, ANY)
    train_losses: list[float] | None = fact("mean loss over each tenth of its steps", NATS, ANY)
    validation_loss: float | None = fact("validation loss afterwards, without dropout", NATS, ANY)
    validation_accuracy: float | None = fact("validation accuracy afterwards", SHARE, FRACTION)
    validation_s: float | None = fact("time of that validation", SECONDS)
    cpu_utilization: float | None = fact("busy share of the threads", SHARE)
    gpu: EpochGpu | None = fact("use of the GPU at its end", null=_NO_GPU)
    test_accuracy: float | None = fact(
        "test accuracy after it", SHARE, FRACTION, null="between milestones"
    )


class Tested(Table):
    """The test accuracy at one point of a training."""

    repetition: int = fact("which training, from 1", COUNT, POSITIVE)
    epoch: int | None = fact("after which epoch of it, from 1", COUNT, POSITIVE)
    accuracy: float = fact("share of right answers on the test set", SHARE, FRACTION)


class Unequal(Table):
    """Where a training differs most from another one of the same work."""

    to: str = fact("the other one: framework and execution")
    nats: float = fact("difference of their mean losses", NATS)
    allowed: float = fact("difference that is allowed there", NATS)
    epoch: int = fact("epoch in which it is, from 1", COUNT, POSITIVE)


class Data(Table):
    """The data set of a training."""

    name: str | None = fact("name of the data set")
    source: str | None = fact("`real`, or `synthetic` where it was generated")
    origin: str | None = fact("where its files came from, or how it was generated")
    digest: str | None = fact("SHA-256 of its contents; equal digests are equal data")
    train: int | None = fact("examples to train on", COUNT)
    validation: int | str | None = fact("examples to validate on; `test` if these are the test set")
    test: int | None = fact("examples to test on", COUNT)


class RowVisits(Table):
    """Visits that a case made by turns with others that do the same work."""

    row: str = fact("node id of the first of these cases")
    visits_s: list[float] = fact(
        "median time of a call in each visit, in the same order for all of them", SECONDS, POSITIVE
    )


class Measured(MeasuredOnGpu):
    """Facts that every launch measures; the case has the median over its launches, or the first."""

    # Times of its rounds.
    dispatch_s: float | None = fact(
        "median time until a call returned", SECONDS, needs=("completion_s",)
    )
    completion_s: float | None = fact("median time until its result existed", SECONDS, POSITIVE)
    wait_s: float | None = fact(
        "time of a wait for its device where there is nothing to wait for; a part of every round",
        SECONDS,
    )
    device_s: float | None = fact(
        "time of a call on a GPU itself, without launching and waiting", SECONDS, POSITIVE,
        null="where noise was larger",
    )  # fmt: skip
    device_clock: str | None = fact(
        "how that was found: by the GPU's own clock, `events` around a call or the sum of its "
        "kernels (`cupti`); or `slope`: `throughput_s`",
        check=one_of(*DEVICE_CLOCKS, SLOPE),
    )
    device_cycles: float | None = fact(
        "that in cycles of the clock that the GPU had then", COUNT, POSITIVE, null=UNKNOWN_TO_NVML
    )
    throughput_s: float | None = fact(
        "time of each further call: of twice as many calls over as many", SECONDS, POSITIVE,
        null="where noise was larger, or the cache is emptied before each call",
    )  # fmt: skip
    cpu_s: float | None = fact("processor time of all rounds", SECONDS)
    wall_s: float | None = fact("time of all rounds", SECONDS, POSITIVE)
    preempted: float | None = fact("share of rounds in which the process lost a processor", SHARE)
    load: float | None = fact("load of the machine over the last minute", CPUS)
    others_cpus: float | None = fact(
        "processors that other processes kept busy", CPUS, null=_NO_PROC
    )
    siblings_cpus: float | None = fact(
        "of these, by other workers of the session", CPUS, null=_NO_PROC
    )
    idle_cpus: float | None = fact("processors that were idle meanwhile", CPUS, null=_NO_PROC)
    queued_cpus: float | None = fact(
        "processors for which its threads waited in the rounds", CPUS, null=_NO_PROC
    )
    others_on_gpu: int | None = fact("processes of others on its GPU", COUNT, null=UNKNOWN_TO_NVML)
    drift: float | None = fact(
        "median of the last fifth of the rounds over that of the first, minus 1",
        SHARE,
        ABOVE_MINUS_1,
        null="where there was one round",
    )
    condition: str | None = fact(
        "`clean`, `drifting` or `contended`: docs/measuring.md", check=one_of(*CONDITIONS)
    )
    spinning: bool | None = fact("whether its threads spent processor time on waiting")
    median_interval: float | None = fact(
        "width of the 99 % interval of the median of its rounds, over that median; it says "
        "nothing of other processes", SHARE, null="where there were fewer than nine rounds",
    )  # fmt: skip
    stopped: str | None = fact(
        "why its rounds ended: `precise` or `time over`", check=one_of(PRECISE, TIME_OVER)
    )
    turns: RowVisits | None = fact("its visits, if it took turns with other cases of its row")

    # Before the rounds.
    first_call_s: float | None = fact(
        "time of the first call in a process that has done nothing else", SECONDS, POSITIVE
    )
    bind_s: float | None = fact("time in which it was bound to its inputs", SECONDS)
    first_call_in_process_s: float | None = fact(
        "time of the first call, in a process that may have measured other cases before",
        SECONDS,
        POSITIVE,
    )
    first_in_process: bool | None = fact(
        "whether its process measured nothing before: `first_call_in_process_s` then has what a "
        "framework, and a GPU, do once"
    )
    compile_s: float | None = fact(
        "what the first step, or epoch, of an execution that compiles took beyond a typical one",
        SECONDS, null="in `eager`, and in a process that had measured something",
    )  # fmt: skip
    warmup_calls: int | None = fact("calls, or steps, of the warm-up", COUNT)
    warmup_s: float | None = fact("time of the warm-up", SECONDS)
    steady: bool | None = fact("whether times were steady", null=_NOTHING_SHOWN)

    # Memory of the process.
    host_memory_before_bytes: int | None = fact(
        "memory of the process before the work was bound, or the model built", BYTES, null=_NO_PROC
    )
    peak_host_memory_bytes: int | None = fact("peak memory of the process", BYTES, null=_NO_PROC)
    peak_children_memory_bytes: int | None = fact(
        "peak memory of the processes that it has started, added up", BYTES
    )

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

    launch: int = fact("which launch, from 0", COUNT)
    value_s: float = fact("what stands for it: the `statistic` of its rounds", SECONDS, POSITIVE)
    min_s: float | None = fact("the smallest of its rounds", SECONDS, POSITIVE, needs=("median_s",))
    median_s: float | None = fact("the median one", SECONDS, POSITIVE, needs=("min_s",))
    iterations: int | None = fact("calls of a round", COUNT, POSITIVE)
    rounds_s: list[float] | None = fact(
        "time of a call in each round", SECONDS, POSITIVE, filled=True
    )


class CaseFacts(Measured):
    """Facts of a case; empty for a benchmark that is not fwbench's."""

    # The case: parts of its id.
    workload: str = fact("name of the operation or the training")
    framework: str = fact("framework, with its environment: `torch@nightly`")
    device: str = fact("`cpu` or `gpu:N`")
    execution: str = fact("`eager`, or the name of an optimisation")
    direction: str = fact("`forward`, `backward` or `train`")
    dtype: str = fact("precision of the computation")
    size: int = fact(
        "size of the inputs; of training, examples in a batch; of shapes, elements moved at least",
        COUNT, POSITIVE,
    )  # fmt: skip
    shape: str | None = fact("the shape, as the case id has it", null="where a size is one number")
    family: str | None = fact("family of the operation", null="of training, and of users' own")

    # What it was measured with.
    schema: int | None = fact("version of this layout", COUNT, POSITIVE)
    framework_version: str | None = fact("version of the framework")
    device_name: str | None = fact("model of the device, as its maker calls it")
    gpu: GpuFacts | None = fact("its GPU", null=f"on a CPU, and {_NO_GPU}")
    threads: int | None = fact(
        "threads that the framework computes with", COUNT, POSITIVE, null="where it does not tell"
    )
    threshold: float | None = fact(
        "smallest change worth a verdict, of the test's marker", SHARE, BETWEEN,
        null="without one",
    )  # fmt: skip
    toggles: dict[str, Any] | None = fact("every switch that may change its speed, with its value")
    placement: dict[str, str] | None = fact(
        "environment variables that decide which GPUs it sees, as far as they are set",
        null="on a CPU",
    )
    flops: float | None = fact(
        "floating-point operations of a call", FLOPS, null="where not declared"
    )
    bytes: float | None = fact(
        "bytes that a call reads and writes at least", BYTES, null="where not declared"
    )

    composed: bool | None = fact("true if fwbench composes it of several functions")

    # How it was measured.
    statistic: str | None = fact(
        "what stands for a launch: `min` or `median` of its rounds", check=one_of("min", "median")
    )
    precision: float | None = fact(
        "width of the interval of the median at which its rounds were to end", SHARE, POSITIVE
    )

    # Verification.
    max_relative_error: float | None = fact("largest error against the reference", SHARE)
    tolerance: float | None = fact("error that is allowed", SHARE)
    precision_bits: int | None = fact(
        "bits of mantissa that it was computed in, by the error: 52, 23, 10 or 7", COUNT, POSITIVE
    )
    changed_seed: int | None = fact("seed of the changed operands", COUNT)
    operand_sets: int | None = fact("sets of operands that calls took by turns", COUNT, POSITIVE)
    limit_flops_per_s: float | None = fact(
        "floating-point operations a second that are possible at most", PER_SECOND, POSITIVE
    )
    limit_bytes_per_s: float | None = fact(
        "bytes a second that are possible at most", PER_SECOND, POSITIVE
    )
    result_is_view: bool | None = fact(
        "whether the result shares memory with an input", null=_UNKNOWN_TO_FRAMEWORK
    )
    verified_against: str | None = fact(
        "what it was verified against, where that is not NumPy: a framework's run in float64"
    )
    parameters: int | None = fact("parameters that are trained", COUNT)
    accuracy: float | None = fact(
        "share of the tested examples that a trained network answers rightly", SHARE, FRACTION
    )
    agreement: float | None = fact(
        "share of them that it answers as the float64 reference does", SHARE, FRACTION
    )
    int8_features: str | None = fact(
        "what the CPU has for products of int8 (`avx512_vnni`, `amx_int8`); empty for nothing",
        null=_NO_PROC,
    )
    exported_from: str | None = fact("framework that the network was exported from as ONNX")
    model_bytes: int | None = fact("size of the model as a file", BYTES, POSITIVE)
    checkpoint_bytes: int | None = fact("size of a checkpoint's files", BYTES, POSITIVE)
    checkpoint_sync_s: float | None = fact(
        "time of an `fsync` of a checkpoint's files, which no call waits for", SECONDS
    )
    checked_steps: int | None = fact("losses compared with the reference", COUNT)
    checked_steps_timed: int | None = fact(
        "losses compared with it once more, after the timing", COUNT
    )
    checked_updates: int | None = fact("steps that were seen to change the weights", COUNT)
    checked_updates_timed: int | None = fact(
        "steps that were seen to do so after the timing", COUNT
    )
    max_loss_deviation: float | None = fact(
        "deviation of the loss that comes closest to what is allowed", NATS
    )
    loss_tolerance: float | None = fact("deviation allowed at that step", NATS)
    unequal: Unequal | None = fact("how its losses differ from those of most others, if they do")
    recomputed_segments: int | None = fact(
        "parts of the network whose results the backward pass recomputes", COUNT
    )
    parameters_on_devices: dict[str, int] | None = fact(
        "parameters on each device, of a network on several devices", COUNT, POSITIVE
    )
    optimizer: dict[str, Any] | None = fact("optimiser: name, constants, what is particular to it")

    # Training.
    data: Data | None = fact("data set that it learns from")
    data_memory_bytes: int | None = fact("size of it in memory, before the model was built", BYTES)
    steps_per_epoch: int | None = fact("steps of an epoch", COUNT, POSITIVE)
    warmup_epochs: int | None = fact("epochs kept out of the statistics", COUNT)
    repetitions: int | None = fact("trainings from the initial weights", COUNT, POSITIVE)
    epochs: list[Epoch] | None = fact("every epoch, those of the warm-up among them", filled=True)
    epoch_s: float | None = fact("median time of an epoch", SECONDS, POSITIVE)
    step_s: float | None = fact("that, divided by the steps", SECONDS, POSITIVE)
    total_s: list[float] | None = fact("time of each training", SECONDS, POSITIVE, filled=True)
    first_epoch_excess: float | None = fact(
        "what the first epoch took beyond a typical one", SHARE, ABOVE_MINUS_1,
        null="where its process had run another case",
    )  # fmt: skip
    images_per_s: float | None = fact("images that went through in a second", PER_SECOND, POSITIVE)
    loaded_bytes: int | None = fact("size of the files that a loader reads", BYTES, POSITIVE)
    decoder: str | None = fact("library that decodes them, as far as it is known")
    tokens_per_s: float | None = fact("tokens that went through in a second", PER_SECOND, POSITIVE)
    examples_per_s: float | None = fact(
        "examples of a user's model that went through in a second", PER_SECOND, POSITIVE
    )
    test_accuracy: list[Tested] | None = fact("test accuracies, at milestones and at the end")
    tested_examples: int | None = fact("examples that a test accuracy is of", COUNT, POSITIVE)
    validated_examples: int | None = fact("examples that a validation is of", COUNT, POSITIVE)
    cpu_utilization: float | None = fact("median busy share of the threads", SHARE)
    peak_device_memory_bytes: int | None = fact(
        "peak memory of the device; of an operation, until its first call is done", BYTES,
        null=_UNKNOWN_TO_FRAMEWORK,
    )  # fmt: skip

    gang: GangFacts | None = fact("the processes that did it together")

    # Against what the machine can do at most.
    attainable_s: float | None = fact("least time that a call can take here", SECONDS, POSITIVE)
    attainable_share: float | None = fact(
        "that over its median time", SHARE, POSITIVE, needs=("flops", "bytes")
    )

    # What probes found out, each in a process of its own.
    profile: Profile | None = fact("where the time of a call goes; with `--fw-profile`")
    memory: Memory | None = fact("memory of its calls; with `--fw-memory`")
    forward_memory: Memory | None = fact("of training: memory of the forward pass alone")

    # Launches.
    launch: int | None = fact(
        "which launch, while launches are not merged", COUNT, needs=("statistic",)
    )
    launches: list[Launch] | None = fact("every launch", filled=True)
    contended: bool | None = fact("whether a launch had to share its processors")

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
            asked: values by the toggles' names; they are among :attr:`toggles`.
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
