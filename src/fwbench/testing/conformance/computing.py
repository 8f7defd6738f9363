"""Checks of computing and training: results, gradients, first losses, undeclared executions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.case import bind
from fwbench.cases.learning import check
from fwbench.errors import ConformanceError, WrongResult
from fwbench.frameworks.learner import Job
from fwbench.measure.clock import Clock
from fwbench.testing.conformance.declarations import Adapter
from fwbench.workloads.grid import Cell
from fwbench.workloads.training import Trains

_UNDECLARED = "no_such_execution"

#: Steps of training whose losses are compared.
_CHECKED_STEPS = 3


def work_is_right(adapter: Adapter, cell: Cell) -> None:
    """Check a result against the NumPy reference, or a gradient against central differences.

    The bound call is made again, and on changed inputs: its result must not depend on
    earlier calls.

    Raises:
        VerificationError: it is not right.
    """
    with adapter.scope(cell.device, cell.dtype):
        work = bind(cell, adapter.framework)
        work.verify(work.run())
        work.verify_again(work.run())


def gradients_follow_variables(adapter: Adapter, device: str, execution: str) -> None:
    """Check that the result comes with one gradient for each of ``variables``, in their order.

    The function is ``x * x * w``, written with Python's operators; an integer input stands between
    ``x`` and ``w`` and is never differentiated by.

    Raises:
        ConformanceError: the result or a gradient is missing or wrong, or there is one too many.
    """
    x, w, g = np.array([[1.0, 2.0, -3.0], [0.5, 4.0, 1.0], [2.0, -2.0, 0.25]], dtype=np.float32)
    expected = {None: x * x * w, 0: g * 2 * x * w, 2: g * x * x}
    with adapter.scope(device):
        index = adapter.create(np.array([7, 8, 9], dtype=np.int32), device, "int32")
        for variables in ((0, 2), (2,), (0,), (2, 0)):
            inputs = [adapter.create(x, device, "float32"), index]
            inputs.append(adapter.create(w, device, "float32"))
            cotangent = adapter.create(g, device, "float32")
            run = adapter.framework.backward(_product, inputs, variables, cotangent, execution)
            _check_gradients(adapter, run, variables, expected)


def _product(_: Any) -> Callable[..., Any]:
    return lambda x, _index, w: x * x * w


def _check_gradients(
    adapter: Adapter,
    run: Callable[[], Any],
    variables: Sequence[int],
    expected: dict[int | None, NDArray[Any]],
) -> None:
    """Compare result and gradients; the result is expected by None."""
    match returned := run():
        case [result, [*gradients]] if len(gradients) == len(variables):
            pass
        case _:
            raise ConformanceError(
                f"backward was called for the gradients by the inputs {variables} and its call "
                f"returned {_form(returned)}; return the result and a list of gradients, one for "
                "each, in that order"
            )
    for position, array in zip((None, *variables), (result, *gradients), strict=True):
        actual = adapter.read(array)
        what = "the result" if position is None else f"that by input {position}"
        try:
            verify.result(actual, expected[position], verify.TOLERANCES["float32"])
        except WrongResult as error:
            raise ConformanceError(
                f"backward was called for the gradients by the inputs {variables} of x * x * w, "
                f"and {what} is {actual}, not {expected[position]}; return the result, and one "
                "gradient for each of the variables, in their order, for the cotangent that is "
                "given"
            ) from error


def _form(returned: Any) -> str:
    """The form of a call's result, without its numbers."""
    if not isinstance(returned, list | tuple):
        return f"a {type(returned).__name__}"
    return f"({', '.join(map(_form, returned))})"


def undeclared_execution_is_refused(adapter: Adapter, device: str) -> None:
    """Check that an execution that is not declared raises: it must not run as another one.

    Raises:
        ConformanceError: it ran.
    """
    numbers = np.ones(3, dtype=np.float32)
    with adapter.scope(device):
        inputs = [adapter.create(numbers, device, "float32")]
        try:
            adapter.read(adapter.framework.forward(_square, inputs, _UNDECLARED)())
        except Exception:  # noqa: BLE001 (adapters differ in the exceptions that they raise)
            return
    raise ConformanceError(
        f"forward ran an execution {_UNDECLARED!r} that the adapter does not declare; look the "
        "execution up in a table, so that one that is not in it raises KeyError"
    )


def _square(_: Any) -> Callable[..., Any]:
    return lambda x: x * x


def first_losses_are_right(adapter: Adapter, cell: Cell) -> None:
    """Check parameters and first losses of a training against the float64 reference.

    It is checked twice: a reset must bring back the initial weights and a new optimiser.

    Raises:
        WrongTraining: they differ.
    """
    with adapter.scope(cell.device, cell.dtype):
        learner = adapter.framework.learner(_job(cell))
        clock = Clock(adapter.timer, adapter.framework.waiter(cell.device))
        for _ in range(2):
            check(learner, clock, _CHECKED_STEPS)


def undeclared_training_is_refused(adapter: Adapter, cell: Cell) -> None:
    """Check that training in an execution that is not declared raises.

    Raises:
        ConformanceError: it trained.
    """
    with adapter.scope(cell.device, cell.dtype):
        job = _job(cell)
        try:
            adapter.framework.learner(Job(**{**vars(job), "execution": _UNDECLARED}))
        except Exception:  # noqa: BLE001 (adapters differ in the exceptions that they raise)
            return
    raise ConformanceError(
        f"learner accepted an execution {_UNDECLARED!r} that the adapter does not declare; it "
        "would train as another one: look the execution up in a table"
    )


def _job(cell: Cell) -> Job:
    training = cast("Trains", cell.workload).at(cell.size)
    return Job(training, cell.device, cell.execution, cell.dtype, cell.batch)
