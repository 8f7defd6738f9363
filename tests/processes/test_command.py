"""Programs run to their end, and end with whoever waits for them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psutil
import pytest

from fwbench.processes import command


def python(text: str) -> list[str]:
    """The command that runs a piece of Python."""
    return [sys.executable, "-c", text]


def test_lines_are_told_as_they_come_and_the_last_are_kept() -> None:
    """Of standard output and standard error, in their order, without their ends."""
    told: list[str] = []
    text = "import sys\nfor i in range(5): print(i, file=(sys.stdout, sys.stderr)[i % 2], flush=1)"
    done = command.run(python(text), keep_lines=2, say=told.append)
    assert told == ["0", "1", "2", "3", "4"]
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


@pytest.mark.parametrize("own_group", [True, False])
def test_who_is_interrupted_leaves_no_program_behind(own_group: bool) -> None:
    """The program is ended when whoever hears its lines raises; the exception goes on."""
    started: list[psutil.Process] = []

    def interrupt(line: str) -> None:
        started.append(psutil.Process(int(line)))
        raise KeyboardInterrupt

    text = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        command.run(python(text), keep_lines=1, say=interrupt, own_group=own_group)
    assert time.monotonic() - begin < 30
    assert not started[0].is_running()


def test_a_group_is_ended_as_a_whole() -> None:
    """What a program has started ends with it, where it has a group of its own."""
    started: list[psutil.Process] = []

    def interrupt(line: str) -> None:
        started.append(psutil.Process(int(line)))
        raise KeyboardInterrupt

    text = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with pytest.raises(KeyboardInterrupt):
        command.run(python(text), keep_lines=1, say=interrupt, own_group=True)
    psutil.wait_procs(started, timeout=10)
    assert not started[0].is_running() or started[0].status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("run", [lambda given: command.run(given, keep_lines=1), command.capture])
def test_a_program_that_is_not_there_is_an_error(run: object) -> None:
    """Whoever asked knows what the program is for, and says so."""
    assert callable(run)
    with pytest.raises(FileNotFoundError):
        run(["no-such-program"])
