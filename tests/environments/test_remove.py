"""Named environments are removed, and nothing is left of an installation that is interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from fwbench import cli
from fwbench.environments import install
from support.installations import Maker

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
        # Ctrl-C is switched on even where the tests run in the background of a shell.
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from fwbench.cli import main; sys.exit(main())"
        )
        with (env.path / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "env", "add", "second", "numpy"],
                cwd=env.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        deadline = time.monotonic() + _PATIENCE_S
        while not (env.programs / "installing").exists():
            said = (env.path / "stderr").read_text(encoding="utf-8")
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.02)
        self.installers = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.installers) == 2

    def kill(self) -> None:
        """End everything at once."""
        self.process.kill()
        self.process.wait()
        for one in self.installers:
            with suppress(psutil.NoSuchProcess):
                one.kill()


@pytest.fixture
def installing(env: Maker) -> Iterator[Installing]:
    """An installation that goes on until the test is over."""
    started = Installing(env)
    yield started
    started.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_leaves_nothing(
    env: Maker, installing: Installing, number: signal.Signals
) -> None:
    """Neither Ctrl-C nor a termination leaves half an environment, or an installer at work."""
    assert (env.environments.folder_of("second") / "half").exists()
    installing.process.send_signal(number)
    assert installing.process.wait(_PATIENCE_S) == 130
    assert (env.path / "stderr").read_text(encoding="utf-8").endswith("\nfwbench: interrupted\n")
    assert env.left() == []
    uv = installing.installers[0]
    assert not uv.is_running()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_an_installer_has_started_ends_with_it(
    installing: Installing, number: signal.Signals
) -> None:
    """A compiler that goes on, say, would write into a folder that has gone."""
    installing.process.send_signal(number)
    installing.process.wait(_PATIENCE_S)
    _, alive = psutil.wait_procs(installing.installers, timeout=5.0)
    assert alive == []


def test_an_environment_that_is_being_made(env: Maker, installing: Installing) -> None:
    """Two cannot make one environment at a time: the second is told who does, and harms nothing."""
    process = installing.process
    _, said = env("add", "second", "numpy", status=2)
    assert said == (f"fwbench: error: second is being made by process {process.pid}; wait for it\n")
    assert process.poll() is None
    assert (env.environments.folder_of("second") / "half").exists()
    assert env("list")[0].startswith("there is no environment under ")
    assert "second" in env("remove", "second", status=2)[1]
    assert env.left() == ["second"]


def test_what_a_killed_process_has_left(env: Maker, installing: Installing) -> None:
    """It is no environment, is in nobody's way, and nothing of it is in the next one."""
    installing.kill()
    assert env.left() == ["second"]
    assert env("list")[0].startswith("there is no environment under ")
    env.uv()
    env("add", "second", "numpy")
    assert [*env.environments.all()] == ["second"]
    assert not (env.environments.folder_of("second") / "half").exists()


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
    """A .gitignore that is there already is somebody else's: FWBENCH_ENVS may name any folder."""
    shared = env.path / "shared"
    shared.mkdir()
    (shared / ".gitignore").write_text("*.log\n", encoding="utf-8")
    monkeypatch.setenv("FWBENCH_ENVS", str(shared))
    env.uv()
    env("add", "second", "numpy")
    assert (shared / ".gitignore").read_text(encoding="utf-8") == "*.log\n"


# Removal


def test_what_is_removed_is_gone(env: Maker) -> None:
    """The whole folder; other environments stay, and the name is free again."""
    env.uv()
    env("add", "second", "numpy")
    env("add", "third", "numpy")
    assert env("remove", "second") == ("removed second\n", "")
    assert env.left() == ["third"]
    assert [*env.environments.all()] == ["third"]
    env("add", "second", "numpy")
    assert env.left() == ["second", "third"]


def test_what_is_no_environment(env: Maker) -> None:
    """It is named, with those that are; and nothing is removed, wherever a name would lead."""
    env.uv()
    env("add", "second", "numpy")
    for command in ("remove", "show"):
        _, said = env(command, "secnod", status=2)
        assert said.startswith("fwbench: error: unknown environment 'secnod'")
        assert "second" in said
    for name in ("..", ".", "second/../../.."):
        assert "unknown environment" in env("remove", name, status=2)[1]
    assert env.left() == ["second"]
    assert (env.path / "pytest.ini").exists()


def test_an_environment_that_cannot_be_read_can_be_removed(env: Maker) -> None:
    """It is still listed, with what to do about it."""
    env.uv()
    env("add", "second", "numpy")
    facts = env.environments.folder_of("second") / "fwbench-environment.json"
    facts.write_text("{", encoding="utf-8")
    listed, _ = env("list")
    assert listed == "second: cannot be read; fwbench env remove second, and recreate it\n"
    env("remove", "second")
    assert env.left() == []


def test_what_cannot_be_removed(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is named, with the reason."""
    env.uv()
    env("add", "second", "numpy")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(install.shutil, "rmtree", refuse)
    _, said = env("remove", "second", status=3)
    folder = env.environments.folder_of("second")
    assert said == f"fwbench: error: cannot remove {folder}: Permission denied\n"


# Other commands beside


def test_without_environments(env: Maker) -> None:
    """The list says where they would be, and how to make one."""
    assert env("list")[0] == (
        f"there is no environment under {env.environments.folder}; make one: fwbench env add\n"
    )


def test_as_users_call_it(env: Maker) -> None:
    """The program, in a folder within the project: its output, its streams, its exit status."""
    env.uv()
    (env.path / "inner").mkdir()
    run = [sys.executable, "-P", "-m", "fwbench", "env"]

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*run, *arguments],
            cwd=env.path / "inner",
            capture_output=True,
            text=True,
            check=False,
        )

    added = call("add", "second", "numpy")
    assert added.returncode == 0, added.stderr
    assert added.stdout.endswith("measure it: pytest benchmarks --fw numpy@second\n")
    assert "installing into it" in added.stderr
    assert env.left() == ["second"]
    removed = call("remove", "third")
    assert (removed.returncode, removed.stdout) == (2, "")
    assert "unknown environment 'third'" in removed.stderr
