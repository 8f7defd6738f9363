"""What a pytest session knows of frameworks: options, manifests, cells, loaded frameworks.

The same object serves the parent, a worker, and a session without isolation.
"""

from __future__ import annotations

import difflib
import functools
import os
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from fwbench import grid
from fwbench.environments.named import Environments
from fwbench.errors import FrameworkUnavailable, FwbenchError, UsageError, unknown
from fwbench.frameworks import registry
from fwbench.frameworks.cache import ManifestCache
from fwbench.frameworks.contract import Framework
from fwbench.isolation.describe import describe
from fwbench.machine import cpu_model, thread_variables
from fwbench.manifest import Absent, Manifest
from fwbench.names import framework_of
from fwbench.options.options import Options, Selection, from_marker, threshold_of
from fwbench.plugin.host import benchmark_session
from fwbench.presets import Schedule
from fwbench.records.launches import Plan
from fwbench.toggles import TOGGLES
from fwbench.workloads import data
from fwbench.workloads.operation import Operation
from fwbench.workloads.workload import Workload

#: In a worker: the manifest of its framework, as the parent knows it.
OWN_MANIFEST = pytest.StashKey[Manifest]()

#: The cell of an item that is a case.
CELL = pytest.StashKey[grid.Cell]()


class Session:
    """The frameworks of one pytest session.

    Attributes:
        options: of the command line and the ini file; missing if these are the problem.
        environments: the named ones of the project.
        interpreter_of: which interpreter has a framework, by the framework's name.
        manifests: the frameworks that were asked and can be used.
        absent: those that cannot.
        problem: why nothing may run; kept, because pytest would take an error raised while it
            collects for a broken test file.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.environments = Environments(config.rootpath)
        self.interpreter_of = functools.cache(self.environments.interpreter_of)
        self.manifests: dict[str, Manifest] = {}
        self.absent: dict[str, Absent] = {}
        self.problem: UsageError | None = None
        self.under_xdist = hasattr(config, "workerinput")
        own = config.stash.get(OWN_MANIFEST, None)
        self.in_worker = own is not None
        if own is not None:
            self.manifests[own.name] = own
        try:
            self.options = Options.of(config)
        except UsageError as error:
            self.problem = error

    @property
    def isolated(self) -> bool:
        """Whether this process leaves frameworks to workers."""
        return self.options.isolation == "process" and not self.in_worker

    @functools.cached_property
    def plan(self) -> Plan | None:
        """The launches; None if cases are measured once, in their order, or not at all."""
        if self.options.launches is None or self.verify_only:
            return None
        seed = self.options.seed
        # Short enough to be typed.
        return Plan(self.options.launches, random.randrange(10**6) if seed is None else seed)  # noqa: S311

    @property
    def verify_only(self) -> bool:
        """Whether pytest-benchmark is disabled, so that nothing will be timed."""
        return bool(benchmark_session(self._config).disabled)

    def cells(self, mark: pytest.Mark) -> Sequence[grid.Cell]:
        """The cells of a test with this marker; none if there is a :attr:`problem`."""
        if self.problem is not None:
            return ()
        try:
            workloads = _workloads(mark)
            selection = self.options.selection(from_marker(mark))
            if not self.in_worker:
                self._ask(selection)
                grid.check_dtypes(selection, self.manifests)
                self._check_asked()
            asked = replace(self._asked(), threshold=threshold_of(mark))
            return list(grid.cells(workloads, selection, self.manifests, self.absent, asked))
        except UsageError as error:
            self.problem = error
        except FwbenchError as error:
            self.problem = UsageError(str(error))
        return ()

    def _asked(self) -> grid.Asked:
        """What else the options ask for.

        Raises:
            UsageError: a toggle of a whole process, and frameworks share this one.
        """
        options = self.options
        for name in options.toggles:
            if TOGGLES[name].process and options.isolation == "none":
                raise UsageError(
                    f"the toggle {name} is set before a framework is imported: it needs a process "
                    "of its own; leave out --fw-isolation=none"
                )
        if self.verify_only:
            # Any data will do where nothing is timed, and two steps.
            return grid.Asked(
                options.toggles,
                lambda _: Schedule(epochs=1, warmup_epochs=0, steps=2),
                data.generated,
                verify_only=True,
            )
        find = functools.cache(partial(data.find, folder=options.data))
        return grid.Asked(options.toggles, options.schedule, find)

    def framework(self, name: str) -> Framework:
        """The framework itself, loaded into this process.

        Raises:
            FrameworkUnavailable: it cannot be.
        """
        return registry.load(framework_of(name), self.options.threads)

    def _check_asked(self) -> None:
        """Refuse what the user asked for in vain; what a marker asks for in vain is skipped."""
        asked = self.options.asked.over(self.options.configured)
        if asked != Selection() or not self.manifests:
            self._ask(asked)
            apart = {name for name in self.absent if self.environments.of(name) is not None}
            grid.check(asked, self.manifests, self.absent, apart)

    def _ask(self, selection: Selection) -> None:
        """Have the manifests of the frameworks that a selection is about."""
        known = registry.registered()
        for name in selection.frameworks or known:
            if name not in known and not self._is_elsewhere(name):
                raise unknown("framework", name, [*known, *self.environments.references()])
        asked = {*self.manifests, *self.absent}
        names = [name for name in selection.frameworks or known if name not in asked]
        if not names:
            return
        answers = self._answers(names)
        for name in names:
            answer = self._remedied(answers[name])
            if isinstance(answer, Manifest):
                self.manifests[name] = answer
            else:
                self.absent[name] = answer

    def _remedied(self, answer: Manifest | Absent) -> Manifest | Absent:
        """What to do about a framework that its environment no longer has is done there."""
        environment = self.environments.of(answer.name)
        if isinstance(answer, Absent) and environment is not None and self.isolated:
            remedy = f"make it anew: fwbench env remove {environment.name}, then fwbench env add"
            return replace(answer, remedy=remedy)
        return answer

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a framework is, or once was, in a named environment."""
        environment = self.environments.of(name)
        # Of a name with a label its worker knows; of one without, the environment is the framework.
        return environment is not None and ("@" in name or name in environment.frameworks)

    def _answers(self, names: list[str]) -> dict[str, Manifest | Absent]:
        threads = self.options.threads
        if not self.isolated:
            return {name: self._describe_here(name) for name in names}
        cache = ManifestCache(getattr(self._config, "cache", None), threads, self.environments)
        cached = {name: answer for name in names if (answer := cache.get(name))}
        unknown_yet = [name for name in names if name not in cached]
        asked = describe(unknown_yet, threads, self.interpreter_of)
        for answer in asked.values():
            cache.put(answer)
        return {**cached, **asked}

    def _describe_here(self, name: str) -> Manifest | Absent:
        os.environ.update(thread_variables(self.options.threads))
        if self.environments.of(name) is not None:
            return Absent(
                name,
                "in an environment of its own",
                "it needs --fw-isolation=process (the default)",
            )
        try:
            return self.framework(name).manifest(cpu_model())
        except FrameworkUnavailable as error:
            return Absent.because(name, error)


def _workloads(mark: pytest.Mark) -> Sequence[Workload]:
    wrong = [value for value in mark.args if not isinstance(value, Workload)]
    if wrong or not mark.args:
        raise UsageError(
            f"@pytest.mark.fwbench was given {', '.join(map(repr, wrong)) or 'nothing'}; give it "
            "the operations to measure: @pytest.mark.fwbench(gemm, dot)"
        )
    for workload in mark.args:
        if isinstance(workload, Operation):
            _refuse_near_misses(workload)
    names = [workload.name for workload in mark.args]
    if len({*names}) < len(names):
        raise UsageError(f"@pytest.mark.fwbench names a workload twice: {', '.join(names)}")
    return mark.args


def _refuse_near_misses(operation: Operation) -> None:
    """An implementation for a framework that is not installed is fine; a misspelled one is not."""
    known = list(registry.registered())
    for name in operation.implementations:
        if name not in known and difflib.get_close_matches(name, known, n=1, cutoff=0.85):
            raise unknown(f"framework (implemented by {operation.name})", name, known)
