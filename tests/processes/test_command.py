"""Programs run to their end, and end with the process that waits for them."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from fwbench.processes import command
from support.programs import assert_ended


def python(text: str) -> list[str]:
    """The command that runs a piece of Python."""
    return [sys.executable, "-c", text]


def test_lines_are_told_as_they_come_and_the_last_are_kept() -> None:
    """Lines of standard output and standard error, in their order, without their ends."""
    lines: list[str] = []
    text = "import sys\nfor i in range(5): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=1)"
    done = command.run(python(text), keep_lines=2, say=lines.append)
    assert lines == ["0", "1", "2", "3", "4"]
    assert done == command.Finished(0, ["3", "4"])


def test_folder_variables_and_status_are_those_asked_for(tmp_path: Path) -> None:
    """Only the given variables are set, and a failure is a status, no exception."""
    text = (
        "import os, sys; print(os.getcwd(), os.environ.get('A'), 'HOME' in os.environ); sys.exit(3)"
    )
    for run in (
        lambda **given: command.run(python(text), keep_lines=9, **given).last_lines[0],
        lambda **given: command.capture(python(text), **given).output.strip(),
    ):
        assert run(folder=tmp_path, variables={"A": "b"}) == f"{tmp_path} b False"
    assert command.run(python(text), keep_lines=1).status == 3
    assert command.capture(python(text)).status == 3


def test_captured_output_keeps_apart_what_went_where() -> None:
    """Output and errors, of bytes that are no text, too."""
    text = "import sys; sys.stdout.buffer.write(b'out \\xff'); sys.stderr.write('err')"
    assert command.capture(python(text)) == command.Captured(
        0, "out \N{REPLACEMENT CHARACTER}", "err"
    )


#: A program that has started another one; it says the numbers of both.
_TWO = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(60)
"""


def _processes(line: str) -> list[psutil.Process]:
    return [psutil.Process(int(number)) for number in line.split()]


_DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


@pytest.mark.parametrize("begins", ["", _DEAF], ids=["listens", "is deaf"])
def test_an_interruption_leaves_no_program_behind(
    begins: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program and what it has started end when the function for its lines raises.

    Each gets as long as it needs for its traceback, no longer: one that does not listen is killed.
    """
    if begins:
        monkeypatch.setattr(command, "_GRACE_S", 0.2)
    started: list[psutil.Process] = []

    def interrupt(line: str) -> None:
        started.extend(_processes(line))
        raise KeyboardInterrupt

    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        command.run(python(f"{begins}{_TWO}"), keep_lines=1, say=interrupt)
    assert time.monotonic() - begin < 30
    assert len(started) == 2
    assert_ended(started)


@pytest.mark.parametrize("victim", ["parent", "guard"])
def test_a_program_ends_with_who_asked_for_it(victim: str) -> None:
    """However it was killed: with all that the program has started, or with its guard alone."""
    code = (
        "from fwbench.processes import command\n"
        f"done = command.run([{sys.executable!r}, '-c', {_TWO!r}], keep_lines=1,\n"
        "                   say=lambda line: print(line, flush=True))\n"
        "print(done.status)\n"
    )
    with subprocess.Popen(python(code), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        started = _processes(parent.stdout.readline())
        guard = started[0].parent()
        assert guard is not None
        if victim == "parent":
            parent.kill()
            assert_ended([guard, *started])
        else:
            guard.kill()
            assert_ended(started[:1])
            started[1].kill()  # the last that has the pipe
            assert parent.stdout.read() == "-9\n"


def test_what_a_program_leaves_behind_ends_with_it() -> None:
    """It would keep the pipe open, and its reader waiting."""
    text = _TWO.replace("time.sleep(60)\n", "os._exit(3)\n")
    begin = time.monotonic()
    done = command.run(python(text), keep_lines=1)
    assert done.status == 3
    assert time.monotonic() - begin < 30
    assert_ended(
        [
            psutil.Process(pid)
            for pid in map(int, done.last_lines[0].split()[1:])
            if psutil.pid_exists(pid)
        ]
    )


@pytest.mark.parametrize("run", [lambda given: command.run(given, keep_lines=1), command.capture])
def test_a_program_that_is_not_there_is_an_error(run: object) -> None:
    """The caller reports it, who knows the purpose of the program."""
    assert callable(run)
    with pytest.raises(FileNotFoundError):
        run(["no-such-program"])
