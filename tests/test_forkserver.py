"""The fork server gives the process that a start would give, or starts it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench.machine import reference_variables, thread_variables
from support.forkserver import Forking, ForkServer

#: All that a program can see of how it came to be.
_SHOWS = """
import json, os, random, signal, sys, threading
print(json.dumps({
    "argv": sys.argv,
    "orig_argv": sys.orig_argv,
    "path": sys.path,
    "name": __name__,
    "folder": os.getcwd(),
    "variables": dict(os.environ),
    "stdin": sys.stdin.read(),
    "streams": [[s.encoding, s.isatty(), s.line_buffering] for s in (sys.stdout, sys.stderr)],
    "descriptors": [d for d in range(3, 100) if os.path.exists(f"/proc/self/fd/{d}")],
    "signals": [str(signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
    "leads": os.getsid(0) == os.getpid(),
    "parent": os.getppid(),
    "threads": threading.active_count(),
    "metadata": sorted(f.__module__ for f in sys.meta_path if isinstance(f, type)),
}))
"""

_IS_FORKED = "import sys; print('_pytest' in sys.modules)"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _shown(run: Run, arguments: list[str], **options: Any) -> Any:
    done = run([sys.executable, *arguments], text=True, stdout=subprocess.PIPE, **options)
    return json.loads(done.stdout)


@pytest.mark.parametrize("how", ["-c", "-P -c", "-m", "-P -m"])
def test_a_fork_is_what_a_start_gives(how: str, tmp_path: Path, fork_server: ForkServer) -> None:
    """Arguments, path, environment, descriptors, signals, session: a program sees no difference."""
    (tmp_path / "shows.py").write_text(_SHOWS, encoding="utf-8")
    *options, kind = how.split()
    program = {"-c": _SHOWS, "-m": "shows"}[kind]
    read, write = os.pipe()
    given: dict[str, Any] = {
        "cwd": tmp_path,
        "env": {"PATH": os.defpath, "PYTHONPATH": str(tmp_path), "MINE": "gr\u00f6\u00dfe"},
        "pass_fds": [write],
        "input": "given",
        "start_new_session": True,
    }
    arguments = [*options, kind, program, "an argument", "-x"]
    forked = _shown(fork_server.run, arguments, **given)
    assert forked == _shown(subprocess.run, arguments, **given)
    assert write in forked["descriptors"]
    assert forked["parent"] == os.getpid()
    os.close(read)
    os.close(write)


_ENDS = {
    "exit status": ("raise SystemExit(7)", 7, ""),
    "at once": ("import os; os._exit(3)", 3, ""),
    "exception": ("1 / 0", 1, "ZeroDivisionError: division by zero"),
    "signal": ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
    "interrupt": ("import os; os.kill(os.getpid(), 2)", -signal.SIGINT, "KeyboardInterrupt"),
    "at exit": ("import atexit; atexit.register(print, 'bye')", 0, ""),
    "finalizer": ("import weakref; weakref.finalize(print, print, 'bye')", 0, ""),
}


@pytest.mark.parametrize(("program", "status", "message"), _ENDS.values(), ids=_ENDS)
def test_a_fork_ends_as_it_would(
    program: str, status: int, message: str, fork_server: ForkServer
) -> None:
    """Its status is the program's, and what it wrote has been read; no process is left."""
    before = psutil.Process().children(recursive=True)
    done = fork_server.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ("bye\n" if "bye" in program else "")
    _, alive = psutil.wait_procs(
        [process for process in psutil.Process().children(recursive=True) if process not in before],
        10.0,
    )
    assert alive == []


def test_what_takes_too_long_is_ended(fork_server: ForkServer) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    with pytest.raises(subprocess.TimeoutExpired):
        fork_server.run(command, capture_output=True, timeout=0.2)


def test_what_a_fork_starts_is_forked(tmp_path: Path, fork_server: ForkServer) -> None:
    """A session's workers, and its launches, whose workers are; whatever else is in the folder."""
    (tmp_path / "pytest.ini").touch()
    program = _IS_FORKED
    for _ in range(2):
        program = (
            f"import subprocess, sys; subprocess.run([sys.executable, '-P', '-c', {program!r}])"
        )
    command = [sys.executable, "-c", program]
    given = os.environ | thread_variables(3) | reference_variables()  # as workers are
    done = fork_server.run(command, cwd=tmp_path, env=given, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


_STARTED: dict[str, tuple[list[str], dict[str, str]]] = {
    "another interpreter": ([os.path.realpath(sys.executable), "-I", "-c", _IS_FORKED], {}),
    "an option of the interpreter": ([sys.executable, "-X", "utf8", "-c", _IS_FORKED], {}),
    "a variable of the interpreter": (
        [sys.executable, "-c", _IS_FORKED],
        {"PYTHONWARNINGS": "ignore"},
    ),
    "a module that hides another": ([sys.executable, "-P", "-c", _IS_FORKED], {"PYTHONPATH": "."}),
}


@pytest.mark.parametrize(("command", "variables"), _STARTED.values(), ids=_STARTED)
def test_what_a_fork_cannot_be_is_started(
    command: list[str], variables: dict[str, str], tmp_path: Path, fork_server: ForkServer
) -> None:
    """Where the interpreter, what it reads at its start, or a module in its path is another."""
    (tmp_path / "fwbench.py").touch()
    done = fork_server.run(
        command, cwd=tmp_path, env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("variables", "modules"),
    [
        ({}, "True"),
        (thread_variables(1), "True"),
        (thread_variables(2), "False"),
        ({"FWBENCH_ONEDNN": "off"}, "False"),
    ],
    ids=["none", "one thread", "two threads", "a toggle"],
)
def test_a_server_has_imported_a_framework(
    variables: dict[str, str], modules: str, forking_with: Forking
) -> None:
    """With one thread and no toggles: what is to have others is started."""
    says = "import sys; print('fwbench.frameworks.numpy.replicas' in sys.modules)"
    with forking_with("numpy"):
        output = subprocess.check_output(
            [sys.executable, "-c", says], env={**os.environ, **variables}, text=True
        )
    assert output == f"{modules}\n"
