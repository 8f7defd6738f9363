"""Training: the first losses are those of the float64 reference."""

from __future__ import annotations

from typing import cast

from fwbench.cases.learning import check
from fwbench.errors import ConformanceError
from fwbench.frameworks.learner import Job
from fwbench.grid import Cell
from fwbench.measure.clock import Clock
from fwbench.testing.conformance.adapter import Adapter
from fwbench.workloads.training import Trains

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

_STEPS = 3

_UNKNOWN = "no_such_execution"


def first_losses_are_right(adapter: Adapter, cell: Cell) -> None:
    """Check parameters and first losses of a training against the float64 reference.

    It is checked twice: a reset must bring back the initial weights and a new optimiser.

    Args:
        adapter: the adapter under test.
        cell: the training loop, where and how it runs.

    Raises:
        WrongTraining: they differ.
    """
    with adapter.scope(cell.device, cell.dtype):
        learner = adapter.framework.learner(_job(cell))
        clock = Clock(adapter.timer, adapter.framework.waiter(cell.device))
        for _ in range(2):
            check(learner, clock, _STEPS)


def undeclared_training_is_refused(adapter: Adapter, cell: Cell) -> None:
    """Check that training in an execution that is not declared raises.

    Args:
        adapter: the adapter under test.
        cell: the training loop and where it runs.

    Raises:
        ConformanceError: it trained.
    """
    with adapter.scope(cell.device, cell.dtype):
        job = _job(cell)
        try:
            adapter.framework.learner(Job(**{**vars(job), "execution": _UNKNOWN}))
        except Exception:  # noqa: BLE001 (whichever the adapter raises)
            return
    raise ConformanceError(
        f"learner accepted an execution {_UNKNOWN!r} that the adapter does not declare; it would "
        "train as another one: look the execution up in a table"
    )


def _job(cell: Cell) -> Job:
    training = cast("Trains", cell.workload).at(cell.size)
    return Job(training, cell.device, cell.execution, cell.dtype, cell.batch)
