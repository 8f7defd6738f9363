"""Cheats for any harness: a call, how to wait for it, and the result that it should have."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.contract import BoundCall, Framework
from fwbench.workloads.operation import Operation
from fwbench_extras.cheats.cheat import Cheat, leaves
from fwbench_extras.cheats.honest import Honest
from fwbench_extras.cheats.table import CHEATS

_COTANGENT_SEED = 1


@dataclass(frozen=True)
class BoundCheat:
    """The work of one cheat, bound to its inputs, for a harness to time.

    Attributes:
        cheat: the row of the table.
        direction: ``forward`` or ``backward``.
        inputs: the arrays that it works on, in NumPy; a harness may change them in place.
        run: one call of the work.
        wait: waits until all work is done, the cheat's way.
        read: ``read(returned)`` has the arrays of a call's result on the host: of ``backward`` the
            result, then the gradients.
        expected: returns the arrays that ``read`` should for the inputs as they are now.
    """

    cheat: Cheat
    direction: str
    inputs: Sequence[NDArray[Any]]
    run: BoundCall
    wait: Callable[[], Any]
    read: Callable[[Any], list[NDArray[Any]]]
    expected: Callable[[], list[NDArray[Any]]]


#: Times a cheat; returns anything, such as the seconds that it takes for true.
Harness = Callable[[BoundCheat], Any]


def check_harness(
    harness: Harness, cheats: Iterable[Cheat] = CHEATS
) -> dict[tuple[str, str], Exception | None]:
    """Have a harness time cheats, one after the other.

    Args:
        harness: times the cheat that it is called with; raises if something is wrong with it.

    Returns:
        By the name of a cheat and the direction, the exception that the harness raised; None for a
        cheat that got away with a number.
    """
    outcomes: dict[tuple[str, str], Exception | None] = {}
    for cheat in cheats:
        for direction in cheat.directions:
            if _has_result(cheat, direction):
                with _restored_clock():
                    outcomes[cheat.name, direction] = _outcome(harness, bind(cheat, direction))
    return outcomes


def _has_result(cheat: Cheat, direction: str) -> bool:
    """True if there is one right result: not of a training, in place, or of random numbers."""
    if direction == "train":
        return False
    operation = cast("Operation", cheat.workload)
    return not operation.updates and operation.moments is None


def bind(cheat: Cheat, direction: str = "forward") -> BoundCheat:
    """Bind the work of a cheat to its inputs."""
    framework = cheat.framework()
    operation = cast("Operation", cheat.workload)
    operands = [x.astype(cheat.dtype) for x in operation.operands(cheat.size)]
    create = framework.creator("cpu", cheat.dtype)
    inputs = operands if operation.creates else [create(x) for x in operands]
    run: BoundCall = partial(create, *inputs)
    expected: BoundCall = partial(np.array, *inputs)
    if not operation.creates:
        run = _bound(framework, operation, inputs, direction)
        expected = _bound(Honest(), operation, inputs, direction)
    return BoundCheat(
        cheat,
        direction,
        inputs,
        run,
        framework.waiter("cpu") or _no_wait,
        lambda returned: [framework.to_numpy(array) for array in leaves(returned)],
        lambda: leaves(expected()),
    )


def _no_wait() -> None:
    pass


def _bound(
    framework: Framework, operation: Operation, inputs: Sequence[NDArray[Any]], direction: str
) -> BoundCall:
    implementation = framework.implementation(operation.name)
    if direction == "forward":
        return framework.forward(implementation, inputs, "eager")
    shape = np.shape(operation.reference(*inputs))
    cotangent = np.random.default_rng(_COTANGENT_SEED).standard_normal(shape)
    variables = range(len(inputs))
    cotangent = cotangent.astype(inputs[0].dtype)
    return framework.backward(implementation, inputs, variables, cotangent, "eager")


def _outcome(harness: Harness, bound: BoundCheat) -> Exception | None:
    try:
        harness(bound)
    except Exception as error:  # noqa: BLE001 (a harness may raise any)
        return error
    return None


@contextmanager
def _restored_clock() -> Iterator[None]:
    """One of the cheats replaces it."""
    read = time.perf_counter
    try:
        yield
    finally:
        time.perf_counter = read
