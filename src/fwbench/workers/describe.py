"""Asks frameworks for their manifests, each in a process of its own."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace

from fwbench.errors import FrameworkUnavailable, WorkerDied
from fwbench.manifest import Absent, Manifest
from fwbench.measure import nvml
from fwbench.processes.process import START_TIMEOUT_S, Tick, WorkerProcess, WorkerSpec

_ONE_AT_A_TIME = (
    "a GPU here is in EXCLUSIVE_PROCESS mode and takes one process at a time: end others that use "
    "it, or set the mode with nvidia-smi -c DEFAULT"
)


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
        names: the frameworks to ask.
        threads: how many threads each of them computes with.
        interpreter_of: returns the interpreter that has a framework, by the framework's name;
            may raise FrameworkUnavailable.
        tick: called while they are waited for.
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
    """The same, in processes that look at their devices at the same time."""
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
            if kept is None or _sees_gpu(answers[spec.framework]):
                # Not killed: what measures coverage writes its file when a process ends by itself.
                worker.stop()
            else:
                kept[spec] = worker
        return answers
    except BaseException:
        for worker in workers.values():
            worker.kill()
        raise


def _sees_gpu(answer: Manifest | Absent) -> bool:
    devices = answer.devices if isinstance(answer, Manifest) else ()
    return any(device.name != "cpu" for device in devices)


def _described(worker: WorkerProcess) -> Manifest | Absent:
    try:
        worker.load()
        worker.send("describe")
        _, values = worker.receive(
            time.monotonic() + START_TIMEOUT_S,
            f"did not describe it within {START_TIMEOUT_S:g} s",
        )
    except FrameworkUnavailable as error:
        return Absent.because(worker.framework, error)
    except WorkerDied as error:
        return Absent(worker.framework, f"does not import: {error}", "")
    return replace(Manifest.from_json(values), name=worker.framework)
