"""A pytest session's frameworks: options, manifests, cells, loaded frameworks.

The same object serves the parent, a worker, and a session without isolation.
"""

import difflib
import functools
import random
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from fwbench import machine, project
from fwbench.ceilings import Ceiling, Ceilings
from fwbench.errors import FwbenchError, UsageError, unknown
from fwbench.frameworks import registry
from fwbench.measure import limits
from fwbench.measure.limits import Limits
from fwbench.options.options import DEST, REPRESENTATIVES, Selection
from fwbench.plugin.host import BenchmarkSession, check_benchmark
from fwbench.plugin.options import (
    debugger_flag,
    from_config,
    from_marker,
    ignored,
    names_suite_alone,
    precision_of,
    threshold_of,
)
from fwbench.records.launches import LaunchPlan
from fwbench.records.session_facts import MachineFacts, StoredRevisits
from fwbench.terms import toggles
from fwbench.terms.manifest import Absent, Device, Manifest
from fwbench.terms.names import CALLED, framework_of, without_environment
from fwbench.terms.presets import Schedule
from fwbench.workers.environments import Environments
from fwbench.workers.inventory import Inventory, Watch
from fwbench.workloads import FAMILIES, MODELS, data, gaps, grid
from fwbench.workloads.function import Function, check_names
from fwbench.workloads.grid import Cell
from fwbench.workloads.model import Model, ModelInference, ModelTraining
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Workload

#: In a worker: the manifest of its framework, as the parent knows it.
OWN_MANIFEST = pytest.StashKey[Manifest]()

#: The cell of an item that is a case.
CELL = pytest.StashKey[grid.Cell]()

#: Set where the family of a case was not requested, so that nothing is missing without it.
UNASKED = pytest.StashKey[bool]()


#: The options that decide how long a case takes, in addition to pytest-benchmark's.
_DECIDING = ("threads", "warmup_s", "precision", "epochs", "repetitions", "steps", "data")


def is_measured(item: pytest.Item) -> bool:
    """True if an item is a case that will be measured: neither a gap nor skipped by its author."""
    return CELL in item.stash and item.get_closest_marker("skip") is None


def key_of(item: pytest.Item) -> str:
    """Its node id, in which a framework has the same name in every environment."""
    return without_environment(
        item.nodeid, item.stash[CELL].framework if CELL in item.stash else ""
    )


class Session:
    """The frameworks of one pytest session.

    Attributes:
        options: of the command line and the ini file; missing if these are the problem.
        problem: why nothing may run; kept, because pytest would take an error raised while it
            collects for a broken test file.
    """

    def __init__(self, config: pytest.Config, watch: Watch = Watch()) -> None:  # noqa: B008
        self._config = config
        self._watch = watch
        self.problem: UsageError | None = None
        self.revisits: dict[str, StoredRevisits] = {}
        self._cases = 0
        self._functions: dict[str, Function] = {}
        self.under_xdist = hasattr(config, "workerinput")
        self.keeps_workers = False
        self.in_worker = OWN_MANIFEST in config.stash
        try:
            check_benchmark(config)
            self.options = from_config(config)
            self.ignored = [DEST[name] for name in ignored(config)]
            self._check_probing()
        except UsageError as error:
            self.problem = error

    def _check_probing(self) -> None:
        """Refuse to run cases once more that were not timed."""
        flag = self.options.probing or "--fw-resume" * self.options.resume
        if flag and self.verify_only:
            raise UsageError(
                f"{flag} is for cases that were timed, and --benchmark-disable times none: leave "
                "out one of them"
            )

    @property
    def settings(self) -> str:
        """Settings that must be the same for a case to take as long as before."""
        benchmarks = vars(self._config.option).items()
        settings = {n: v for n, v in benchmarks if n.startswith(("benchmark_m", "benchmark_cal"))}
        # Of the session: the ini file may have them, too.
        settings |= {name: getattr(self.options, name) for name in _DECIDING}
        return " ".join(f"{name}={value}" for name, value in settings.items())

    @property
    def isolated(self) -> bool:
        """True if this process leaves frameworks to workers."""
        return self.options.isolation == "process" and not self.in_worker

    @property
    def debugger(self) -> str:
        """The flag for which this process does not leave frameworks to workers, or nothing."""
        return debugger_flag(self._config)

    @functools.cached_property
    def inventory(self) -> Inventory:
        """The frameworks, as far as they have been asked for."""
        config = self._config
        inventory = Inventory(
            Environments(config.rootpath),
            self.options.threads,
            getattr(config, "cache", None),
            isolated=self.isolated,
            watch=self._watch,
            keeps_workers=self.keeps_workers,
        )
        if self.in_worker:
            manifest = config.stash[OWN_MANIFEST]
            inventory.manifests[manifest.name] = manifest
        return inventory

    @property
    def manifests(self) -> Mapping[str, Manifest]:
        """Available frameworks among the requested ones, by name."""
        return self.inventory.manifests

    @property
    def absent(self) -> Mapping[str, Absent]:
        """Unavailable frameworks among the requested ones, by name."""
        return self.inventory.absent

    def count_case(self) -> int:
        """Count a case that begins in this process; returns how many have, with it."""
        self._cases += 1
        return self._cases

    @property
    def traces(self) -> Path:
        """The folder for traces of profiles."""
        return self.options.traces or project.own_folder(self._config.rootpath, "traces")

    @functools.cached_property
    def machine(self) -> MachineFacts:
        """Facts of this machine; known once a framework has answered."""
        every = (device for manifest in self.manifests.values() for device in manifest.devices)
        models = {device.model for device in every if device.name == "cpu"}
        return MachineFacts(**machine.machine(models.pop() if models else machine.cpu_model()))

    @functools.cached_property
    def ceilings(self) -> Mapping[str, Ceiling]:
        """Ceilings that ``fwbench doctor --peaks`` has measured here, by model of a device."""
        return Ceilings(self._config.rootpath, self.machine, self.options.threads).load()

    @functools.cached_property
    def _processor_limits(self) -> Limits:
        return limits.of_processor()

    def limits(self, manifest: Manifest, device: Device) -> Limits:
        """Rates that no case of a framework can exceed on a device."""
        possible = self._processor_limits if device.name == "cpu" else Limits()
        measured = self.ceilings.get(device.model, Ceiling())
        return possible.under(measured.holds_for(f"{manifest.name} {manifest.version}"))

    @functools.cached_property
    def plan(self) -> LaunchPlan | None:
        """The launches; None if cases are measured once, in their order, or not at all."""
        launches = self.options.launches
        if self.verify_only or (launches is None and not self.options.is_adaptive):
            return None
        seed = self.options.seed
        # Short enough to be typed.
        return LaunchPlan(launches or 1, random.randrange(10**6) if seed is None else seed)  # noqa: S311

    @property
    def verify_only(self) -> bool:
        """True if pytest-benchmark is disabled, so that nothing will be timed."""
        return BenchmarkSession(self._config).disabled

    def request_cells(self, mark: pytest.Mark, where: str = "") -> Sequence[grid.Cell]:
        """Ask the frameworks of a test, in their workers, and return its cells.

        What is wrong with the options becomes the :attr:`problem`, and there are no cells then.
        """
        if self.problem is not None:
            return ()
        try:
            known = self.inventory.adapters
            with _naming(where):
                workloads = workloads_of(mark, known)
                check_names(workloads, self._functions)
                selection = self.options.selection(from_marker(mark))
            is_open = selection.frameworks is None
            if is_open and all(isinstance(workload, Function) for workload in workloads):
                names = {name for workload in workloads for name in implemented(workload)}
                selection = replace(selection, frameworks=tuple(n for n in known if n in names))
            if not self.in_worker:
                self._check_names(selection, known)
                self.inventory.ask(selection.frameworks)
                grid.check_dtypes(selection, self.manifests)
                self._check_requested()
            with _naming(where):
                threshold, precision = threshold_of(mark), precision_of(self._config, mark)
            requested = replace(self._request(), threshold=threshold, precision=precision)
            cells = list(grid.cells(workloads, selection, self.manifests, self.absent, requested))
            if is_open:
                cells = [cell for cell in cells if not is_of_another(cell)]
                cells += without_adapter(workloads, known)
            return cells
        except UsageError as error:
            self.problem = error
        except FwbenchError as error:
            self.problem = UsageError(str(error))
        return ()

    def _check_names(self, selection: Selection, frameworks: Iterable[str]) -> None:
        """Refuse what is known to be misspelt before frameworks are asked, which takes seconds."""
        if all(map(registry.is_own, frameworks)):  # another one may have dtypes and toggles, too
            grid.check_dtypes(selection, {})
            toggles.checked(self.options.toggles, ())
        if self.options.requested.families and names_suite_alone(self._config):
            check_families(self.options.requested.families)

    def selection(self, mark: pytest.Mark) -> Selection:
        """Requested selection of tests with this marker.

        One that asks for representatives is the suite's own: families of the ini file are over it.
        """
        requested = self.options.selection(from_marker(mark))
        if requested.families == (REPRESENTATIVES,):
            return replace(
                requested, families=self.options.configured.families or requested.families
            )
        return requested

    def _request(self) -> grid.GridRequest:
        options = self.options
        requested = toggles.checked(options.toggles, self._own_toggles(), strict=not self.in_worker)
        toggles.check_gangs(requested)
        if not self.in_worker and "replicas" in options.toggles:
            from fwbench.gangs import pool  # most sessions have no replicas

            pool.check(options.engine, options.places, requested.get("network", ()))
        for name in options.toggles:
            if toggles.is_of_gang(name) and options.isolation == "none":
                raise UsageError(
                    f"the toggle {name} is for cases that several processes do together, and "
                    f"{self.debugger or '--fw-isolation=none'} has one for all: leave out one of "
                    "them"
                )
            if toggles.is_of_process(name) and options.isolation == "none":
                raise UsageError(
                    f"the toggle {name} is set before a framework is imported: it needs a process "
                    f"of its own; leave out {self.debugger or '--fw-isolation=none'}"
                )
        weak = options.scaling == "weak"
        if self.verify_only:
            # Any data will do where nothing is timed, and two steps.
            return grid.GridRequest(
                requested,
                lambda _: Schedule(epochs=1, warmup_epochs=0, steps=2),
                data.generated,
                verify_only=True,
                weak=weak,
            )
        find = functools.cache(partial(data.find, folder=options.data))
        return grid.GridRequest(requested, options.schedule, find, weak=weak)

    def _own_toggles(self) -> list[toggles.Toggle]:
        return [toggle for manifest in self.manifests.values() for toggle in manifest.own_toggles]

    @property
    def known_toggles(self) -> Mapping[str, toggles.Toggle]:
        """Every toggle of this session by its name: fwbench's, and those of its frameworks."""
        return toggles.known(self._own_toggles())

    def _check_requested(self) -> None:
        """Refuse options that select nothing; a marker that selects nothing is skipped."""
        requested = self.options.requested.over(self.options.configured)
        foreign = self.options.toggles.keys() - toggles.TOGGLES.keys()  # some framework's, maybe
        if requested != Selection() or not self.manifests or foreign:
            self.inventory.ask(requested.frameworks)
            apart = {name for name in self.absent if self.inventory.is_named(name)}
            grid.check(requested, self.manifests, self.absent, apart)
            gaps.refuse_unbuilt(self.options.toggles, requested.frameworks or (), self.manifests)


#: What stands for every family that a session need not ask for by name, and for work in none.
ALL = "all"


def check_families(requested: Iterable[str], others: Iterable[str | None] = ()) -> None:
    """Refuse families that are not there.

    Args:
        others: families of operations of the user's own.
    """
    used = [*FAMILIES, *(model.family for model in MODELS), *others]
    known = dict.fromkeys(name for name in (*used, ALL, REPRESENTATIVES) if name)
    for name in sorted({*requested} - known.keys()):
        raise unknown("family", name, known)


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Let messages on what a test declares begin with its file and line."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}: {error}" if where else str(error)) from None


#: How similar a name must be to be taken for a misspelled one.
_SIMILAR = 0.85


def workloads_of(mark: pytest.Mark, known: Sequence[str]) -> Sequence[Workload]:
    """The workloads that a marker names."""
    given = [
        workload
        for value in mark.args
        for workload in (value.workloads if isinstance(value, Model) else (value,))
    ]
    wrong = [value for value in given if not isinstance(value, Workload)]
    if wrong or not mark.args:
        raise UsageError(
            f"@pytest.mark.fwbench was given {', '.join(map(_shown, wrong)) or 'nothing'}; give it "
            "the operations, models or functions to measure, one by one: "
            "@pytest.mark.fwbench(gemm, dot, fwbench.function(f, inputs=..., sizes=...))"
        )
    for workload in given:
        _refuse_near_misses(workload, known)
    names = [workload.name for workload in given]
    if len({*names}) < len(names):
        raise UsageError(f"@pytest.mark.fwbench names a workload twice: {', '.join(names)}")
    return tuple(given)


def _shown(given: Any) -> str:
    """A wrong argument of the marker, in a few words: workloads are long when written out."""
    if isinstance(given, list | tuple | set):
        names = (getattr(each, "name", None) or _shown(each) for each in given)
        return f"a {type(given).__name__} of {', '.join(names) or 'nothing'}"
    if callable(given):
        return f"the {type(given).__name__} {getattr(given, '__name__', '')}".rstrip()
    return reprlib.repr(given)


def without_adapter(workloads: Iterable[Workload], known: Collection[str]) -> Iterator[Cell]:
    """A cell with a gap for each implementation that nothing can run: once, not in every size."""
    for workload in workloads:
        direction = (workload.directions or ("forward",))[0]
        for name in implemented(workload):
            if name not in known:
                dtype, size = workload.default_dtype, workload.smallest
                yield Cell(
                    *(workload, name, "cpu", "eager", direction, dtype, size),
                    gap=f"{name}: no installed package has an adapter for it; install one, or "
                    "write it (docs/extending.md)",
                )


def is_of_another(cell: Cell) -> bool:
    """True of a function in a framework that it is not given for."""
    framework = framework_of(cell.framework)
    return isinstance(cell.workload, Function) and framework not in cell.workload.implementations


def cached(cache: Any, name: str) -> dict[str, Any]:
    """Content of pytest's cache by its keys; nothing if it is off, or somebody else has written it.

    Args:
        cache: ``config.cache``; None where it is switched off.
    """
    kept = None
    with suppress(RecursionError):  # pytest's cache is silent on all other damage
        kept = cache.get(name, {}) if cache is not None else {}
    return kept if isinstance(kept, dict) else {}


def implemented(workload: Workload) -> Mapping[str, Any]:
    """The implementations that its author gives, by framework; none of fwbench's own work."""
    if isinstance(workload, Operation):
        return workload.implementations
    if isinstance(workload, ModelInference | ModelTraining):
        return {name: version.given for name, version in workload.model.versions.items()}
    return {}


def _refuse_near_misses(workload: Workload, known: Sequence[str]) -> None:
    """An implementation for a framework that is not installed is fine; a misspelled one is not."""
    for name, implementation in implemented(workload).items():
        similar = CALLED.get(name) in known or difflib.get_close_matches(name, known, 1, _SIMILAR)
        if name in known or not similar:
            continue
        where = workload.name
        if isinstance(implementation, FunctionType):
            code = implementation.__code__
            where = f"{workload.name} in {code.co_filename}:{code.co_firstlineno}"
        raise unknown(f"framework (implemented by {where})", name, known, CALLED.get(name, ""))
