"""Liars for any harness: a call, what waits for it, and what its result should be."""

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
from fwbench_extras.cheats.honest import Honest
from fwbench_extras.cheats.liar import Liar, leaves
from fwbench_extras.cheats.museum import LIARS

_COTANGENT_SEED = 1

#: What a harness is called with, and whatever it returns: the time that it takes for true.
Harness = Callable[["Exhibit"], Any]


@dataclass(frozen=True)
class Exhibit:
    """The work of one liar, for a harness to time.

    Attributes:
        liar: whose.
        direction: ``forward`` or ``backward``.
        inputs: the arrays that it works on, in NumPy; a harness may change them in place.
        run: one call of the work.
        wait: waits until all work is done, the liar's way.
        read: ``read(returned)`` has the arrays of what a call returned on the host: of
            ``backward`` the result, then the gradients.
        expected: returns what ``read`` should for the inputs as they are now.
    """

    liar: type[Liar]
    direction: str
    inputs: Sequence[NDArray[Any]]
    run: BoundCall
    wait: Callable[[], Any]
    read: Callable[[Any], list[NDArray[Any]]]
    expected: Callable[[], list[NDArray[Any]]]


def exhibit(liar: type[Liar], direction: str = "forward") -> Exhibit:
    """The work of a liar, bound to its inputs.

    Args:
        liar: of an operation.
        direction: one of the liar's.
    """
    framework = liar()
    operation = cast("Operation", liar.workload)
    operands = [x.astype(liar.dtype) for x in operation.operands(liar.size)]
    create = framework.creator("cpu", liar.dtype)
    inputs = operands if operation.creates else [create(x) for x in operands]
    run: BoundCall = partial(create, *inputs)
    expected: BoundCall = partial(np.array, *inputs)
    if not operation.creates:
        run = _bound(framework, operation, inputs, direction)
        expected = _bound(Honest(), operation, inputs, direction)
    return Exhibit(
        liar,
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


def hold_against(
    harness: Harness, liars: Iterable[type[Liar]] = LIARS
) -> dict[tuple[str, str], Exception | None]:
    """Have a harness time liars, one after the other.

    Args:
        harness: times the exhibit that it is called with; raises if something is wrong with it.
        liars: which.

    Returns:
        By the name of a liar and the direction, what the harness raised; None for a liar that got
        away with a number.
    """
    outcomes: dict[tuple[str, str], Exception | None] = {}
    lies = ((liar, direction) for liar in liars for direction in liar.directions)
    for liar, direction in lies:
        if direction != "train":
            with _clock_kept():
                outcomes[liar.name, direction] = _outcome(harness, exhibit(liar, direction))
    return outcomes


def _outcome(harness: Harness, shown: Exhibit) -> Exception | None:
    try:
        harness(shown)
    except Exception as error:  # noqa: BLE001 (whichever the harness raises)
        return error
    return None


@contextmanager
def _clock_kept() -> Iterator[None]:
    """One of the liars replaces it."""
    read = time.perf_counter
    try:
        yield
    finally:
        time.perf_counter = read
