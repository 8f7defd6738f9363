"""THE definition of a record: every key of ``extra_info["fwbench"]``, declared once.

To add a fact, add a line here and write the page again:
``python -m fwbench_extras.pages record > docs/record.md``. What is recorded of the session
as a whole is in :mod:`fwbench.records.session_facts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from fwbench.frameworks.device_clock import DEVICE_CLOCKS
from fwbench.measure.condition import CONDITIONS
from fwbench.measure.device_time import SLOPE
from fwbench.measure.stopping import PRECISE, TIME_OVER
from fwbench.records.checks import ABOVE_MINUS_1, FRACTION, NOT_NEGATIVE, POSITIVE, one_of
from fwbench.records.gangs import GangFacts
from fwbench.records.gpus import UNKNOWN_TO_NVML, EpochGpu, GpuFacts, MeasuredOnGpu
from fwbench.records.probed import Memory, Profile
from fwbench.records.table import Table, fact
from fwbench.records.units import (
    BYTES,
    COUNT,
    CPUS,
    FLOPS,
    NATS,
    PER_SECOND,
    SECONDS,
    SHARE,
)

#: Version of the layout; a file with a higher one is refused.
SCHEMA = 1

_NO_GPU = "where NVML knows no GPU"
_NO_PROC = "where the system does not tell"
_NOTHING_SHOWN = "where nothing was warmed up"


class Epoch(Table):
    """One epoch of a training loop."""

    repetition: int = fact("which training, from 1", COUNT, POSITIVE)
    epoch: int | None = fact("which epoch of it, from 1", COUNT, POSITIVE)
    warmup: bool | None = fact("whether it is kept out of the statistics")
    seconds: float = fact("time until its last update was done", SECONDS, NOT_NEGATIVE)
    train_loss: float = fact("mean loss over its steps", NATS)
    train_losses: list[float] | None = fact("mean loss over each tenth of its steps", NATS)
    validation_loss: float | None = fact("validation loss afterwards, without dropout", NATS)
    validation_accuracy: float | None = fact("validation accuracy afterwards", SHARE, FRACTION)
    validation_s: float | None = fact("time of that validation", SECONDS, NOT_NEGATIVE)
    cpu_utilization: float | None = fact("busy share of the threads", SHARE, NOT_NEGATIVE)
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
    nats: float = fact("difference of their mean losses", NATS, NOT_NEGATIVE)
    allowed: float = fact("difference that is allowed there", NATS, NOT_NEGATIVE)
    epoch: int = fact("epoch in which it is, from 1", COUNT, POSITIVE)


class Data(Table):
    """The data set of a training."""

    name: str | None = fact("name of the data set")
    source: str | None = fact("`real`, or `synthetic` where it was generated")
    origin: str | None = fact("where its files came from, or how it was generated")
    digest: str | None = fact("SHA-256 of its contents; equal digests are equal data")
    train: int | None = fact("examples to train on", COUNT, NOT_NEGATIVE)
    validation: int | str | None = fact("examples to validate on; `test` if these are the test set")
    test: int | None = fact("examples to test on", COUNT, NOT_NEGATIVE)


class Measured(MeasuredOnGpu):
    """Facts that every launch measures; the case has the median over its launches, or the first."""

    # Times of its rounds.
    dispatch_s: float | None = fact(
        "median time until a call returned", SECONDS, NOT_NEGATIVE, needs=("completion_s",)
    )
    completion_s: float | None = fact("median time until its result existed", SECONDS, POSITIVE)
    wait_s: float | None = fact(
        "time of a wait for its device where there is nothing to wait for; a part of every round",
        SECONDS, NOT_NEGATIVE,
    )  # fmt: skip
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
    cpu_s: float | None = fact("processor time of all rounds", SECONDS, NOT_NEGATIVE)
    wall_s: float | None = fact("time of all rounds", SECONDS, POSITIVE)
    preempted: float | None = fact(
        "share of rounds in which the process lost a processor", SHARE, NOT_NEGATIVE
    )
    load: float | None = fact("load of the machine over the last minute", CPUS, NOT_NEGATIVE)
    others_cpus: float | None = fact(
        "processors that other processes kept busy", CPUS, NOT_NEGATIVE, null=_NO_PROC
    )
    others_on_gpu: int | None = fact(
        "processes of others on its GPU", COUNT, NOT_NEGATIVE, null=UNKNOWN_TO_NVML
    )
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
        "width of the 99 % interval of the median of its rounds, over that median", SHARE,
        NOT_NEGATIVE, null="where there were fewer than nine rounds",
    )  # fmt: skip
    stopped: str | None = fact(
        "why its rounds ended: `precise` or `time over`", check=one_of(PRECISE, TIME_OVER)
    )

    # Before the rounds.
    first_call_s: float | None = fact(
        "time of the first call in a process that has done nothing else", SECONDS, POSITIVE
    )
    first_call_in_process_s: float | None = fact(
        "time of the first call, whatever its process has done before", SECONDS, POSITIVE
    )
    first_in_process: bool | None = fact(
        "whether its process measured nothing before: `first_call_in_process_s` then has what a "
        "framework, and a GPU, do once"
    )
    compile_s: float | None = fact(
        "what the first step took beyond a typical one", SECONDS, NOT_NEGATIVE
    )
    warmup_calls: int | None = fact("calls, or steps, of the warm-up", COUNT, NOT_NEGATIVE)
    warmup_s: float | None = fact("time of the warm-up", SECONDS, NOT_NEGATIVE)
    steady: bool | None = fact("whether times had settled", null=_NOTHING_SHOWN)

    # Memory of the process.
    host_memory_before_bytes: int | None = fact(
        "memory of the process before the work was bound, or the model built", BYTES, NOT_NEGATIVE,
        null=_NO_PROC,
    )  # fmt: skip
    peak_host_memory_bytes: int | None = fact(
        "peak memory of the process", BYTES, NOT_NEGATIVE, null=_NO_PROC
    )


class Launch(Measured):
    """One launch of a case, in a fresh process."""

    launch: int = fact("which launch, from 0", COUNT, NOT_NEGATIVE)
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
        "smallest change worth a verdict, of the test's marker", SHARE, NOT_NEGATIVE,
        null="without one",
    )  # fmt: skip
    toggles: dict[str, Any] | None = fact("every switch that may change its speed, with its value")
    placement: dict[str, str] | None = fact(
        "environment variables that decide which GPUs it sees, as far as they are set",
        null="on a CPU",
    )
    flops: float | None = fact(
        "floating-point operations of a call", FLOPS, NOT_NEGATIVE, null="where not declared"
    )
    bytes: float | None = fact(
        "bytes that a call reads and writes at least", BYTES, NOT_NEGATIVE,
        null="where not declared",
    )  # fmt: skip

    # How it was measured.
    statistic: str | None = fact(
        "what stands for a launch: `min` or `median` of its rounds", check=one_of("min", "median")
    )
    precision: float | None = fact(
        "width of the interval of the median at which its rounds were to end", SHARE, POSITIVE
    )

    # Verification.
    max_relative_error: float | None = fact(
        "largest error against the reference", SHARE, NOT_NEGATIVE
    )
    tolerance: float | None = fact("error that is allowed", SHARE, NOT_NEGATIVE)
    precision_bits: int | None = fact(
        "bits of mantissa that it was computed in, by the error: 52, 23, 10 or 7", COUNT, POSITIVE
    )
    limit_flops_per_s: float | None = fact(
        "floating-point operations a second that are possible at most", PER_SECOND, POSITIVE
    )
    limit_bytes_per_s: float | None = fact(
        "bytes a second that are possible at most", PER_SECOND, POSITIVE
    )
    result_is_view: bool | None = fact(
        "whether the result shares memory with an input", null="where the framework does not tell"
    )
    verified_against: str | None = fact(
        "what it was verified against, where that is not NumPy: a framework's run in float64"
    )
    parameters: int | None = fact("parameters that are trained", COUNT, NOT_NEGATIVE)
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
    checked_steps: int | None = fact("losses compared with the reference", COUNT, NOT_NEGATIVE)
    checked_steps_timed: int | None = fact(
        "losses compared with it once more, after the timing", COUNT, NOT_NEGATIVE
    )
    checked_updates: int | None = fact(
        "steps that were seen to change the weights", COUNT, NOT_NEGATIVE
    )
    checked_updates_timed: int | None = fact(
        "steps that were seen to do so after the timing", COUNT, NOT_NEGATIVE
    )
    max_loss_deviation: float | None = fact(
        "deviation of the loss that comes closest to what is allowed", NATS, NOT_NEGATIVE
    )
    loss_tolerance: float | None = fact("deviation allowed at that step", NATS, NOT_NEGATIVE)
    unequal: Unequal | None = fact("how its losses differ from those of most others, if they do")
    recomputed_segments: int | None = fact(
        "parts of the network whose results the backward pass recomputes", COUNT, NOT_NEGATIVE
    )
    parameters_on_devices: dict[str, int] | None = fact(
        "parameters on each device, of layers that are divided among several", COUNT, POSITIVE
    )
    optimizer: dict[str, Any] | None = fact("optimiser: name, constants, what is particular to it")

    # Training.
    data: Data | None = fact("data set that it learns from")
    data_memory_bytes: int | None = fact(
        "size of it in memory, before the model was built", BYTES, NOT_NEGATIVE
    )
    steps_per_epoch: int | None = fact("steps of an epoch", COUNT, POSITIVE)
    warmup_epochs: int | None = fact("epochs kept out of the statistics", COUNT, NOT_NEGATIVE)
    repetitions: int | None = fact("trainings from the initial weights", COUNT, POSITIVE)
    epochs: list[Epoch] | None = fact("every epoch, those of the warm-up among them", filled=True)
    epoch_s: float | None = fact("median time of an epoch", SECONDS, POSITIVE)
    step_s: float | None = fact("that, divided by the steps", SECONDS, POSITIVE)
    total_s: list[float] | None = fact("time of each training", SECONDS, POSITIVE, filled=True)
    first_epoch_excess: float | None = fact(
        "what the first epoch took beyond a typical one", SHARE, ABOVE_MINUS_1
    )
    images_per_s: float | None = fact("images that went through in a second", PER_SECOND, POSITIVE)
    tokens_per_s: float | None = fact("tokens that went through in a second", PER_SECOND, POSITIVE)
    examples_per_s: float | None = fact(
        "examples of a user's model that went through in a second", PER_SECOND, POSITIVE
    )
    test_accuracy: list[Tested] | None = fact("test accuracies, at milestones and at the end")
    tested_examples: int | None = fact("examples that a test accuracy is of", COUNT, POSITIVE)
    validated_examples: int | None = fact("examples that a validation is of", COUNT, POSITIVE)
    cpu_utilization: float | None = fact("median busy share of the threads", SHARE, NOT_NEGATIVE)
    peak_device_memory_bytes: int | None = fact(
        "peak memory of the device; of an operation, until its first call is done", BYTES,
        NOT_NEGATIVE, null="where the framework does not tell",
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
        "which launch, while launches are not merged", COUNT, NOT_NEGATIVE, needs=("statistic",)
    )
    launches: list[Launch] | None = fact("every launch", filled=True)
    contended: bool | None = fact("whether a launch had to share its processors")

    @property
    def memory_above_bytes(self) -> int | None:
        """Peak memory of the process above what it held before the model was built."""
        before, peak = self.host_memory_before_bytes, self.peak_host_memory_bytes
        return None if before is None or peak is None else max(0, peak - before)

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
        """True if a key is declared, or a toggle that was asked for."""
        return super().is_known(name) or name in (self.toggles or {})

    @property
    def size_text(self) -> str:
        """The size as people read it: the shape where there is one."""
        return self.shape or f"{self.size:,}"

    def with_toggles(self, asked: Mapping[str, str]) -> Self:
        """With the toggles that were asked for, which are parts of the case's id.

        Args:
            asked: values by the toggles' names; they are among :attr:`toggles`.
        """
        return self.unchecked({**self, **asked})

    @property
    def work(self) -> tuple[Any, ...]:
        """Key of the work: workload to size, and the data."""
        data = self.data
        return (
            *(self.workload, self.device, self.direction, self.dtype, self.size, self.shape),
            None if data is None else data.digest,
        )
