"""The worker: one framework in a process of its own, as a pytest session without a terminal.

It loads its framework, then runs the node ids that it is sent and returns serialised reports, as
pytest-xdist's workers do. It does not pose as one (``config.workerinput``): plugins would look for
what their own half in xdist's controller has sent them.

Messages have a kind and values:

====================================  ============================================================
from the worker                       meaning
====================================  ============================================================
``("loaded", version)``               the framework is imported, by that version of fwbench
``("unavailable", why, what, bool)``  it cannot be: reason, remedy, whether a package is missing
``("manifest", values)``              answer to ``describe``
``("begun",)``                        the session has collected its cases, and waits for node ids
``("report", values)``                a test report, serialised
``("epoch", values)``                 a training loop has finished an epoch
``("rounds", None)``                 rounds begin, or have ended; it waits for ``go on``
``("probed", values)``                a probe has found these facts of a case
``("warning", values)``               a warning that a test caused
``("deadline", seconds, overdue)``    pytest-timeout has set a limit, or lifted it: None
``("stopped", [reason, status])``     a test asked the whole session to stop, and to exit with that
``("done", problem, over)``           a node id has been run; ``problem`` says why if it was not;
                                      whether this process is of no further use
====================================  ============================================================

====================================  ============================================================
from the parent                       meaning
====================================  ============================================================
``("describe",)``                     tell what the framework is and has
``("session", session)``              begin a pytest session; see :mod:`~fwbench.plugin.handover`
``("run", node id, next, place)``     run a case; the next node id decides which fixtures stay; the
                                      place is where it takes turns, or empty
``("go on",)``                        the answer to ``rounds``
====================================  ============================================================

A closed connection ends the worker.
"""

import faulthandler
import gc
import os
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest
from _pytest._io import TerminalWriter
from _pytest.config import Config

from fwbench.cases import timing  # noqa: F401 (functions as they are before the framework is there)
from fwbench.errors import FrameworkMissing, FrameworkUnavailable
from fwbench.frameworks.contract import Framework, leaves_well
from fwbench.frameworks.registry import load
from fwbench.machine import forget_reference_variables
from fwbench.measure import core_speed
from fwbench.measure.warmup import wait_until_idle
from fwbench.plugin import compiled_code, handover
from fwbench.plugin.gangs import is_cold
from fwbench.plugin.host import BenchmarkSession
from fwbench.plugin.session import CELL, OWN_MANIFEST
from fwbench.processes import process
from fwbench.processes.channel import Channel
from fwbench.terms.manifest import Manifest
from fwbench.terms.names import framework_of
from fwbench.turns import visits
from fwbench.version import __version__


def main() -> None:
    """Entry point; arguments of the process: connection's descriptor, framework, threads."""
    descriptor, framework, threads = sys.argv[1:]
    process.initialize()
    forget_reference_variables()  # NumPy has been imported with this module
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        _serve(Channel(socket.socket(fileno=int(descriptor))), framework, int(threads))


def _serve(channel: Channel, name: str, threads: int) -> None:
    if channel.readable():  # the parent sends nothing yet: it died before it could be noticed
        return
    core_speed.notice()
    own_threads = psutil.Process().num_threads()
    gc.disable()  # what imports make stays: looking for cycles in it doubles TensorFlow's time
    try:
        framework = load(framework_of(name), threads)
    except FrameworkUnavailable as error:
        missing = isinstance(error, FrameworkMissing)
        channel.send("unavailable", error.reason, error.remedy, missing)
        return
    gc.freeze()
    gc.enable()
    core_speed.notice()
    channel.send("loaded", __version__)
    kind, *values = channel.receive()
    if kind == "describe":
        from fwbench.machine import cpu_model
        from fwbench.measure import nvml

        manifest = nvml.named(framework.manifest(cpu_model()))
        channel.send("manifest", manifest.to_json())
        _, *values = channel.receive()
    _run_session(channel, framework, values[0], own_threads)
    gc.freeze()  # the interpreter would look for cycles in what is left, for 0.2 s


def _run_session(
    channel: Channel, framework: Framework, session: dict[str, Any], own_threads: int
) -> None:
    path = session["path"]
    sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]
    core_speed.notice(session["loop_s"])
    options = handover.unpacked(session["options"])
    # As on a command line, where plugins that are not wanted are not even imported.
    unwanted = [word for name in session["unwanted"] for word in ("-p", name)]
    config = Config.fromdictargs(options, [*unwanted, *session["files"]])
    # What a plugin would write to the terminal goes to the log: pytest-timeout dumps stacks.
    writer = TerminalWriter(sys.__stderr__)
    config.get_terminal_writer = lambda: writer  # type: ignore[method-assign]
    config.stash[OWN_MANIFEST] = Manifest.from_json(session["manifest"])
    hooks = WorkerHooks(channel, config, framework, own_threads)
    config.pluginmanager.register(hooks, "fwbench-worker")
    config.hook.pytest_cmdline_main(config=config)


#: How long after its limit pytest-timeout gets to end a test by a signal, which Python code heeds
#: and a call into a library does not.
_SIGNAL_GRACE_S = 2.0

#: The plugins of pytest that write its cache of failed tests and the like.
_CACHE_WRITERS = ("lfplugin", "nfplugin", "stepwiseplugin")

#: The exit status of a fork that has run its case.
_DONE = 64


def _forked() -> int:
    """Fork, as :func:`os.fork`; the framework says that it may be, with its threads."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        return os.fork()


def _end_unless_done(pid: int) -> None:
    """Wait for a fork; end as it did if that was before its case was over."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        faulthandler.disable()  # it has written its traceback
        os.kill(os.getpid(), -status)
    if status != _DONE:
        os._exit(status)


def _has_streams() -> bool:
    """False if a case has closed what every process has: whoever came next would fail for it."""
    with suppress(OSError):
        return all(os.fstat(descriptor) for descriptor in range(3))
    return False


class WorkerHooks:
    """The hooks that make a pytest session run what it is sent.

    Args:
        own_threads: those of this process before its framework: the main one, and those that
            NumPy's OpenBLAS ends before a fork, and starts again for a product.
    """

    def __init__(
        self, channel: Channel, config: pytest.Config, framework: Framework, own_threads: int
    ) -> None:
        self.channel = channel
        self.config = config
        self.framework = framework
        self._own_threads = own_threads
        self.items: dict[str, pytest.Item] = {}
        self.uncollected: list[str] = []
        self.failed = False
        self._times = not config.getoption("benchmark_disable")

    def pytest_sessionstart(self) -> None:
        """Leave the cache of failed tests to the parent, which knows all of them."""
        for name in _CACHE_WRITERS:
            self.config.pluginmanager.unregister(name=name)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Pass on ``pytest.exit`` and a KeyboardInterrupt that a test raised."""
        status = getattr(excinfo.value, "returncode", None)
        self.channel.send("stopped", [str(excinfo.value) or excinfo.typename, status])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep why a file could not be collected here."""
        if report.failed:
            self.uncollected.append(str(report.longrepr))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Index the items by their node ids."""
        self.items = {item.nodeid: item for item in session.items}
        gc.freeze()  # the interpreter would go over them every few cases, and copy them in forks
        core_speed.notice()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        """Run what the parent sends until it hangs up."""
        from fwbench.plugin import case  # which the collection has imported

        self.channel.send("begun")
        parent = os.getpid()
        for nodeid, following, place in self._requests():
            if following is None or not self._is_worth_a_fork(nodeid):
                with visits.seated(place):
                    self._run(nodeid, following, is_over=self._must_be_cold(following))
                continue
            case.read_data(self.items[nodeid])  # once for all forks
            if pid := _forked():
                _end_unless_done(pid)
            else:
                process.tie(parent)
                process.initialize()
                self._run(nodeid, None)
                os._exit(_DONE)
        return True

    def _must_be_cold(self, nodeid: str | None) -> bool:
        """True if a case is timed, and no other may run before it in its process."""
        item = self.items.get(nodeid or "")
        return self._times and item is not None and is_cold(item)

    def _is_worth_a_fork(self, nodeid: str) -> bool:
        """True if a fork is as cold as a new process, and leaves this one so for further cases."""
        if not self._must_be_cold(nodeid) or self.items[nodeid].stash[CELL].gang:
            return False
        threads = self.framework.forks
        return threads is not None and psutil.Process().num_threads() <= self._own_threads + threads

    def _run(self, nodeid: str, following: str | None, *, is_over: bool = False) -> None:
        item, problem = self.items.get(nodeid), None
        if item is None:
            unknown = f"{nodeid} was not collected in the worker"
            advice = "the id of a case must be the same in every process"
            problem = "\n".join([f"{unknown}; {advice}", *self.uncollected])
        else:
            nextitem = self.items.get(following or "")
            compiled_code.empty()
            self.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if self._times:
                wait_until_idle()  # for the sake of the next framework
        sys.stdout.flush()
        over = self._leave(item, is_last=following is None) or is_over or not _has_streams()
        self.channel.send("done", problem, over)

    def _leave(self, item: pytest.Item | None, *, is_last: bool) -> bool:
        """Give back what an item has left on its GPU; returns whether this process must end for it.

        It must where a GPU does not work any more, for this process; and after its last case, since
        other frameworks need the memory that a process keeps as long as it lives.
        """
        failed, self.failed = self.failed, False
        cell = None if item is None else item.stash.get(CELL, None)
        if cell is None or cell.gap or cell.device == "cpu":
            return False
        return is_last or not leaves_well(self.framework, cell.device, failed=failed)

    def _requests(self) -> Iterator[tuple[str, str | None, str]]:
        with suppress(EOFError):
            while True:
                _, nodeid, following, place = self.channel.receive()
                yield nodeid, following, place

    def mark_rounds(self) -> None:
        """Let the parent read the time and this process' processor time, and wait until it has."""
        self.channel.send("rounds", None)
        self.channel.receive()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send a report to the parent."""
        self.failed |= report.failed
        values = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.channel.send("report", values)
        if report.when == "teardown":
            BenchmarkSession(self.config).clear()  # the parent has the records

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_set_timer(self, settings: Any) -> bool | None:
        """Have the parent end this process where pytest-timeout would, or cannot.

        Its method ``signal`` fails the test, and the process goes on. Its method ``thread`` ends
        the process: only the parent can still report the test then.
        """
        by_signal = settings.method == "signal"
        overdue = f"did not finish the case within {settings.timeout:g} s (pytest-timeout)"
        grace_s = _SIGNAL_GRACE_S if by_signal else 0.0
        self.channel.send("deadline", settings.timeout + grace_s, overdue)
        return None if by_signal else True

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_timeout_cancel_timer(self) -> None:
        """Lift the limit."""
        self.channel.send("deadline", None, "")

    def pytest_warning_recorded(
        self, warning_message: Any, when: str, nodeid: str, location: Any
    ) -> None:
        """Send a warning of a test; those of the collection the parent has seen itself."""
        if when != "runtest":
            return
        category = warning_message.category
        self.channel.send(
            "warning",
            {
                "message": str(warning_message.message),
                "category": (category.__module__, category.__qualname__),
                "filename": warning_message.filename,
                "lineno": warning_message.lineno,
                "nodeid": nodeid,
                "location": location,
            },
        )
