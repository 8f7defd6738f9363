"""Worker processes, started when first needed, replaced when they die."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from fwbench.errors import FrameworkBroken, FrameworkUnavailable, IsolationError, WorkerDied
from fwbench.processes.process import WorkerProcess, WorkerSpec

#: A framework whose workers die this often before they are ready is not tried again.
_START_ATTEMPTS = 2


class WorkerPool:
    """The workers of a session: one a framework, one case at a time over all of them.

    Args:
        session_of: makes what a worker begins its pytest session with.
        threads: how many threads every framework computes with.
        inherit_output: whether workers write to the session's own output.
    """

    def __init__(
        self,
        session_of: Callable[[WorkerSpec], dict[str, Any]],
        threads: int,
        *,
        inherit_output: bool,
    ) -> None:
        self._session_of = session_of
        self._threads = threads
        self._inherit_output = inherit_output
        self._running: dict[WorkerSpec, WorkerProcess] = {}
        self._failed_starts: dict[WorkerSpec, list[FrameworkUnavailable]] = {}

    def run(
        self, spec: WorkerSpec, nodeid: str, following: str | None, timeout_s: float
    ) -> Iterator[list[Any]]:
        """Run one case, and yield the messages of its worker as they come.

        Args:
            spec: the worker to run it in.
            nodeid: of the case.
            following: the next case of the same worker; it decides which fixtures stay.
            timeout_s: how long the case may take; every epoch that it reports restarts the count.

        Raises:
            FrameworkUnavailable: the worker cannot be started.
            WorkerDied: it died of this case, or took too long; the next case gets a fresh one.
            IsolationError: the worker did not collect the case.
        """
        worker = self._ready(spec)
        worker.mark()
        try:
            worker.send("run", nodeid, following)
            deadline = time.monotonic() + timeout_s
            while True:
                message = worker.receive(
                    deadline, f"did not finish the case within {timeout_s:g} s (--fw-timeout)"
                )
                if message[0] == "done":
                    break
                if message[0] == "epoch":
                    deadline = time.monotonic() + timeout_s
                yield message
        except WorkerDied:
            self._running.pop(spec).kill()
            raise
        if message[1] is not None:
            raise IsolationError(message[1])

    def _ready(self, spec: WorkerSpec) -> WorkerProcess:
        worker = self._running.get(spec)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:  # it died between two cases: neither is to blame
            self._running.pop(spec).kill()
        failures = self._failed_starts.setdefault(spec, [])
        if len(failures) >= _START_ATTEMPTS:
            raise failures[-1]
        try:
            return self._started(spec)
        except (FrameworkUnavailable, WorkerDied, OSError) as error:
            if spec in self._running:
                self._running.pop(spec).kill()
            failures.append(
                FrameworkBroken(f"the worker of {spec.framework} did not start: {error}")
            )
            raise failures[-1] from error

    def _started(self, spec: WorkerSpec) -> WorkerProcess:
        worker = WorkerProcess(spec, self._threads, inherit_output=self._inherit_output)
        # Known before it is ready, so that Ctrl-C meanwhile ends it too.
        self._running[spec] = worker
        worker.load()
        worker.send("session", self._session_of(spec))
        return worker

    def stop(self) -> None:
        """End all workers, letting them tear down their fixtures."""
        for spec in [*self._running]:
            self._running[spec].stop()
            del self._running[spec]

    def kill(self) -> None:
        """End all workers at once."""
        while self._running:
            self._running.popitem()[1].kill()
