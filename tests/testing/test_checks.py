"""Every conformance check passes a right adapter and fails one that breaks that promise alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from fwbench.errors import FwbenchError
from fwbench.frameworks.learner import Job
from fwbench.terms.manifest import Absent, Device
from fwbench.testing import FakeFramework, to_bfloat16
from fwbench.testing.conformance import arrays, work
from fwbench.testing.conformance.arrays import Adapter
from fwbench.workloads import OPERATIONS, dot, gemm, mlp, noop, sigmoid
from support import fakes
from support.fake_learner import Trainer, right_losses


def _adapter(framework: FakeFramework, threads: float = 1.0) -> Adapter:
    """The adapter on the framework's own clock, while so many threads are busy."""
    manifest = framework.manifest("Fake CPU")
    clock = framework.clock
    return Adapter(framework, manifest, clock, lambda: threads * clock())


_CELL = fakes.cell(gemm, size=4)
_BFLOAT16 = replace(_CELL, dtype="bfloat16")
_TRAINING = fakes.cell(mlp, direction="train", size=8)


class Alias(FakeFramework):
    """Creates views."""

    copies = False


def _creates(change: Callable[[Any], Any]) -> type[FakeFramework]:
    """One whose created arrays are changed."""

    class Changed(FakeFramework):
        def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
            create = super().creator(device, dtype)
            return lambda source: change(create(source))

    return Changed


class Wide(FakeFramework):
    """Computes in float64 in every dtype."""

    def forward(self, implementation: Any, inputs: Sequence[Any], execution: str) -> Any:
        run = super().forward(implementation, inputs, execution)
        return lambda: run().astype(np.float64)


class NotNarrow(FakeFramework):
    """Declares bfloat16, and computes in float32."""

    def _rounded(self, result: Any) -> Any:
        return result

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        return super().creator(device, "float32" if dtype == "bfloat16" else dtype)


class HalfNarrow(FakeFramework):
    """Creates arrays in bfloat16 and computes in float32."""

    def _rounded(self, result: Any) -> Any:
        return result


class Forgetful(FakeFramework):
    """Has an address for every question."""

    def address(self, array: Any) -> int:
        self.thread_count += 1
        return self.thread_count


class SameAddress(FakeFramework):
    """Has one address for everything."""

    def address(self, array: Any) -> int:
        return 1


class Misplaced(FakeFramework):
    """Places everything on the CPU, and watches the GPU's memory."""

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        return super().creator("cpu", dtype)

    def watch_memory(self, device: str) -> Callable[[], int]:
        return lambda: 0


class Wrong(FakeFramework):
    """Has a product of its own."""

    operations: ClassVar = {
        **FakeFramework.operations,
        "gemm": lambda np: lambda x, y: x @ y + 1.0,
    }


class OnceRight(FakeFramework):
    """Is right the first time that something runs."""

    def forward(self, implementation: Any, inputs: Sequence[Any], execution: str) -> Any:
        run, calls = super().forward(implementation, inputs, execution), iter(range(9))
        return lambda: run() + next(calls)


class HalfGradient(FakeFramework):
    """Has gradients that are too small."""

    def backward(self, *arguments: Any) -> Any:
        run = super().backward(*arguments)

        def halved() -> Any:
            result, gradients = run()
            return result, [gradient / 2 for gradient in gradients]

        return halved


class Sorted(FakeFramework):
    """Returns gradients in the order of the inputs."""

    def backward(
        self, implementation: Any, inputs: Any, variables: Any, cotangent: Any, execution: str
    ) -> Any:
        return super().backward(implementation, inputs, sorted(variables), cotangent, execution)


class EveryGradient(FakeFramework):
    """Returns a gradient for each floating-point input, requested or not."""

    def backward(
        self, implementation: Any, inputs: Any, variables: Any, cotangent: Any, execution: str
    ) -> Any:
        return super().backward(implementation, inputs, (0, 2), cotangent, execution)


class AnyExecution(FakeFramework):
    """Runs what it does not know eagerly."""

    def _check_execution(self, execution: str) -> None:
        pass


class AnyDevice(FakeFramework):
    """Places work for a device that is not there somewhere else."""

    def _check_device(self, device: str) -> None:
        pass


class NeverWaits(FakeFramework):
    """Has a waiter that returns at once."""

    def waiter(self, device: str) -> Callable[[], Any]:
        return lambda: None


class SaysItIsDone(FakeFramework):
    """Is asynchronous, and has no waiter."""

    def waiter(self, device: str) -> None:
        return None


class WaitsForLess(FakeFramework):
    """Waits for a quarter of the work."""

    def waiter(self, device: str) -> Callable[[], Any]:
        return partial(self._wait, self.clock)

    @staticmethod
    def _wait(clock: Any) -> None:
        clock.spend(max(0.0, clock.idle_s - clock()) / 4)


@dataclass
class Instant(FakeFramework):
    """Takes no time that could be measured."""

    dispatch_s: float = 2.0**-40
    work_s: float = 2.0**-40


def _devices(*names: str) -> type[FakeFramework]:
    """One that has these devices."""

    class Named(FakeFramework):
        def devices(self, cpu_model: str) -> tuple[Device, ...]:
            return tuple(Device(name, "Fake 9000") for name in names)

    return Named


class BytesInBuild(FakeFramework):
    """Declares what JSON cannot hold."""

    def build(self) -> dict[str, Any]:
        return {"libraries": b"blas"}


class TupleInBuild(FakeFramework):
    """Declares what JSON changes."""

    def build(self) -> dict[str, Any]:
        return {"libraries": ("blas",)}


def _losses(job: Any) -> Sequence[float]:
    return [loss + 1e-3 for loss in right_losses(job)]


class Resumes(Trainer):
    """Goes on where it was, instead of back to the beginning."""

    def learner(self, job: Any) -> Any:
        learner = super().learner(job)
        reset = learner.reset

        def again(*, exact: bool) -> None:
            steps = learner.steps
            reset(exact=exact)
            learner.steps = steps

        learner.reset = again  # type: ignore[method-assign]
        return learner


class TrainsAnyhow(Trainer):
    """Trains eagerly in every execution."""

    def learner(self, job: Job) -> Any:
        return super().learner(replace(job, execution="eager"))


class Broken(NamedTuple):
    """A check, an adapter that must fail it, and a part of the message."""

    check: Callable[[Adapter], None]
    framework: Callable[[], FakeFramework]
    said: str
    threads: float = 1.0


_CREATION = partial(arrays.creation_copies, device="cpu", dtype="float32")
_VALUES = partial(arrays.values_survive, device="cpu", dtype="float64")
_NARROW = partial(arrays.values_survive, device="cpu", dtype="bfloat16")
_INTEGERS = partial(arrays.integers_survive, device="cpu", dtype="int64")
_ADDRESSES = partial(arrays.addresses_tell_arrays_apart, device="cpu")
_PLACED = partial(arrays.work_is_placed, device="gpu:0")
_DTYPE = partial(arrays.results_have_the_dtype, cell=_CELL)
_RIGHT = partial(work.work_is_right, cell=_CELL)
_ORDER = partial(work.gradients_follow_variables, device="cpu", execution="eager")
_EXECUTION = partial(work.undeclared_execution_is_refused, device="cpu")
_WAITING = partial(work.waiting_waits, cell=_CELL)
_THREADS = partial(work.processor_time_fits_threads, cell=_CELL)
_LOSSES = partial(work.first_losses_are_right, cell=_TRAINING)
_TRAINS = partial(work.undeclared_training_is_refused, cell=_TRAINING)

_BROKEN = {
    "view of its source": Broken(_CREATION, lambda: FakeFramework(copies=False), "copying const"),
    "other shape": Broken(_VALUES, _creates(np.ravel), "must keep the shape"),
    "other dtype": Broken(_VALUES, _creates(np.float32), "read back as float32, not float64"),
    "other values": Broken(_VALUES, _creates(np.negative), "values must be rounded to float64"),
    "bfloat16 that is float32": Broken(_NARROW, NotNarrow, "bfloat16 cannot represent"),
    "bfloat16 that is 0": Broken(_NARROW, _creates(np.zeros_like), "rounded to bfloat16"),
    "integers that are floats": Broken(_INTEGERS, _creates(np.float64), "must stay integers"),
    "integers that are others": Broken(_INTEGERS, _creates(np.abs), "the same values"),
    "two addresses": Broken(_ADDRESSES, Forgetful, "the address of an array's first element"),
    "one address": Broken(_ADDRESSES, SameAddress, "the address of an array's first element"),
    "on the CPU": Broken(_PLACED, Misplaced, "must place work on the device"),
    "computed wider": Broken(_DTYPE, Wide, "result of gemm (eager) in float32 was read back as"),
    "computed in float32": Broken(
        partial(arrays.results_have_the_dtype, cell=_BFLOAT16), HalfNarrow, "wider dtype"
    ),
    "wrong": Broken(_RIGHT, Wrong, "the result is wrong"),
    "wrong later": Broken(_RIGHT, OnceRight, "the result is wrong"),
    "wrong gradient": Broken(
        partial(work.work_is_right, cell=replace(_CELL, direction="backward")),
        HalfGradient,
        "the gradient of input 0 is wrong",
    ),
    "other order": Broken(_ORDER, Sorted, "by the inputs (2, 0) of x * x * w"),
    "too many gradients": Broken(_ORDER, EveryGradient, "one for each, in that order"),
    "too small gradients": Broken(_ORDER, HalfGradient, "for the cotangent that is given"),
    "any execution": Broken(_EXECUTION, AnyExecution, "look the execution up in a table"),
    "any device": Broken(arrays.undeclared_device_is_refused, AnyDevice, "does not list"),
    "waiter that does nothing": Broken(_WAITING, NeverWaits, "waiter does not wait for the work"),
    "no waiter": Broken(_WAITING, SaysItIsDone, "the call does not wait for the work"),
    "waiter of less": Broken(_WAITING, WaitsForLess, "waiter does not wait for the work"),
    "nothing that takes long": Broken(
        partial(work.waiting_waits, cell=replace(_CELL, workload=noop)), Instant, "too short"
    ),
    "more threads": Broken(_THREADS, FakeFramework, "3.0 processors busy", threads=3.0),
    "no CPU": Broken(arrays.devices_are_named, _devices("gpu:0"), "return cpu first"),
    "other names": Broken(arrays.devices_are_named, _devices("cpu", "cuda"), "cpu, cuda"),
    "a device twice": Broken(arrays.devices_are_named, _devices("cpu", "cpu"), "each once"),
    "bytes in manifest": Broken(
        arrays.manifest_survives_json, BytesInBuild, "cannot be sent as JSON"
    ),
    "tuple in manifest": Broken(
        arrays.manifest_survives_json, TupleInBuild, "the manifest's build is"
    ),
    "other losses": Broken(_LOSSES, lambda: Trainer(check_losses=_losses), "at step 1 the loss is"),
    "other model": Broken(_LOSSES, lambda: Trainer(too_many=1), "the model trains"),
    "any training": Broken(_TRAINS, TrainsAnyhow, "it would train as another one"),
    "reset that does not": Broken(_LOSSES, Resumes, "at step 1 the loss is"),
}


@pytest.mark.parametrize("broken", _BROKEN.values(), ids=_BROKEN)
def test_a_broken_promise_is_noticed(broken: Broken) -> None:
    """The check that is for it fails, and the message says what to do."""
    with pytest.raises(FwbenchError) as caught:
        broken.check(_adapter(broken.framework(), broken.threads))
    assert broken.said in str(caught.value)


@pytest.mark.parametrize("check", dict.fromkeys(broken.check for broken in _BROKEN.values()))
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_right_adapter_passes(check: Callable[[Adapter], None], asynchronous: bool) -> None:
    """Every check passes the fake framework, whether it has something to wait for or not."""
    check(_adapter(Trainer(asynchronous=asynchronous)))


def test_what_the_contract_allows_is_no_failure() -> None:
    """No address, unknown threads, no watched memory, memory in use before: all allowed."""
    _ADDRESSES(_adapter(FakeFramework(addressable=False)))
    _PLACED(_adapter(FakeFramework(placed_bytes={"gpu:0": 1 << 30})))
    arrays.work_is_placed(_adapter(FakeFramework()), "cpu")
    unknown = FakeFramework()
    unknown.threads = lambda: None  # type: ignore[assignment,method-assign,return-value]
    _THREADS(_adapter(unknown, threads=64.0))


def test_threads_of_new_processes() -> None:
    """A manifest must have the requested threads, or none; an absent framework is a failure."""
    right = fakes.manifest(threads=1)
    arrays.threads_are_set({1: right, 2: replace(right, threads=None)})
    with pytest.raises(FwbenchError, match="set to 2 threads and reports 1"):
        arrays.threads_are_set({1: right, 2: right})
    with pytest.raises(FwbenchError, match="--fw-threads=2: computes with 1 threads; choose"):
        arrays.threads_are_set({2: Absent("fake", "computes with 1 threads", "choose")})


def test_long_work_grows() -> None:
    """Sizes grow first, then calls are repeated, until the work takes long enough to tell."""
    fake = FakeFramework(dispatch_s=2.0**-20, work_s=2.0**-9)
    work.waiting_waits(_adapter(fake), replace(_CELL, workload=noop, size=1))
    fake = FakeFramework(dispatch_s=2.0**-20, work_s=2.0**-9)
    fake.waiter = lambda device: lambda: None  # type: ignore[method-assign]
    with pytest.raises(FwbenchError, match="does not wait"):
        work.waiting_waits(_adapter(fake), replace(_CELL, workload=noop, size=1))


def test_the_longest_operation() -> None:
    """The one with the most arithmetic; without any it is as good as any other."""
    assert work.longest([of for of in OPERATIONS if of.representative]) is gemm
    assert work.longest([noop, sigmoid, dot]) is sigmoid
    assert work.longest([noop]) is noop


def test_scopes_are_left() -> None:
    """A check enters the scope of its device and dtype, and leaves it."""
    fake = FakeFramework()
    _NARROW(_adapter(fake))
    assert fake.entered is None
    assert {dtype for _, dtype in fake.created_from} == {"bfloat16"}
    assert to_bfloat16(np.float32(1.5)) == 1.5
    with nullcontext():
        assert fake.called == []
