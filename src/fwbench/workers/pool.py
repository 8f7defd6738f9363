"""Worker processes, started when first needed, replaced when they die."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from fwbench.errors import FrameworkBroken, FrameworkUnavailable, IsolationError, WorkerDied
from fwbench.workers.process import Tick, WorkerProcess, WorkerSpec

#: A framework whose workers die this often before they are ready is not tried again.
_START_ATTEMPTS = 2

#: What a worker failed to do whose framework was imported.
_NOT_BEGUN = "did not begin its session"


class _Deadline:
    """Until when a case must be over: by ``--fw-timeout``, or earlier if its worker says so."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._of_worker: tuple[float, str] | None = None
        self.restart()

    def restart(self) -> None:
        """Count ``--fw-timeout`` from now on."""
        self._looked_s = time.monotonic()
        end = self._looked_s + self._timeout_s
        self._of_case = end, f"did not finish the case within {self._timeout_s:g} s (--fw-timeout)"

    def set_by_worker(self, seconds: float | None, overdue: str) -> None:
        """Set or lift the limit that the worker has asked for.

        Args:
            seconds: from now on; None to lift it.
            overdue: what the worker has failed to do by then.
        """
        self._of_worker = None if seconds is None else (time.monotonic() + seconds, overdue)

    def look(self, *, waits: bool) -> None:
        """Note that time has passed; it does not count while a case waits for its turn."""
        now_s = time.monotonic()
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        if waits:
            self._of_case = self._of_case[0] + passed_s, self._of_case[1]
            if self._of_worker is not None:
                self._of_worker = self._of_worker[0] + passed_s, self._of_worker[1]

    @property
    def first(self) -> tuple[float, str]:
        """The one that comes first, in the time of ``time.monotonic``, and what it is missed by."""
        return min(self._of_case, self._of_worker or self._of_case)


@dataclass(frozen=True)
class Turns:
    """The place of a case that takes turns with others."""

    #: What its process must know to do so.
    place: str
    #: Tells whether it waits for others now, which takes none of its time.
    waits: Callable[[], bool]
    #: Tells for how many seconds it has waited until now.
    waited_s: Callable[[], float]


#: The message of a case that takes turns where its worker has said nothing yet.
PENDING = "pending"


class WorkerPool:
    """The workers of a session: one case at a time over all of them, or those of one row."""

    def __init__(
        self,
        session_of: Callable[[WorkerSpec], dict[str, Any]],
        threads: int,
        *,
        inherit_output: bool,
        tick: Tick = lambda _: None,
    ) -> None:
        self._session_of = session_of
        self._threads = threads
        self._inherit_output = inherit_output
        self._tick = tick
        self._loaded: dict[WorkerSpec, WorkerProcess] = {}  # they wait for their first cases
        self._running: dict[WorkerSpec, WorkerProcess] = {}
        self._failed_starts: dict[WorkerSpec, list[str]] = defaultdict(list)

    def adopt(self, workers: Mapping[WorkerSpec, WorkerProcess]) -> None:
        """Take workers that have loaded their frameworks and have not begun a session."""
        self._loaded.update(workers)

    def load(self, specs: Iterable[WorkerSpec]) -> Iterator[list[Any]]:
        """Import frameworks and begin sessions, all at once; yields what workers send meanwhile.

        The workers wait for their first cases then. One that fails is started again for its first
        case, as often as any. Those that were adopted and are not needed end.
        """
        needed = dict.fromkeys(specs)
        for spec in self._loaded.keys() - needed.keys():
            self._loaded.pop(spec).stop()
        started = {}
        for spec in needed.keys() - self._loaded.keys():
            if len(self._failed_starts[spec]) < _START_ATTEMPTS:
                with suppress(FrameworkUnavailable):
                    started[spec] = self._loaded[spec] = self._process(spec)
        for spec, worker in started.items():
            try:
                worker.load()
            except (FrameworkUnavailable, WorkerDied) as error:
                self._loaded.pop(spec).kill()
                self._note_failure(spec, error)
        yield from self._begin()

    def _begin(self) -> Iterator[list[Any]]:
        """Have the workers that wait begin their sessions, side by side; yields what they say."""
        for spec, worker in [*self._loaded.items()]:
            with self._losing(spec):
                worker.begin_session(self._session_of(spec))
        for spec, worker in [*self._loaded.items()]:
            with self._losing(spec):
                yield from worker.until_begun()

    @contextmanager
    def _losing(self, spec: WorkerSpec) -> Iterator[None]:
        """Note of a worker that it died instead of beginning its session."""
        try:
            yield
        except WorkerDied as error:
            self._loaded.pop(spec).kill()
            self._note_failure(spec, error, _NOT_BEGUN)

    def fileno(self, spec: WorkerSpec) -> int:
        """A descriptor that becomes readable when a running worker has said something."""
        return self._running[spec].fileno()

    def run(
        self,
        spec: WorkerSpec,
        nodeid: str,
        following: str | None,
        timeout_s: float,
        turns: Turns | None = None,
    ) -> Iterator[list[Any]]:
        """Run one case, and yield the messages of its worker as they come.

        Args:
            following: the next case of the same worker; it decides which fixtures stay.
            timeout_s: how long the case may take; every epoch that it reports restarts the count.
            turns: its own if it takes turns: then nothing is waited for, and :data:`PENDING` comes
                where nothing else has.

        Raises:
            FrameworkUnavailable: the worker cannot be started, or does not begin its session.
            WorkerDied: it died of this case, or took too long; the next case gets a fresh one.
            IsolationError: the worker did not collect the case.
        """
        worker = self._ready(spec)
        if not worker.has_begun:
            yield from self._beginning(spec, worker)
        worker.mark()
        try:
            worker.send("run", nodeid, following, turns.place if turns else "")
            deadline = _Deadline(timeout_s)
            while (message := _heard(worker, deadline, turns))[0] != "done":
                if message[0] == "deadline":
                    deadline.set_by_worker(*message[1:])
                    continue
                if message[0] == "epoch":
                    deadline.restart()
                if message[0] == "rounds":
                    message = ["rounds", _use(worker, turns)]
                    worker.send("go on")
                yield message
        except WorkerDied:
            self._running.pop(spec).kill()
            raise
        _, problem, over = message
        if over:  # on a device that it has spoiled the next case would fail, and be innocent
            self._running.pop(spec).stop()
        if problem is not None:
            raise IsolationError(problem)

    def _ready(self, spec: WorkerSpec) -> WorkerProcess:
        worker = self._running.get(spec)
        if worker is not None and worker.is_alive():
            return worker
        if worker is not None:  # it died between two cases: neither is to blame
            self._running.pop(spec).kill()
        failures = self._failed_starts[spec]
        if len(failures) >= _START_ATTEMPTS:
            raise FrameworkBroken(
                failures[-1],
                f"it is not started again after {_START_ATTEMPTS} failed attempts, whose output "
                "earlier failures show",
            )
        if spec.gang:
            self._stop_other_gangs(spec)
        try:
            return self._started(spec)
        except (FrameworkUnavailable, WorkerDied) as error:
            if spec in self._running:
                self._running.pop(spec).kill()
            raise self._note_failure(spec, error) from error

    def _stop_other_gangs(self, spec: WorkerSpec) -> None:
        """End the workers that have a gang: two would slow each other down."""
        for other in [other for other in self._running if other.gang and other != spec]:
            self._running.pop(other).stop()

    def _started(self, spec: WorkerSpec) -> WorkerProcess:
        worker = self._loaded.pop(spec, None)
        if worker is None or not worker.is_alive():
            if worker is not None:
                worker.kill()  # it died while it waited
            # Known before it is ready, so that Ctrl-C meanwhile ends it too.
            worker = self._running[spec] = self._process(spec)
            worker.load()
        self._running[spec] = worker
        return worker

    def _beginning(self, spec: WorkerSpec, worker: WorkerProcess) -> Iterator[list[Any]]:
        """Have a worker begin its session; yields what it says meanwhile."""
        try:
            worker.begin_session(self._session_of(spec))
            yield from worker.until_begun()
        except WorkerDied as error:
            self._running.pop(spec).kill()
            raise self._note_failure(spec, error, _NOT_BEGUN) from error

    def _note_failure(
        self,
        spec: WorkerSpec,
        error: FrameworkUnavailable | WorkerDied,
        what: str = "did not start",
    ) -> FrameworkBroken:
        """Count a failed start, and return the error of the case that needed it."""
        failure = f"the worker of {spec.framework} {what}"
        how = error.how if isinstance(error, WorkerDied) else error
        self._failed_starts[spec].append(f"{failure}: {how}")
        return FrameworkBroken(f"{failure}: {error}")

    def _process(self, spec: WorkerSpec) -> WorkerProcess:
        return WorkerProcess(
            spec, self._threads, inherit_output=self._inherit_output, tick=self._tick
        )

    def stop(self) -> None:
        """End all workers, side by side, letting them tear down their fixtures."""
        for worker in (*self._loaded.values(), *self._running.values()):
            worker.dismiss()
        for workers in (self._loaded, self._running):
            for spec in [*workers]:
                workers[spec].stop()
                del workers[spec]

    def kill(self) -> None:
        """End all workers at once."""
        for workers in (self._loaded, self._running):
            while workers:
                workers.popitem()[1].kill()


def _use(worker: WorkerProcess, turns: Turns | None) -> tuple[float, float]:
    """The time without that for which a worker has waited for others, and its processor time."""
    now_s, used_s = worker.use()
    return now_s - (turns.waited_s() if turns else 0.0), used_s


def _heard(worker: WorkerProcess, deadline: _Deadline, turns: Turns | None) -> list[Any]:
    """The next message of a worker, or of one that takes turns that there is none yet."""
    if turns is None:
        return worker.receive(*deadline.first)
    deadline.look(waits=turns.waits())
    return worker.received(*deadline.first) or [PENDING, None]
