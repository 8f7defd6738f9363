"""The frameworks that a session can use, those that it cannot, and the loaded ones."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fwbench.errors import FrameworkUnavailable, unknown
from fwbench.frameworks import registry
from fwbench.frameworks.cache import ManifestCache
from fwbench.frameworks.contract import Framework
from fwbench.machine import cpu_model, thread_variables
from fwbench.manifest import Absent, Manifest
from fwbench.names import framework_of
from fwbench.processes.process import WorkerProcess, WorkerSpec
from fwbench.workers.describe import describe
from fwbench.workers.named import Environments
from fwbench.workers.watch import Unwatched, Watch


class Inventory:
    """The frameworks of a session, as far as they have been asked for.

    Args:
        environments: the named environments of the project.
        threads: how many threads every framework computes with.
        cache: pytest's, where manifests are kept; None to ask every framework again.
        isolated: whether each framework has a process of its own; otherwise they are loaded into
            this one.
        watch: what shows people that workers are being waited for.
        keeps_workers: whether those that have described their frameworks are kept for the session.

    Attributes:
        manifests: of the frameworks that can be used, by name.
        absent: those that cannot, with the reason, by name.
    """

    def __init__(
        self,
        environments: Environments,
        threads: int,
        cache: Any,
        *,
        isolated: bool,
        watch: Watch = Unwatched(),  # noqa: B008 (it does not change)
        keeps_workers: bool = False,
    ) -> None:
        self.manifests: dict[str, Manifest] = {}
        self.absent: dict[str, Absent] = {}
        self._environments = environments
        self._interpreter_of = functools.cache(environments.interpreter_of)
        self._threads = threads
        self._cache = cache
        self._isolated = isolated
        self._watch = watch
        self._environment: dict[str, str] = {}
        self._kept: dict[WorkerSpec, WorkerProcess] | None = {} if keeps_workers else None

    @functools.cached_property
    def adapters(self) -> Sequence[str]:
        """The frameworks that a package has an adapter for, here or in a named environment."""
        elsewhere = map(framework_of, self._environments.references())
        return [*dict.fromkeys((*registry.registered(), *elsewhere))]

    def ask(self, names: Sequence[str] | None) -> None:
        """Get the manifests of frameworks, or why they cannot be used.

        Args:
            names: of the frameworks; None for all that are installed.

        Raises:
            UsageError: one of them is neither installed nor in a named environment.
        """
        known = registry.registered()
        for name in names or known:
            if name not in known and not self._is_elsewhere(name):
                raise unknown("framework", name, [*known, *self._environments.references()])
        asked = {*self.manifests, *self.absent}
        missing = [name for name in names or known if name not in asked]
        if not missing:
            return
        answers = self._answers(missing)
        for name in missing:
            answer = self._remedied(answers[name])
            if isinstance(answer, Manifest):
                self.manifests[name] = answer
            else:
                self.absent[name] = answer

    def load(self, name: str) -> Framework:
        """The framework itself, loaded into this process.

        Raises:
            FrameworkUnavailable: it cannot be loaded.
        """
        return registry.load(framework_of(name), self._threads)

    def interpreter_of(self, name: str) -> str:
        """The interpreter that has a framework.

        Raises:
            StorageError: the facts of its environment cannot be read.
        """
        return self._interpreter_of(name)

    def take_workers(self) -> dict[WorkerSpec, WorkerProcess]:
        """The workers that wait for a session; whoever takes them ends them.

        None where the environment has changed since they began, of which they know nothing.
        """
        taken = dict(self._kept or {})
        if self._kept is not None:
            self._kept.clear()
        if self._environment == os.environ:
            return taken
        for worker in taken.values():
            worker.stop()
        return {}

    def is_named(self, name: str) -> bool:
        """Whether a framework lies in a named environment."""
        return self._environments.environment_of(name) is not None

    def _remedied(self, answer: Manifest | Absent) -> Manifest | Absent:
        """An answer that says what to do where a named environment has lost its framework."""
        environment = self._environments.environment_of(answer.name)
        if isinstance(answer, Absent) and environment is not None and self._isolated:
            remedy = f"recreate it: fwbench env remove {environment.name}, then fwbench env add"
            return replace(answer, remedy=remedy)
        return answer

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a framework is, or once was, in a named environment."""
        environment = self._environments.environment_of(name)
        # Of a name with a label its worker knows; of one without, the environment is the framework.
        return environment is not None and ("@" in name or name in environment.frameworks)

    def _answers(self, names: list[str]) -> dict[str, Manifest | Absent]:
        if not self._isolated:
            return {name: self._describe_here(name) for name in names}
        cache = ManifestCache(
            self._cache, self._threads, self._interpreter_of, self._environments.path_of
        )
        cached = {name: answer for name in names if (answer := cache.get(name))}
        uncached = [name for name in names if name not in cached]
        self._environment = dict(os.environ)
        try:
            described = describe(
                uncached, self._threads, self._interpreter_of, self._watch.tick, self._kept
            )
        finally:
            self._watch.clear()
        for answer in described.values():
            cache.put(answer)
        return {**cached, **described}

    def _describe_here(self, name: str) -> Manifest | Absent:
        os.environ.update(thread_variables(self._threads))
        if self.is_named(name):
            return Absent(
                name,
                "in an environment of its own",
                "it needs --fw-isolation=process (the default)",
            )
        from fwbench.measure import nvml

        try:
            return nvml.named(self.load(name).manifest(cpu_model()))
        except FrameworkUnavailable as error:
            return Absent.because(name, error)
