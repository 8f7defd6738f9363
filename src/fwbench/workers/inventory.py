"""The frameworks that a session can use, those that it cannot, and the loaded ones."""

import functools
import os
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from fwbench.errors import FrameworkUnavailable, WorkerDied, unknown
from fwbench.frameworks import registry
from fwbench.frameworks.cache import ManifestCache
from fwbench.frameworks.contract import Framework
from fwbench.machine import cpu_model, thread_variables
from fwbench.measure import nvml
from fwbench.terms.manifest import Absent, Manifest
from fwbench.terms.names import CALLED, framework_of
from fwbench.workers.environments import Environments
from fwbench.workers.process import START_TIMEOUT_S, Tick, WorkerProcess, WorkerSpec

_ONE_AT_A_TIME = (
    "a GPU here is in EXCLUSIVE_PROCESS mode and takes one process at a time: end others that use "
    "it, or set the mode with nvidia-smi -c DEFAULT"
)


class Watch:
    """A display that shows people what a session waits for; this one shows nothing."""

    def tick(self, doing: str) -> None:
        """Called several times a second while something is waited for; a case is not named."""

    def clear(self) -> None:
        """Called when nothing is waited for any more, and others may write."""


class Inventory:
    """The frameworks of a session, as far as they have been asked for.

    Args:
        cache: pytest's, where manifests are kept; None to ask every framework again.
        isolated: whether each framework has a process of its own; otherwise they are loaded into
            this one.
        keeps_workers: whether those that have described their frameworks are kept for the session.
    """

    def __init__(
        self,
        environments: Environments,
        threads: int,
        cache: Any,
        *,
        isolated: bool,
        watch: Watch = Watch(),  # noqa: B008 (it does not change)
        keeps_workers: bool = False,
    ) -> None:
        self.manifests: dict[str, Manifest] = {}
        self.absent: dict[str, Absent] = {}
        self._environments = environments
        #: Returns the interpreter that has a framework, or raises StorageError.
        self.interpreter_of = functools.cache(environments.interpreter_of)
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

    @functools.cached_property
    def _kept_manifests(self) -> ManifestCache:
        return ManifestCache(
            self._cache, self._threads, self.interpreter_of, self._environments.path_of
        )

    def fingerprint(self, name: str) -> str:
        """A text that differs whenever a framework that has answered could answer differently."""
        return self._kept_manifests.fingerprint(name, self.manifests[name].sources)

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
                there = [*known, *self._environments.references()]
                raise unknown("framework", name, there, CALLED.get(name, ""))
        described = {*self.manifests, *self.absent}
        missing = [name for name in names or known if name not in described]
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
        """The framework itself, loaded into this process, or FrameworkUnavailable."""
        return registry.load(framework_of(name), self._threads)

    def take_workers(self) -> dict[WorkerSpec, WorkerProcess]:
        """The workers that wait for a session; the caller ends them.

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
        """True if a framework is in a named environment."""
        return self._environments.environment_of(name) is not None

    def _remedied(self, answer: Manifest | Absent) -> Manifest | Absent:
        """An answer that says what to do where a named environment has lost its framework."""
        environment = self._environments.environment_of(answer.name)
        if isinstance(answer, Absent) and environment is not None and self._isolated:
            remedy = f"recreate it: fwbench env remove {environment.name}, then fwbench env add"
            return replace(answer, remedy=remedy)
        return answer

    def _is_elsewhere(self, name: str) -> bool:
        """True if a framework is, or once was, in a named environment."""
        environment = self._environments.environment_of(name)
        # Of a name with a label its worker knows; of one without, the environment is the framework.
        return environment is not None and ("@" in name or name in environment.frameworks)

    def _answers(self, names: list[str]) -> dict[str, Manifest | Absent]:
        if not self._isolated:
            return {name: self._describe_here(name) for name in names}
        cached = {name: answer for name in names if (answer := self._kept_manifests.get(name))}
        uncached = [name for name in names if name not in cached]
        self._environment = dict(os.environ)
        try:
            described = describe(
                uncached, self._threads, self.interpreter_of, self._watch.tick, self._kept
            )
        finally:
            self._watch.clear()
        for answer in described.values():
            self._kept_manifests.put(answer)
        return {**cached, **described}

    def _describe_here(self, name: str) -> Manifest | Absent:
        os.environ.update(thread_variables(self._threads))
        if self.is_named(name):
            return Absent(
                name,
                "in an environment of its own",
                "it needs --fw-isolation=process (the default)",
            )
        try:
            return nvml.named(self.load(name).manifest(cpu_model()))
        except FrameworkUnavailable as error:
            return Absent.because(name, error)


def describe(
    names: Sequence[str],
    threads: int,
    interpreter_of: Callable[[str], str] = lambda _: sys.executable,
    tick: Tick = lambda _: None,
    kept: MutableMapping[WorkerSpec, WorkerProcess] | None = None,
) -> dict[str, Manifest | Absent]:
    """The manifest of each framework, or why it cannot be used, by name.

    Nothing is timed meanwhile, so all of them are asked at once; where a GPU takes one process at a
    time, one after another, since a framework may hold it from its first look at it on.

    Args:
        interpreter_of: returns the interpreter that has a framework, by the framework's name;
            may raise FrameworkUnavailable.
        kept: gets the workers of those that can be used, which wait for a session then: importing
            them again would take as long. Those that have looked at a GPU end: they may hold a
            part of it, and one in EXCLUSIVE_PROCESS mode altogether. None to end them all.
    """
    if not nvml.one_at_a_time():
        return _at_once(names, threads, interpreter_of, tick, kept)
    answers: dict[str, Manifest | Absent] = {}
    for name in names:
        answer = _at_once([name], threads, interpreter_of, tick, kept)[name]
        if isinstance(answer, Absent) and not answer.remedy:
            answer = replace(answer, remedy=_ONE_AT_A_TIME)
        answers[name] = answer
    return answers


def _at_once(
    names: Sequence[str],
    threads: int,
    interpreter_of: Callable[[str], str],
    tick: Tick,
    kept: MutableMapping[WorkerSpec, WorkerProcess] | None,
) -> dict[str, Manifest | Absent]:
    """Describe frameworks in processes that look at their devices at the same time."""
    workers: dict[WorkerSpec, WorkerProcess] = {}
    answers: dict[str, Manifest | Absent] = {}
    try:
        for name in names:
            try:
                spec = WorkerSpec(name, interpreter=interpreter_of(name))
                workers[spec] = WorkerProcess(spec, threads, tick=tick)
            except FrameworkUnavailable as error:
                answers[name] = Absent.because(name, error)
        for spec, worker in [*workers.items()]:
            answers[spec.framework] = answer = _described(worker)
            if isinstance(answer, Absent):
                workers.pop(spec).kill()
        for spec, worker in workers.items():
            answer = answers[spec.framework]
            if kept is None or (isinstance(answer, Manifest) and answer.sees_gpu):
                # Not killed: what measures coverage writes its file when a process ends by itself.
                worker.stop()
            else:
                kept[spec] = worker
        return answers
    except BaseException:
        for worker in workers.values():
            worker.kill()
        raise


def _described(worker: WorkerProcess) -> Manifest | Absent:
    try:
        worker.load()
        worker.send("describe")
        _, values = worker.receive(
            time.monotonic() + START_TIMEOUT_S, f"did not describe it within {START_TIMEOUT_S:g} s"
        )
    except FrameworkUnavailable as error:
        return Absent.because(worker.framework, error)
    except WorkerDied as error:
        return Absent(worker.framework, f"does not import: {error}", "")
    return replace(Manifest.from_json(values), name=worker.framework)
