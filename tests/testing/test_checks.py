"""Every conformance check passes a right adapter and fails one that breaks that promise alone."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

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
from support.fake_learner import FakeLearner, Trainer, right_losses
from support.fakes import NEVER_WAITS, SAYS_IT_IS_DONE, variant


def _adapter(framework: FakeFramework, threads: float = 1.0) -> Adapter:
    """The adapter on the framework's own clock, while so many threads are busy."""
    manifest = framework.manifest("Fake CPU")
    clock = framework.clock
    return Adapter(framework, manifest, clock, lambda: threads * clock())


_CELL = fakes.cell(gemm, size=4)
_BFLOAT16 = replace(_CELL, dtype="bfloat16")
_TRAINING = fakes.cell(mlp, direction="train", size=8)


def _creates(change: Callable[[Any], Any]) -> type[FakeFramework]:
    def creator(self: Any, device: str, dtype: str) -> Callable[[Any], Any]:
        create = FakeFramework.creator(self, device, dtype)
        return lambda source: change(create(source))

    return variant(creator=creator)


def _runs(change: Callable[[Any], Any], method: str = "forward") -> type[FakeFramework]:
    """A framework whose bound calls return something else."""

    def bound(self: Any, *arguments: Any) -> Any:
        run = getattr(FakeFramework, method)(self, *arguments)
        return lambda: change(run())

    return variant(**{method: bound})


def _by_variables(choose: Callable[[Sequence[int]], Sequence[int]]) -> type[FakeFramework]:
    """A framework that differentiates by other inputs, or in another order."""

    def backward(
        self: Any, implementation: Any, inputs: Any, variables: Any, *arguments: Any
    ) -> Any:
        chosen = choose(variables)
        return FakeFramework.backward(self, implementation, inputs, chosen, *arguments)

    return variant(backward=backward)


def _placed(device: str, dtype: str = "") -> Callable[..., Any]:
    """A creator for another device, or for bfloat16 in another dtype."""

    def creator(self: Any, requested: str, dtype_name: str) -> Callable[[Any], Any]:
        other = dtype if dtype and dtype_name == "bfloat16" else dtype_name
        return FakeFramework.creator(self, device or requested, other)

    return creator


class OnceRight(FakeFramework):
    """Is right the first time that something runs."""

    def forward(self, *arguments: Any) -> Any:
        run, calls = super().forward(*arguments), itertools.count()
        return lambda: run() + next(calls)


class Resuming(FakeLearner):
    """Goes on where it was, instead of back to the beginning."""

    def reset(self, *, exact: bool) -> None:
        steps = self.steps
        super().reset(exact=exact)
        self.steps = steps


def _devices(*names: str) -> type[FakeFramework]:
    return variant(devices=lambda *_: tuple(Device(name, "Fake 9000") for name in names))


class TrainsAnyhow(Trainer):
    def learner(self, job: Job) -> Any:
        return super().learner(replace(job, execution="eager"))


class Broken(NamedTuple):
    """A check, an adapter that must fail it, and a part of the message."""

    check: Callable[[Adapter], None]
    framework: Callable[[], FakeFramework]
    message: str
    threads: float = 1.0


_CREATION = partial(arrays.creation_copies, device="cpu", dtype="float32")
_VALUES = partial(arrays.values_survive, device="cpu", dtype="float64")
_NARROW = partial(arrays.values_survive, device="cpu", dtype="bfloat16")
_INTEGERS = partial(arrays.integers_survive, device="cpu", dtype="int64")
_ADDRESSES = partial(arrays.addresses_tell_arrays_apart, device="cpu")
_PLACED = partial(arrays.work_is_placed, device="gpu:0")
_DTYPE = partial(arrays.results_have_the_dtype, typed_cell=_CELL)
_RIGHT = partial(work.work_is_right, operation_cell=_CELL)
_ORDER = partial(work.gradients_follow_variables, device="cpu", execution="eager")
_EXECUTION = partial(work.undeclared_execution_is_refused, device="cpu")
_WAITING = partial(work.waiting_waits, cell=_CELL)
_THREADS = partial(work.processor_time_fits_threads, cell=_CELL)
_LOSSES = partial(work.first_losses_are_right, training_cell=_TRAINING)
_TRAINS = partial(work.undeclared_training_is_refused, training_cell=_TRAINING)
_NAMED = arrays.devices_are_named
_JSON = arrays.manifest_survives_json

#: Computes in float32, though in bfloat16 it is told to.
_HALF_NARROW: dict[str, Any] = {"_rounded": lambda self, result: result}
_HALF_GRADIENT = _runs(lambda run: (run[0], [by / 2 for by in run[1]]), "backward")
_PRODUCT_PLUS_1 = {**FakeFramework.operations, "gemm": lambda np: lambda x, y: x @ y + 1.0}

_BROKEN = {
    "view of its source": Broken(_CREATION, lambda: FakeFramework(copies=False), "copying const"),
    "other shape": Broken(_VALUES, _creates(np.ravel), "must keep the shape"),
    "other dtype": Broken(_VALUES, _creates(np.float32), "read back as float32, not float64"),
    "other values": Broken(_VALUES, _creates(np.negative), "values must be rounded to float64"),
    "bfloat16 that is float32": Broken(
        _NARROW,
        variant(**_HALF_NARROW, creator=_placed("", "float32")),
        "bfloat16 cannot represent",
    ),
    "bfloat16 that is 0": Broken(_NARROW, _creates(np.zeros_like), "rounded to bfloat16"),
    "integers that are floats": Broken(_INTEGERS, _creates(np.float64), "must stay integers"),
    "integers that are others": Broken(_INTEGERS, _creates(np.abs), "the same values"),
    "two addresses": Broken(
        _ADDRESSES,
        variant(address=partial(lambda numbers, *_: next(numbers), itertools.count())),
        "the address of an array's first element",
    ),
    "one address": Broken(
        _ADDRESSES,
        variant(address=lambda self, array: 1),
        "the address of an array's first element",
    ),
    "on the CPU": Broken(
        _PLACED,
        variant(creator=_placed("cpu"), watch_memory=lambda self, device: lambda: 0),
        "must place work on the device",
    ),
    "computed wider": Broken(
        _DTYPE, _runs(np.float64), "result of gemm (eager) in float32 was read back as"
    ),
    "computed in float32": Broken(
        partial(arrays.results_have_the_dtype, typed_cell=_BFLOAT16),
        variant(**_HALF_NARROW),
        "wider dtype",
    ),
    "wrong": Broken(_RIGHT, variant(operations=_PRODUCT_PLUS_1), "the result is wrong"),
    "wrong later": Broken(_RIGHT, OnceRight, "the result is wrong"),
    "wrong gradient": Broken(
        partial(work.work_is_right, operation_cell=replace(_CELL, direction="backward")),
        _HALF_GRADIENT,
        "the gradient of input 0 is wrong",
    ),
    "other order": Broken(_ORDER, _by_variables(sorted), "by the inputs (2, 0) of x * x * w"),
    "too many gradients": Broken(
        _ORDER, _by_variables(lambda _: (0, 2)), "one for each, in that order"
    ),
    "too small gradients": Broken(_ORDER, _HALF_GRADIENT, "for the cotangent that is given"),
    "any execution": Broken(
        _EXECUTION,
        variant(_check_execution=lambda self, execution: None),
        "look the execution up in a table",
    ),
    "any device": Broken(
        arrays.undeclared_device_is_refused,
        variant(_check_device=lambda self, device: None),
        "does not list",
    ),
    "waiter that does nothing": Broken(_WAITING, NEVER_WAITS, "waiter does not wait for the work"),
    "no waiter": Broken(_WAITING, SAYS_IT_IS_DONE, "the call does not wait for the work"),
    "waiter of less": Broken(
        _WAITING,
        variant(
            waiter=lambda by, _: lambda: by.clock.spend(max(0, by.clock.idle_s - by.clock()) / 4)
        ),
        "waiter does not wait for the work",
    ),
    "nothing that takes long": Broken(
        partial(work.waiting_waits, cell=replace(_CELL, workload=noop)),
        lambda: FakeFramework(dispatch_s=2.0**-40, work_s=2.0**-40),
        "too short",
    ),
    "more threads": Broken(_THREADS, FakeFramework, "3.0 processors busy", threads=3.0),
    "no CPU": Broken(_NAMED, _devices("gpu:0"), "return cpu first"),
    "other names": Broken(_NAMED, _devices("cpu", "cuda"), "cpu, cuda"),
    "a device twice": Broken(_NAMED, _devices("cpu", "cpu"), "each once"),
    "bytes in manifest": Broken(
        _JSON, variant(build=lambda self: {"libraries": b"blas"}), "cannot be sent as JSON"
    ),
    "tuple in manifest": Broken(
        _JSON, variant(build=lambda self: {"libraries": ("blas",)}), "the manifest's build is"
    ),
    "other losses": Broken(
        _LOSSES,
        lambda: Trainer(check_losses=lambda job: [x + 1e-3 for x in right_losses(job)]),
        "at step 1 the loss is",
    ),
    "other model": Broken(_LOSSES, lambda: Trainer(too_many=1), "the model trains"),
    "any training": Broken(_TRAINS, TrainsAnyhow, "it would train as another one"),
    "reset that does not": Broken(_LOSSES, lambda: Trainer(kind=Resuming), "at step 1 the loss is"),
}


@pytest.mark.parametrize("broken", _BROKEN.values(), ids=_BROKEN)
def test_a_broken_promise_is_noticed(broken: Broken) -> None:
    """The check that is for it fails, and the message says what to do."""
    with pytest.raises(FwbenchError) as caught:
        broken.check(_adapter(broken.framework(), broken.threads))
    assert broken.message in str(caught.value)


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
    assert work.longest([operation for operation in OPERATIONS if operation.representative]) is gemm
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
