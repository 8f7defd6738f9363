"""Parameters of the conformance tests: the framework that ``--fw`` names, and its cells."""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest

from fwbench.errors import FrameworkUnavailable, FwbenchError, UsageError, unknown
from fwbench.frameworks import registry
from fwbench.machine import cpu_model, thread_variables
from fwbench.options.options import Selection
from fwbench.plugin.options import from_config
from fwbench.testing.conformance import work
from fwbench.testing.conformance.arrays import Adapter, requested_threads
from fwbench.workloads import OPERATIONS, grid, mlp, sigmoid
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Workload

#: Some of every family; and sigmoid, which small adapters have if nothing else: without it nothing
#: would show that their waiters wait.
_CHECKED = [
    operation for operation in OPERATIONS if operation.representative or operation is sigmoid
]


class Subject:
    """The framework under test and the cells of the grid in which it is checked."""

    def __init__(self, config: pytest.Config) -> None:
        options = from_config(config)
        self._selection = options.requested.over(options.configured)
        name = _name(self._selection)
        # One thread shows what more would hide: that a framework uses all there are.
        self.adapter = _load(name, requested_threads(config))
        grid.check(self._selection, {name: self.manifest}, {})

    @property
    def manifest(self) -> Any:
        """The manifest of the framework under test."""
        return self.adapter.manifest

    @cached_property
    def devices(self) -> Sequence[str]:
        """The devices to check: the requested ones, or all."""
        return self._selection.devices or [device.name for device in self.manifest.devices]

    @cached_property
    def dtypes(self) -> Sequence[str]:
        """The dtypes to check: the requested ones, or all."""
        return self._selection.dtypes or self.manifest.dtypes

    @cached_property
    def executions(self) -> Sequence[str]:
        """The executions to check: the requested ones, or all but those on request."""
        on_request = self.manifest.on_request
        by_default = [name for name in self.manifest.executions if name not in on_request]
        return self._selection.executions or by_default

    def operations(self) -> Iterator[grid.Cell]:
        """Some of every family in the executions and directions that they have, at their smallest.

        They show mistakes of an adapter; those of a single operation are found by
        ``pytest benchmarks --benchmark-disable --fw-family all``.
        """
        for cell in self._cells(_CHECKED):
            assert isinstance(cell.workload, Operation)  # noqa: S101 (as all of them are)
            derived, compiled = cell.direction == "backward", cell.execution != "eager"
            if derived <= cell.workload.differentiable and compiled <= cell.workload.compilable:
                yield cell

    def typed(self) -> Iterator[grid.Cell]:
        """One operation in every execution and dtype."""
        selection = {"dtypes": tuple(self.dtypes), "directions": ("forward",)}
        yield from self._cells(self._computed()[:1], **selection)

    def long(self) -> Iterator[grid.Cell]:
        """An operation that can take long, in every execution."""
        computed = self._computed()
        if computed:
            yield from self._cells([work.longest(computed)], directions=("forward",))

    def trainings(self) -> Iterator[grid.Cell]:
        """A training loop in every execution, and in every dtype with the first execution."""
        yield from self._cells([mlp])
        first = self.manifest.training_executions[:1]
        other_dtypes = tuple(dtype for dtype in self.manifest.training_dtypes if dtype != "float32")
        if first and other_dtypes and self._selection.dtypes is self._selection.executions is None:
            yield from self._cells([mlp], dtypes=other_dtypes, executions=first)

    def _computed(self) -> list[Operation]:
        known = self.manifest.operations
        return [operation for operation in _CHECKED if operation.name in known]

    def _cells(self, workloads: Iterable[Workload], **selection: Any) -> Iterator[grid.Cell]:
        requested = replace(self._selection, **selection)
        # As where nothing is timed: the smallest size, both directions, generated data.
        more = grid.GridRequest(verify_only=True)
        return grid.cells(workloads, requested, {self.manifest.name: self.manifest}, {}, more)


#: By the name of a test's parameter, its values; those of a cell are of this method.
_CELLS = {
    "operation_cell": Subject.operations,
    "typed_cell": Subject.typed,
    "long_cell": Subject.long,
    "training_cell": Subject.trainings,
}
_VALUES = ("device", "dtype", "execution")

_SUBJECT = pytest.StashKey[Subject | UsageError]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrise a test with what the framework declares."""
    subject = _subject(metafunc.config)
    for name in metafunc.fixturenames:
        if name in _CELLS:
            cells = [] if subject is None else _CELLS[name](subject)
            metafunc.parametrize(name, [_parameter(cell) for cell in cells])
        elif name in _VALUES:
            metafunc.parametrize(name, getattr(subject, f"{name}s", []))


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """Refuse a framework that cannot be checked, now that pytest shows it as a usage error."""
    subject = config.stash.get(_SUBJECT, None)
    if isinstance(subject, UsageError):
        raise pytest.UsageError(str(subject))


@pytest.fixture
def adapter(pytestconfig: pytest.Config) -> Adapter:
    """The adapter under test, loaded once in a session."""
    subject = _subject(pytestconfig)
    assert subject is not None  # noqa: S101 (otherwise nothing runs)
    return subject.adapter


def _subject(config: pytest.Config) -> Subject | None:
    """The framework under test, loaded on first use; None if it cannot be."""
    if _SUBJECT not in config.stash:
        try:
            config.stash[_SUBJECT] = Subject(config)
        except FwbenchError as error:
            config.stash[_SUBJECT] = UsageError(str(error))
    subject = config.stash[_SUBJECT]
    return None if isinstance(subject, UsageError) else subject


def _parameter(cell: grid.Cell) -> Any:
    marks = [pytest.mark.skip(reason=cell.gap)] if cell.gap else []
    return pytest.param(cell, id=cell.id, marks=marks)


def _name(selection: Selection) -> str:
    names = selection.frameworks or ()
    if len(names) != 1:
        raise UsageError(
            f"the conformance tests were given {', '.join(names) or 'no framework'}; they load one "
            "framework into this process: name it, --fw NAME"
        )
    (name,) = names
    if "@" in name:
        raise UsageError(
            f"{name!r} lives in an environment of its own and the conformance tests load a "
            "framework into this process: run them with the Python of that environment"
        )
    if name not in registry.registered():
        raise unknown("framework", name, registry.registered())
    return name


def _load(name: str, threads: int) -> Adapter:
    """The framework, imported after the variables of its threads are set."""
    os.environ.update(thread_variables(threads))
    try:
        with warnings.catch_warnings(action="ignore"):  # those of the framework's import
            framework = registry.load(name, threads)
    except FrameworkUnavailable as error:
        raise UsageError(f"framework {name!r} cannot be checked here: {error}") from error
    return Adapter(framework, framework.manifest(cpu_model()))
