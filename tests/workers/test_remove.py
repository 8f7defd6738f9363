"""Named environments are removed, and nothing is left of an installation that is interrupted."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from fwbench import cli
from fwbench.errors import UsageError
from fwbench.processes import scratch
from fwbench.workers import install
from support import programs
from support.suites import listen
from support.venvs import Maker

# Interruptions


#: Installers start programs of their own, and take longer than anyone waits here.
_INSTALLING = """\
import subprocess
(folder / "half").mkdir(exist_ok=True)
subprocess.Popen(["sleep", "600"])
(here / "installing").touch()
time.sleep(600)
"""


_PATIENCE_S = 60.0


class Installing:
    """``fwbench env add second`` in a process of its own, while the installer is at work.

    Attributes:
        process: of fwbench.
        installers: what that has started, and what these have.
    """

    def __init__(self, env: Maker) -> None:
        env.uv(install=_INSTALLING)
        with (env.path / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "fwbench", "env", "add", "second", "numpy"],
                cwd=env.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                preexec_fn=listen,  # noqa: PLW1509
            )
        deadline = time.monotonic() + _PATIENCE_S
        while not (env.programs / "installing").exists():
            output = (env.path / "stderr").read_text(encoding="utf-8")
            assert self.process.poll() is None, output
            assert time.monotonic() < deadline, output
            time.sleep(0.02)
        self.installers = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.installers) == 3, "a guard, an installer, and what that has started"

    def assert_ended(self) -> None:
        _, alive = psutil.wait_procs(self.installers, timeout=10.0)
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for installer in self.installers:
            with suppress(psutil.NoSuchProcess):
                installer.kill()


@pytest.fixture
def installing(env: Maker) -> Iterator[Installing]:
    """An installation that goes on until the test is over."""
    started = Installing(env)
    yield started
    started.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_installation_leaves_nothing(
    env: Maker, installing: Installing, number: signal.Signals
) -> None:
    """No signal leaves half an environment, a temporary file, an installer or what it has started.

    A compiler that goes on, say, would write into a folder that has gone.
    """
    assert (env.environments.folder_of("second") / "half").exists()
    installing.process.send_signal(number)
    assert installing.process.wait(_PATIENCE_S) == 130
    assert (env.path / "stderr").read_text(encoding="utf-8").endswith("\nfwbench: interrupted\n")
    assert env.left() == []
    installing.assert_ended()
    assert [*env.temporary.iterdir()] == []


def test_an_environment_that_is_being_made(env: Maker, installing: Installing) -> None:
    """Two cannot make one environment at a time: the second names the first, and harms nothing."""
    process = installing.process
    busy = f"second is being made by process {process.pid}; wait for it\n"
    for command in (["add", "second", "numpy"], ["remove", "second"]):
        assert env(*command, status=2)[1] == f"fwbench: error: {busy}"
    assert env("list")[0] == busy
    assert process.poll() is None
    assert (env.environments.folder_of("second") / "half").exists()
    assert env.left() == ["second"]


@pytest.mark.parametrize("command", ["add", "remove"])
def test_what_a_killed_process_has_left(env: Maker, installing: Installing, command: str) -> None:
    """Its installers end with it. What it has made is no environment, is listed, and can go.

    It hinders no other: nothing of it is in the next environment of its name.
    """
    installing.process.kill()
    installing.assert_ended()
    assert env.left() == ["second"]
    assert [path.name.startswith("fwbench-job-") for path in env.temporary.iterdir()] == [True]
    assert env("list")[0] == (
        "second is not complete, its fwbench env add was killed; fwbench env remove second\n"
    )
    assert [*env.temporary.iterdir()] == []
    if command == "remove":
        assert env("remove", "second") == ("removed second\n", "")
        assert env.left() == []
        return
    env.uv()
    env("add", "second", "numpy")
    assert [*env.environments.all()] == ["second"]
    assert not (env.environments.folder_of("second") / "half").exists()


def test_two_at_once(env: Maker) -> None:
    """One makes the environment, however close they are; the others fail, and leave nothing."""
    folder = env.environments.folder_of("second")
    together, outcomes = threading.Barrier(4), []

    def make() -> None:
        together.wait()
        try:
            with install.claimed(folder):
                together.wait()
                outcomes.append("made")
        except UsageError as error:
            outcomes.append(str(error))
            together.wait()

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    busy = f"second is being made by process {os.getpid()}; wait for it"
    assert sorted(outcomes) == ["made", busy, busy, busy]
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == ["second"]


@pytest.mark.parametrize("moment", ["before it is named", "while it is removed"])
def test_what_is_killed_beside_an_environment(env: Maker, moment: str) -> None:
    """It is not listed, and the next command removes it; not while its process is at work."""
    folder = env.environments.folder
    (folder / ".fwbench-unnamed-x").mkdir(parents=True)
    marks = ["fwbench-maker"] if moment == "before it is named" else ["fwbench-environment.json"]
    for mark in marks:
        (folder / ".fwbench-unnamed-x" / mark).touch()
    owner = scratch.take(folder / ".fwbench-unnamed-x")
    assert owner is not None
    with owner:
        assert env("list")[0].startswith("there is no environment under ")
        assert (folder / ".fwbench-unnamed-x").exists()
    env("list")
    assert [*folder.iterdir()] == []


def test_what_is_nobodys_leftover_stays(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that fwbench has not begun is refused: FWBENCH_ENVS may name any folder."""
    shared = env.path / "shared"
    (shared / "second").mkdir(parents=True)
    thesis = shared / "second" / "thesis.txt"
    thesis.write_text("the only copy", encoding="utf-8")
    monkeypatch.setenv("FWBENCH_ENVS", str(shared))
    env.uv()
    assert cli.main(["env", "add", "second", "numpy"]) != 0
    assert thesis.read_text(encoding="utf-8") == "the only copy"


def test_what_others_keep_out_of_version_control_stays(
    env: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A .gitignore that is there already is the user's: FWBENCH_ENVS may name any folder."""
    shared = env.path / "shared"
    shared.mkdir()
    (shared / ".gitignore").write_text("*.log\n", encoding="utf-8")
    monkeypatch.setenv("FWBENCH_ENVS", str(shared))
    env.uv(install="sys.exit(1)")
    env("add", "second", "numpy", status=3)
    assert (shared / ".gitignore").read_text(encoding="utf-8") == "*.log\n"


def test_what_is_removed_is_gone(env: Maker) -> None:
    """The whole folder; other environments stay, and the name is free again."""
    env.make("second", "third")
    assert env("remove", "second") == ("removed second\n", "")
    assert env.left() == ["third"]
    assert [*env.environments.all()] == ["third"]
    env.make("second")
    assert env.left() == ["second", "third"]


def test_what_is_no_environment(env: Maker) -> None:
    """It is named, with those that are; and nothing is removed, wherever a name would lead."""
    env.make("second")
    for command in ("remove", "show"):
        _, output = env(command, "secnod", status=2)
        assert output.startswith("fwbench: error: unknown environment 'secnod'")
        assert "second" in output
    for name in ("..", ".", "second/../../.."):
        assert "unknown environment" in env("remove", name, status=2)[1]
    assert env.left() == ["second"]
    assert (env.path / "pytest.ini").exists()


def test_an_environment_that_cannot_be_read_can_be_removed(env: Maker) -> None:
    """It is still listed, with what to do about it."""
    env.make("second")
    facts = env.environments.folder_of("second") / "fwbench-environment.json"
    facts.write_text("{", encoding="utf-8")
    listed, _ = env("list")
    assert listed == "second: cannot be read; fwbench env remove second, and recreate it\n"
    env("remove", "second")
    assert env.left() == []


def test_what_cannot_be_removed(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is named, with the reason."""
    env.make("second")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    _, output = env("remove", "second", status=3)
    folder = env.environments.folder_of("second")
    assert output == f"fwbench: error: cannot remove {folder}: Permission denied\n"


def test_without_environments(env: Maker) -> None:
    """The list says where they would be, and how to make one."""
    assert env("list")[0] == (
        f"there is no environment under {env.environments.folder}; make one: fwbench env add\n"
    )


def test_as_users_call_it(env: Maker) -> None:
    """The program, in a folder within the project: its output, its streams, its exit status."""
    env.uv()
    (env.path / "inner").mkdir()
    call = partial(programs.run, "-P", "-m", "fwbench", "env", cwd=env.path / "inner")
    added = call("add", "second", "numpy")
    assert added.returncode == 0, added.stderr
    assert added.stdout.endswith("measure it: pytest benchmarks --fw numpy@second\n")
    assert "installing into it" in added.stderr
    assert env.left() == ["second"]
    removed = call("remove", "third")
    assert (removed.returncode, removed.stdout) == (2, "")
    assert "unknown environment 'third'" in removed.stderr
