"""No interpreter is run that came with a repository, or has been replaced since it was made."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fwbench.cli import main
from fwbench.errors import FrameworkBroken, StorageError
from fwbench.frameworks import registry
from fwbench.gate.sides import sides
from fwbench.manifest import Absent
from fwbench.workers import environments
from fwbench.workers.environments import Environment, Environments, complete
from fwbench.workers.inventory import Inventory

_SAID = "was not made on this machine"


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """A complete environment of a project, whose interpreter is a program that leaves a trace."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").touch()
    folder = tmp_path / ".fwbench" / "envs" / "numpy"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "python"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n", encoding="utf-8")
    program.chmod(0o755)
    environment = Environment("numpy", folder, ("numpy",), "3.11", "uv", {"numpy": "1.0"})
    complete(environment)
    return environment


def _link(environment: Environment, target: str) -> None:
    program = Path(environment.interpreter)
    program.unlink()
    program.symlink_to(target)


_CHANGES: dict[str, Callable[[Environment], object]] = {
    "never made here": lambda environment: environments.forget(environment.folder),
    "another program": lambda environment: Path(environment.interpreter).write_text("#!/bin/sh\n"),
    "a link elsewhere": lambda environment: _link(environment, sys.executable),
    "other modules": lambda environment: (environment.folder / "pyvenv.cfg").write_text("home = ."),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_only_what_was_made_here_is_run(
    brought: Environment, tmp_path: Path, change: Callable[[Environment], object]
) -> None:
    """As it was made: any other program might be anybody's."""
    environments = Environments(tmp_path)
    assert environments.interpreter_of("numpy") == brought.interpreter
    change(brought)
    assert not brought.is_made_here
    for reference in ("numpy", "torch@numpy"):
        with pytest.raises(FrameworkBroken, match=_SAID) as refused:
            environments.interpreter_of(reference)
        assert "fwbench env remove numpy, then fwbench env add" in str(refused.value)
    complete(brought)
    assert brought.is_made_here


@pytest.mark.usefixtures("brought")
def test_a_copy_is_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever FWBENCH_ENVS leads; what is linked is the one that it links to."""
    copy = tmp_path / "copy"
    (tmp_path / ".fwbench" / "envs").rename(copy)
    monkeypatch.setenv("FWBENCH_ENVS", str(copy))
    with pytest.raises(FrameworkBroken, match=_SAID):
        Environments(tmp_path).interpreter_of("numpy")
    copy.rename(tmp_path / ".fwbench" / "envs")
    copy.symlink_to(tmp_path / ".fwbench" / "envs")
    Environments(tmp_path).interpreter_of("numpy")


def test_an_update_of_the_system_makes_no_other_environment(
    brought: Environment, tmp_path: Path
) -> None:
    """An interpreter outside the environment is known by its path."""
    system = tmp_path / "usr-bin-python"
    system.write_text("3.11.1", encoding="utf-8")
    _link(brought, str(system))
    complete(brought)
    system.write_text("3.11.2", encoding="utf-8")
    assert brought.is_made_here


def test_nothing_runs_it(
    brought: Environment,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither doctor nor a session nor a comparison: they say why."""
    own = {"numpy": registry.registered()["numpy"]}
    monkeypatch.setattr(registry, "registered", lambda: own)
    environments.forget(brought.folder)
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    assert "numpy            python 3.11: numpy 1.0; not made on this machine, so it is" in report
    assert f"  found       its environment {brought.folder} {_SAID}" in report
    inventory = Inventory(Environments(tmp_path), 1, None, isolated=True)
    inventory.ask(["numpy"])
    assert isinstance(inventory.absent["numpy"], Absent)
    assert _SAID in inventory.absent["numpy"].reason
    with pytest.raises(FrameworkBroken, match=_SAID):
        sides("numpy", "default", Environments(tmp_path))
    assert main(["env", "list"]) == 0
    assert "; not made on this machine: fwbench env remove numpy, then" in capsys.readouterr().out
    assert not (tmp_path / "was-run").exists()


def test_a_removed_environment_is_forgotten(
    brought: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another one in its place was not made here."""
    text = (brought.folder / "fwbench-environment.json").read_text(encoding="utf-8")
    assert main(["env", "remove", "numpy"]) == 0
    assert capsys.readouterr().out == "removed numpy\n"
    brought.folder.mkdir()
    (brought.folder / "fwbench-environment.json").write_text(text, encoding="utf-8")
    assert not brought.is_made_here


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff", json.dumps({"folder": "/"})])
def test_a_note_that_is_damaged(brought: Environment, text: str) -> None:
    """It is none."""
    environments._file(brought.folder).write_text(text, encoding="latin-1")
    assert not brought.is_made_here


def test_a_user_without_a_home(brought: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note below the current folder could come with the repository, too: it is not looked for."""
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _: "~/.local/state/x")
    assert not brought.is_made_here
    environments.forget(brought.folder)
    with pytest.raises(StorageError, match="set XDG_STATE_HOME"):
        complete(brought)
