"""Checks of work: results, gradients, first losses, waiting and threads."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.case import bind
from fwbench.cases.learning import check
from fwbench.errors import WrongResult
from fwbench.frameworks.learner import Job
from fwbench.measure.clock import Clock, repeated
from fwbench.terms.presets import Size
from fwbench.testing.conformance.arrays import Adapter, check_refused, failure
from fwbench.workloads.grid import Cell
from fwbench.workloads.operation import Operation
from fwbench.workloads.training import Trains

_UNDECLARED = "no_such_execution"

#: Steps of training whose losses are compared.
_CHECKED_STEPS = 3


def work_is_right(adapter: Adapter, operation_cell: Cell) -> None:
    """Check a result against the NumPy reference, or a gradient against central differences.

    The bound call is made again, and on changed inputs: its result must not depend on
    earlier calls.
    """
    with adapter.scope(operation_cell.device, operation_cell.dtype):
        work = bind(operation_cell, adapter.framework)
        work.verify(work.run())
        work.verify_again(work.run())


def gradients_follow_variables(adapter: Adapter, device: str, execution: str) -> None:
    """Check that the result comes with one gradient for each of ``variables``, in their order.

    The function is ``x * x * w``, written with Python's operators; an integer input stands between
    ``x`` and ``w`` and is never differentiated by.
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
            raise failure("gradients_form", variables=variables, form=_form(returned))
    for position, array in zip((None, *variables), (result, *gradients), strict=True):
        actual = adapter.read(array)
        what = "the result" if position is None else f"that by input {position}"
        try:
            verify.compare(actual, expected[position], verify.TOLERANCES["float32"])
        except WrongResult as error:
            found = {"actual": actual, "expected": expected[position]}
            raise failure("gradients", variables=variables, what=what, **found) from error


def _form(returned: Any) -> str:
    """The form of a call's result, without its numbers."""
    if not isinstance(returned, list | tuple):
        return f"a {type(returned).__name__}"
    return f"({', '.join(map(_form, returned))})"


def undeclared_execution_is_refused(adapter: Adapter, device: str) -> None:
    """Check that an execution that is not declared raises: it must not run as another one."""
    forward = adapter.framework.forward
    with adapter.scope(device):
        inputs = [adapter.create(np.ones(3, dtype=np.float32), device, "float32")]
        check_refused(
            lambda: adapter.read(forward(lambda _: lambda x: x * x, inputs, _UNDECLARED)()),
            failure("undeclared_execution", execution=_UNDECLARED),
        )


def first_losses_are_right(adapter: Adapter, training_cell: Cell) -> None:
    """Check parameters and first losses of a training against the float64 reference.

    It is checked twice: a reset must bring back the initial weights and a new optimiser.
    """
    with adapter.scope(training_cell.device, training_cell.dtype):
        learner = adapter.framework.learner(_job(training_cell))
        for _ in range(2):
            check(learner, _CHECKED_STEPS)


def undeclared_training_is_refused(adapter: Adapter, training_cell: Cell) -> None:
    """Check that training in an execution that is not declared raises."""
    with adapter.scope(training_cell.device, training_cell.dtype):
        check_refused(
            lambda: adapter.framework.learner(_job(replace(training_cell, execution=_UNDECLARED))),
            failure("undeclared_training", execution=_UNDECLARED),
        )


def _job(cell: Cell) -> Job:
    training = cast("Trains", cell.workload).at(cell.size)
    return Job(training, cell.device, cell.execution, cell.dtype, cell.batch)


#: The shortest work, in seconds, that tells waiting from noise.
_LEAST_S = 0.03

#: Calls of a size that take this part of it are repeated: the next size may take far longer.
_REPEATED = 16

_MOST_CALLS = 1 << 14

#: The shortest of several times counts, because other processes only ever make times longer.
_TRIES = 3

#: A wait that does not wait shows itself in one of so many, however busy the machine.
_WAITS = 10

#: Reading a result takes up to this share of computing and reading it; work that remains after a
#: wait that did not wait takes more, and such a wait is over before this share has passed.
_READING = 0.5

#: Processor time that is not the computing threads': pytest's and the framework's housekeeping.
_SPARE_THREADS = 0.5


def longest(operations: Iterable[Operation]) -> Operation:
    """Choose the operation with the most arithmetic in its largest size."""

    def flops(operation: Operation) -> float:
        cost = operation.cost_of("forward", _sizes(operation)[-1])
        return cost.flops if cost else 0.0

    return max(operations, key=flops)


def waiting_waits(adapter: Adapter, cell: Cell) -> None:
    """Check that nothing is left to compute when the waiter has returned.

    Long work is started, the waiter is called, and the time to read the result is compared with
    the time of the work. The same holds for an adapter without a waiter, whose calls return when
    their work is done.

    One try is proof, because a busy machine cannot bring it about: it makes no wait shorter. It
    can hide it, as whoever is kept from reading finds the work done meanwhile; hence many.
    """
    with adapter.scope(cell.device, cell.dtype):
        start = _long_work(adapter, cell)
        whole_s = min(_whole_s(adapter, start) for _ in range(_TRIES))
        tries = [_waiting_and_reading_s(adapter, start, cell.device) for _ in range(_WAITS)]
    late_s = [read_s for waited_s, read_s in tries if waited_s < _READING * whole_s < read_s]
    if not late_s:
        return
    waiter = "waiter" if adapter.framework.waiter(cell.device) else "the call"
    case = {"workload": cell.workload.name, "device": cell.device, "execution": cell.execution}
    raise failure("waiting", whole_s=whole_s, late_s=min(late_s), waiter=waiter, **case)


def processor_time_fits_threads(adapter: Adapter, cell: Cell) -> None:
    """Check that no more threads work than the adapter says."""
    threads = adapter.framework.threads()
    if threads is None:  # which the contract allows
        return
    with adapter.scope(cell.device, cell.dtype):
        start = _long_work(adapter, cell)
        used = min(_threads_used(adapter, start) for _ in range(_TRIES))
    if used > threads + _SPARE_THREADS:
        raise failure("processors", threads=threads, workload=cell.workload.name, used=used)


def _sizes(operation: Operation) -> list[Size]:
    sizes = operation.by_preset
    return sorted({*sizes.quick, *sizes.full}, key=operation.number_of)


def _long_work(adapter: Adapter, cell: Cell) -> Callable[[], Any]:
    """A call that starts long work and returns its result: a larger size, and then more calls."""
    assert isinstance(cell.workload, Operation)  # noqa: S101 (as longest returns them)
    for size in _sizes(cell.workload):
        run = bind(replace(cell, size=size), adapter.framework).run
        adapter.read(run())  # compilation is not in the times
        # Of small ones so many take so long that submitting them takes as long as computing them.
        if min(_whole_s(adapter, run) for _ in range(_WAITS)) >= _LEAST_S / _REPEATED:
            break
    calls = 1
    while calls <= _MOST_CALLS:
        start = repeated(run, calls)
        if _whole_s(adapter, start) >= _LEAST_S:
            return start
        calls *= 2
    name = cell.workload.name
    raise failure("too_short", calls=_MOST_CALLS, workload=name, least_s=_LEAST_S)


def _whole_s(adapter: Adapter, start: Callable[[], Any]) -> float:
    """Seconds to compute and to read the result."""
    return Clock(adapter.timer).time(lambda: adapter.read(start()))[0]


def _waiting_and_reading_s(
    adapter: Adapter, start: Callable[[], Any], device: str
) -> tuple[float, float]:
    """Seconds to start the work and to wait for it, and then to read its result."""

    def waited() -> Any:
        result = start()
        adapter.finish(device)
        return result

    clock = Clock(adapter.timer)
    waited_s, result = clock.time(waited)
    return waited_s, clock.time(lambda: adapter.read(result))[0]


def _threads_used(adapter: Adapter, start: Callable[[], Any]) -> float:
    """Processors kept busy, on average, while the work was computed."""
    before_s = adapter.processor_timer()
    wall_s = _whole_s(adapter, start)
    return (adapter.processor_timer() - before_s) / wall_s
