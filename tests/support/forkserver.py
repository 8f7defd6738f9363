"""Python programs that are forked from a process which has imported what they need.

Most of the processor time of a small pytest session goes into imports, and again in each of its
workers. A fork server imports once. What it forks is a child of the process that has asked for it,
as if ``subprocess`` had started it: ``Popen`` waits for it, signals it and reads from it. In a
forked program ``subprocess`` has a fork server, too, so that workers and launches are forked, and
the guards of launches. A fork hears the signals that end a program, and ignores ``preexec_fn``.

Forked is what gives the same process as a start: another interpreter, other variables that an
interpreter reads when it starts, or a folder that hides a module which is imported already, and the
program is started. A test of how processes start has them all started: the fixture ``started``.

A server may have imported a framework, too, as seconds go into that. It computes with one thread;
what is to have more, or another value of a toggle, which is read at the import, is started.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from fwbench.frameworks import probes
from fwbench.machine import THREAD_VARIABLES, thread_variables
from fwbench.terms.toggles import TOGGLES, variable

#: What sessions of fwbench import, and its workers before their framework.
_PRELOADED = (
    *("fwbench.cli", "fwbench.plugin.case", "fwbench.plugin.worker", "fwbench.plugin.runner"),
    *("fwbench.plugin.race", "fwbench.plugin.gate", "fwbench.report.terminal.screen"),
    *("fwbench.frameworks.numpy.framework", "fwbench.report.writers", "psutil", "pynvml"),
)

#: Frameworks of which a server saves seconds.
SLOW_TO_IMPORT = ("mxnet", "tensorflow", "torch")

#: How environment variables begin that are read once: by the interpreter, coverage in it, the C
#: library and NumPy. Some may differ: a fork has its own path, and fwbench sets NumPy's threads,
#: and for how long they spin: the server's NumPy has none.
_READ_ONCE = ("PYTHON", "COV", "LANG", "LC_", "LD_", "MALLOC_", "NPY_", "OPENBLAS_")
_MAY_DIFFER = ("PYTHONPATH", "OPENBLAS_NUM_THREADS", "OPENBLAS_THREAD_TIMEOUT")

#: What frameworks and their libraries read when they are imported.
_READ_BY_FRAMEWORKS = (*THREAD_VARIABLES, *map(variable, TOGGLES), probes.VARIABLE)

#: What is meant for the session that starts the server.
_OURS = ("PYTHONPATH", "PYTEST_PLUGINS", "PYTEST_XDIST_WORKER")

_PR_SET_CHILD_SUBREAPER = 36

_MESSAGE_BYTES = 2**20
_DESCRIPTORS = 16

#: How the names of modules end, and of packages.
_IMPORTABLE = (".py", ".pyc", ".so", "")

#: More than any process here has open: descriptors wait there until their own numbers are free.
_HIGH = 500

#: Has what is started within a block forked from a process that has imported a framework.
Forking = Callable[[str], AbstractContextManager[None]]

_start_program = subprocess._fork_exec  # type: ignore[attr-defined]


class Imported(NamedTuple):
    """The framework that a server has imported, if it has.

    Attributes:
        read: environment variables on which it depends; None where one was not set.
        written: those that it has set.
    """

    read: Mapping[str, str | None] = {}
    written: Mapping[str, str] = {}

    @classmethod
    def now(cls, framework: str) -> Imported:
        """Import all modules of a framework of fwbench's own, and what they need."""
        before = dict(os.environ)
        package = importlib.import_module(f"fwbench.frameworks.{framework}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
        written = dict(os.environ.items() - before.items())
        return cls({name: before.get(name) for name in _READ_BY_FRAMEWORKS}, written)


@dataclass(frozen=True)
class Program:
    """A Python program as ``subprocess`` would start it.

    Attributes:
        arguments: the command line.
        folder: where it is started.
        variables: all of its environment variables.
        descriptors: the numbers that its descriptors have in it.
        new_session: whether it leads a process session of its own.
    """

    arguments: Sequence[str]
    folder: str
    variables: dict[str, str]
    descriptors: Sequence[int]
    new_session: bool

    @property
    def _is_safe(self) -> bool:
        return "-P" in self.arguments[1:2]

    @property
    def _is_guard(self) -> bool:
        """True for :mod:`fwbench.processes.guard`, which needs the standard library alone."""
        *options, script = self.arguments[1:4]
        return options == ["-I", "-S"] and script.endswith("/fwbench/processes/guard.py")

    @property
    def _program(self) -> Sequence[str]:
        """The arguments behind those of the interpreter: ``-m`` or ``-c``, and what it runs."""
        return self.arguments[1 + self._is_safe :]

    @property
    def _path(self) -> list[str]:
        """The folders of modules that come before the interpreter's own."""
        if self._is_guard:
            return []
        current = {"-m": self.folder, "-c": ""}[self._program[0]]
        given = filter(None, self.variables.get("PYTHONPATH", "").split(os.pathsep))
        return [current] * (not self._is_safe) + [str(Path(self.folder, entry)) for entry in given]

    def can_be_forked(self, imported: Imported) -> bool:
        """True where a fork of this process becomes what a start would give."""
        return (
            self.arguments[0] == sys.executable
            and (self._program[:1] in (["-m"], ["-c"]) or self._is_guard)
            and _read_once(self.variables) == _read_once(os.environ)
            and not any(_hides(entry or self.folder) for entry in self._path)
            and all(self.variables.get(name, was) == was for name, was in imported.read.items())
        )

    def become(
        self, received: Sequence[int], server: ForkServer, end: _End, imported: Imported
    ) -> None:
        """Run the program in this process, which was forked for it.

        Args:
            received: its descriptors, by the numbers that they have here.
            end: is called when all else is over.
        """
        self._take(received)
        for name in ("stdin", "stdout", "stderr"):
            stream = _reopened(getattr(sys, name))
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update({**self.variables, **imported.written})
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        sys.path[:0] = self._path
        importlib.invalidate_caches()
        subprocess._fork_exec = server.fork_exec  # type: ignore[attr-defined]
        end.server = server
        try:
            self._run()
        except SystemExit as leaving:
            end.status = leaving.code
            raise
        end.status = None

    def _run(self) -> None:
        sys.orig_argv[:] = self.arguments
        if self._is_guard:
            sys.argv[:] = self.arguments[3:]
            runpy.run_path(sys.argv[0], run_name="__main__")
            return
        kind, program, *rest = self._program
        sys.argv[:] = [kind, *rest]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        if kind == "-m":
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            code = compile(program, "<string>", "exec", dont_inherit=True)
            exec(code, main.__dict__)  # noqa: S102 (as the interpreter does)

    def _take(self, received: Sequence[int]) -> None:
        waiting = [_raised(descriptor) for descriptor in received]
        for descriptor, number in zip(waiting, self.descriptors, strict=True):
            os.dup2(descriptor, number)
            os.close(descriptor)


class _End:
    """The last that a fork does: registered before all others, it is called after them.

    Attributes:
        server: of the fork.
        status: the argument of SystemExit, None at the end of the program; a whole number is the
            exit status as it is, and whatever else happens is left to the interpreter.
    """

    server: ForkServer
    status: Any = ...

    def __call__(self) -> None:
        self.server.stop()
        if self.status is None or isinstance(self.status, int):
            sys.stdout.flush()
            sys.stderr.flush()
            # Taking the interpreter apart would copy most of the memory that forks share.
            os._exit((self.status or 0) & 0xFF)


def _raised(descriptor: int) -> int:
    """The same with a number that no program gives to a descriptor."""
    raised = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(descriptor)
    return raised


def _reopened(stream: TextIOWrapper) -> TextIOWrapper:
    """A standard stream of what its descriptor is now."""
    through = stream.write_through
    binary = open(  # noqa: SIM115 (open as long as the process lives)
        stream.fileno(), f"{stream.mode}b", 0 if through else -1, closefd=False
    )
    by_lines = stream.line_buffering or (binary.isatty() and not through)
    return TextIOWrapper(binary, stream.encoding, stream.errors, None, by_lines, through)


def _read_once(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(_READ_ONCE) and name not in _MAY_DIFFER
    }


def _hides(folder: str) -> bool:
    """True where a folder has a module of the name of one that has been imported."""
    entries = [path for path in Path(folder).glob("*") if path.suffix in _IMPORTABLE]
    names = {path.name.partition(".")[0] for path in entries}
    return not names.isdisjoint({*sys.modules, "sitecustomize", "usercustomize"})


class ForkServer:
    """The fork server of this process.

    Args:
        wait: waits for the server, a child of this process, to end.
    """

    def __init__(self, connection: socket.socket, wait: Callable[[], Any]) -> None:
        self._connection = connection
        self._wait = wait

    @classmethod
    def start(cls, options: str = "", framework: str = "") -> ForkServer:
        """Start one with a fresh interpreter.

        Args:
            options: of the session of pytest that imports what is forked.
            framework: that is imported, too; empty for none.
        """
        local, remote = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        process = subprocess.Popen(
            [sys.executable, __file__, str(remote.fileno()), framework],
            # A process with threads is not to be forked, and OpenBLAS starts some.
            env={
                **os.environ,
                **dict.fromkeys(_OURS, ""),
                **thread_variables(1),
                "PYTEST_ADDOPTS": options,
            },
            pass_fds=[remote.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        remote.close()
        return cls(local, process.wait)

    def run(self, arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """``subprocess.run`` of a program that is forked.

        Args:
            options: those of ``subprocess.run``.
        """
        with self.forking():
            return subprocess.run(arguments, **options)  # noqa: PLW1510 (as the caller says)

    @contextmanager
    def forking(self) -> Iterator[None]:
        """Have ``subprocess`` fork programs, wherever it is used, until the block is left."""
        before = subprocess._fork_exec  # type: ignore[attr-defined]
        subprocess._fork_exec = self.fork_exec  # type: ignore[attr-defined]
        try:
            yield
        finally:
            subprocess._fork_exec = before  # type: ignore[attr-defined]

    def fork_exec(self, *call: Any) -> int:
        """Start a program as ``subprocess`` asks; returns its process id.

        Args:
            call: what ``Popen`` gives to :mod:`!_posixsubprocess`.
        """
        arguments, _, _, passed, folder, variables = call[:6]
        stdin, _, _, stdout, _, stderr, _, errpipe_write, _, new_session = call[6:16]
        given = (
            dict(assignment.split(b"=", 1) for assignment in variables)
            if variables
            else os.environb
        )
        numbers = {number: number for number in passed if number != errpipe_write}
        for number, descriptor in enumerate((stdin, stdout, stderr)):
            numbers[number] = number if descriptor < 0 else descriptor
        program = Program(
            arguments=[os.fsdecode(argument) for argument in arguments],
            folder=str(Path(os.fsdecode(folder or "")).absolute()),
            variables={os.fsdecode(name): os.fsdecode(value) for name, value in given.items()},
            descriptors=[*numbers],
            new_session=bool(new_session),
        )
        return self._fork(program, [*numbers.values()]) or _start_program(*call)

    def _fork(self, program: Program, descriptors: Sequence[int]) -> int:
        """The process id of a fork that becomes a program; 0 if it has to be started."""
        message = json.dumps(asdict(program)).encode()
        with _adopting():
            socket.send_fds(self._connection, [message], descriptors)
            return int(self._connection.recv(_MESSAGE_BYTES))

    def stop(self) -> None:
        """End the server: nothing more is forked."""
        self._connection.close()
        self._wait()


@contextmanager
def _adopting() -> Iterator[None]:
    """Make this process the parent of descendants that lose theirs."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0)


# In the server


class _Imports:
    """A plugin that imports what is forked: as a part of a session, which rewrites assertions."""

    def pytest_collection(self) -> None:
        import cpuinfo

        for name in _PRELOADED:
            importlib.import_module(name)
        cpuinfo.get_cpu_info = functools.cache(cpuinfo.get_cpu_info)
        cpuinfo.get_cpu_info()  # starts programs, for every file that pytest-benchmark writes


def _run_a_session() -> None:
    """Have pytest import itself and its plugins."""
    import pytest

    with tempfile.TemporaryDirectory() as folder:
        arguments = ["--rootdir", folder, "-c", os.devnull, "-p", "no:cacheprovider", folder]
        status = pytest.main(arguments, plugins=[_Imports()])
    assert status == pytest.ExitCode.NO_TESTS_COLLECTED
    _forget_the_session()


def _forget_the_session() -> None:
    """Leave nothing behind that a fork would find otherwise if it had been started."""
    tempfile.tempdir = None  # of TMPDIR
    for name in [name for name in sys.modules if name.partition(".")[0] == "xdist"]:
        del sys.modules[name]  # keeps the path of modules as it was at its import


def _serve(requests: socket.socket, imported: Imported) -> tuple[Program, Sequence[int]]:
    """Fork what is asked for; returns in each fork, with its program and its descriptors."""
    while True:
        message, received, _, _ = socket.recv_fds(requests, _MESSAGE_BYTES, _DESCRIPTORS)
        if not message:
            os._exit(0)  # the process that could ask has ended
        program = Program(**json.loads(message))
        pid = _fork_orphan() if program.can_be_forked(imported) else None
        if pid == 0:
            return program, received
        for descriptor in received:
            os.close(descriptor)
        requests.send(str(pid or 0).encode())


def _fork_orphan() -> int:
    """Fork a process that has lost its parent, so that whoever asked for it adopts it.

    Returns:
        Its process id; 0 in itself.
    """
    output, say = os.pipe()
    adopted, adopt = os.pipe()
    parent = os.fork()
    if parent == 0:
        if os.fork() > 0:
            os._exit(0)
        os.write(say, str(os.getpid()).encode())
        os.close(adopt)
        os.read(adopted, 1)  # the end, when the parent has gone
    else:
        os.waitpid(parent, 0)
        os.close(adopt)
    pid = int(os.read(output, 32)) if parent else 0
    for descriptor in (output, say, adopted):
        os.close(descriptor)
    return pid


def main(descriptor: int, framework: str) -> None:
    """Serve; each fork gets a server of its own before it becomes its program."""
    end = _End()
    atexit.register(end)
    del sys.path[0]  # the folder of this file
    _run_a_session()
    imported = Imported.now(framework) if framework else Imported()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=descriptor)
    while True:
        program, received = _serve(requests, imported)
        requests.close()
        if program.new_session:
            os.setsid()
        local, requests = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.fork()
        if server:
            break
        for inherited in (local.detach(), *received):
            os.close(inherited)
    requests.close()
    servant_end = socket.socket(fileno=_raised(local.detach()))
    servant = ForkServer(servant_end, functools.partial(os.waitpid, server, 0))
    program.become(received, servant, end, imported)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
