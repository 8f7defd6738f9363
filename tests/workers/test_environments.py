"""Named environments: their names, their folders, and the one that a framework is in."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fwbench.cli import main
from fwbench.errors import FrameworkBroken, StorageError, UsageError
from fwbench.frameworks import registry
from fwbench.gate.sides import sides
from fwbench.project import project_root
from fwbench.terms.manifest import Absent
from fwbench.terms.names import framework_of
from fwbench.workers import environments as module
from fwbench.workers.environments import Environment, Environments, check_name, complete
from fwbench.workers.inventory import Inventory
from support.tables import tabled

_FACTS = "fwbench-environment.json"


def environment(folder: Path, name: str = "second", **changes: Any) -> Environment:
    """An environment that has NumPy alone, with some of it changed."""
    facts: dict[str, Any] = {
        "requirements": ("numpy",),
        "python": "3.99.1",
        "installer": "uv",
        "frameworks": {"numpy": "1.26.4"},
    }
    return Environment(name, folder / name, **{**facts, **changes})


def made(environments: Environments, name: str = "second", **changes: Any) -> Environment:
    installed = environment(environments.folder, name, **changes)
    installed.folder.mkdir(parents=True)
    complete(installed)
    return installed


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    """The environments of a project that has none."""
    return Environments(tmp_path)


# Names


@tabled
def test_a_name_says_the_framework(name: str, framework: str) -> None:
    """Letters, digits and the signs of versions are fine; a framework comes before the sign."""
    check_name(name)
    assert framework_of(name) == framework


@tabled
def test_a_name_that_looks_like_something_else_is_refused(name: str) -> None:
    """A part of a case id, of --fw or of a path."""
    with pytest.raises(UsageError) as caught:
        check_name(name)
    assert str(caught.value).startswith(f"environment {name!r}: give a name of letters, digits and")


@tabled
def test_what_its_frameworks_are_called(
    name: str, frameworks: tuple[str, ...], references: tuple[str, ...], tmp_path: Path
) -> None:
    """An environment named after a framework gives it its own name; any other is its label.

    NumPy, which every environment has, is listed where it is what the environment is about.
    """
    installed = environment(tmp_path, name, frameworks=dict.fromkeys(frameworks, "1"))
    assert installed.references == [*references]


def test_any_framework_of_an_environment_can_be_referred_to(tmp_path: Path) -> None:
    """NumPy of an environment for JAX is not listed, and has a name all the same."""
    installed = environment(tmp_path, "jax", frameworks={"jax": "0.10", "numpy": "2.1"})
    assert installed.reference("numpy") == "numpy@jax"


# Where they are


@pytest.mark.parametrize(
    "file", ["pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"]
)
def test_the_project_is_around_its_folders(tmp_path: Path, file: str) -> None:
    """From a folder deep in a project its root is found, by the files that pytest knows it by."""
    (tmp_path / file).write_text("[tool:pytest]\n[pytest]\n", encoding="utf-8")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_root(inner) == tmp_path
    assert project_root(tmp_path) == tmp_path


def test_the_nearest_project_is_the_one(tmp_path: Path) -> None:
    """A project within another one is meant by its own folders; a folder is no such file.

    Nor is the configuration of another tool that does not speak of pytest.
    """
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    inner = tmp_path / "inner"
    (inner / "deep" / "setup.cfg").mkdir(parents=True)
    (inner / "tox.ini").write_text("[pytest]\n", encoding="utf-8")
    (inner / "deep" / "tox.ini").write_text("[tox]\n", encoding="utf-8")
    assert project_root(inner / "deep") == inner


def test_a_folder_outside_any_project_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no folder above has such a file, environments are in the current folder."""
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    assert project_root(tmp_path) == tmp_path
    monkeypatch.chdir(tmp_path)
    assert project_root(Path()) == tmp_path


def test_environments_lie_in_the_project(environments: Environments, tmp_path: Path) -> None:
    """Each in a folder of its name."""
    assert environments.folder_of("jax") == tmp_path / ".fwbench" / "envs" / "jax"


@pytest.mark.parametrize("relative", [True, False])
def test_environments_can_lie_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, relative: bool
) -> None:
    """FWBENCH_ENVS names the folder, absolute or from where one stands, for every project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FWBENCH_ENVS", "shared" if relative else str(tmp_path / "shared"))
    here, there = (Environments(tmp_path / project) for project in ("one", "two"))
    monkeypatch.chdir("/")
    assert here.folder == there.folder == tmp_path / "shared"
    made(here)
    assert [*there.all()] == ["second"]


def test_an_empty_variable_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is set to nothing does not name the current folder."""
    monkeypatch.setenv("FWBENCH_ENVS", "")
    assert Environments(tmp_path).folder == tmp_path / ".fwbench" / "envs"


# Which one is meant


def test_a_project_without_environments(environments: Environments) -> None:
    """Everything is in the environment that runs pytest."""
    assert environments.all() == {}
    assert environments.references() == []
    assert environments.environment_of("torch") is None
    assert environments.environment_of("torch@nightly") is None


def test_what_is_complete_is_found_as_it_was_made(environments: Environments) -> None:
    """Every fact comes back, the paths beside; its file appears as a whole, with nothing else."""
    installed = made(environments)
    assert [path.name for path in installed.folder.iterdir()] == [_FACTS]
    assert environments.all() == {"second": installed}
    assert environments.environment_of("numpy@second") == installed
    assert environments.references() == ["numpy@second"]
    assert installed.interpreter == str(installed.folder / "bin" / "python")


def test_what_is_not_complete_is_not_there(environments: Environments) -> None:
    """A folder that is being filled is no environment yet."""
    (environments.folder_of("second") / "bin").mkdir(parents=True)
    assert environments.all() == {}
    assert environments.environment_of("numpy@second") is None
    assert environments.environment_of("n" * 5000) is None, "longer than a name of a file"


def test_a_name_comes_before_a_label(environments: Environments) -> None:
    """``torch@nightly`` is the environment of that very name; else the one that its label names."""
    label = made(environments, "nightly", frameworks={"torch": "1", "jax": "1"})
    assert environments.environment_of("torch@nightly") == label
    exact = made(environments, "torch@nightly", frameworks={"torch": "2"})
    assert environments.environment_of("torch@nightly") == exact
    assert environments.environment_of("jax@nightly") == label


def test_a_framework_without_a_label_is_in_the_environment_of_its_name(
    environments: Environments,
) -> None:
    """``jax`` is in the environment ``jax`` where there is one, ``numpy@jax`` beside it."""
    installed = made(environments, "jax", frameworks={"jax": "0.10", "numpy": "2.1"})
    assert (
        environments.environment_of("jax") == environments.environment_of("numpy@jax") == installed
    )
    assert environments.environment_of("numpy") is None
    assert environments.environment_of("jax@other") is None


def test_its_packages_lie_in_its_folder(environments: Environments) -> None:
    """The folders of packages are found for any version of its Python, and no others."""
    installed = made(environments)
    packages = [installed.folder / lib / "python3.99" / "site-packages" for lib in ("lib", "lib64")]
    for folder in (
        *packages,
        installed.folder / "lib" / "python3.99" / "other",
        installed.folder / "share",
    ):
        folder.mkdir(parents=True)
    assert installed.path == [*map(str, packages)]


# What cannot be read


_MORE = {"python": "3", "installer": "uv", "frameworks": {}, "of a later fwbench": 1}

UNREADABLE = {
    "no JSON": "{",
    "no object": "[]",
    "nothing": "{}",
    "missing": '{"requirements": []}',
    "too much": json.dumps({"requirements": [], **_MORE}),
}


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_facts_that_cannot_be_read(environments: Environments, text: str) -> None:
    """A damaged or foreign file is named, and what to do: it is no reason to guess."""
    installed = made(environments)
    (installed.folder / _FACTS).write_text(text, encoding="utf-8")
    with pytest.raises(StorageError) as caught:
        environments.environment_of("numpy@second")
    message = str(caught.value)
    assert message.startswith(f"cannot read {installed.folder / _FACTS} (")
    assert "fwbench env remove second, then fwbench env add" in message
    assert environments.names() == ["second"]
    assert environments.all() == {}


def test_other_environments_can_be_used(environments: Environments) -> None:
    """One damaged environment does not keep from using another."""
    made(environments, "good")
    (made(environments, "bad").folder / _FACTS).write_text("{", encoding="utf-8")
    assert environments.environment_of("numpy@good") is not None


def test_facts_that_cannot_be_written(environments: Environments) -> None:
    """Where the folder has gone meanwhile, the file is named with the reason."""
    with pytest.raises(StorageError, match=r"cannot write .*json: No such file or directory"):
        complete(environment(environments.folder))


_FOREIGN = "was not made on this machine"


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
    "never made here": lambda environment: module.forget(environment.folder),
    "another program": lambda environment: Path(environment.interpreter).write_text("#!/bin/sh\n"),
    "a link elsewhere": lambda environment: _link(environment, sys.executable),
    "other modules": lambda environment: (environment.folder / "pyvenv.cfg").write_text("home = ."),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_only_what_was_made_here_is_run(
    brought: Environment, tmp_path: Path, change: Callable[[Environment], object]
) -> None:
    """Unchanged since: another program might come with a repository."""
    environments = Environments(tmp_path)
    assert environments.interpreter_of("numpy") == brought.interpreter
    change(brought)
    assert not brought.is_made_here
    for reference in ("numpy", "torch@numpy"):
        with pytest.raises(FrameworkBroken, match=_FOREIGN) as refused:
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
    with pytest.raises(FrameworkBroken, match=_FOREIGN):
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
    frameworks = {"numpy": registry.registered()["numpy"]}
    monkeypatch.setattr(registry, "registered", lambda: frameworks)
    module.forget(brought.folder)
    assert main(["doctor"]) == 0
    report = capsys.readouterr().out
    assert "numpy            python 3.11: numpy 1.0; not made on this machine, so it is" in report
    assert f"  found       its environment {brought.folder} {_FOREIGN}" in report
    inventory = Inventory(Environments(tmp_path), 1, None, isolated=True)
    inventory.ask(["numpy"])
    assert isinstance(inventory.absent["numpy"], Absent)
    assert _FOREIGN in inventory.absent["numpy"].reason
    with pytest.raises(FrameworkBroken, match=_FOREIGN):
        sides("numpy", "default", Environments(tmp_path))
    assert main(["env", "list"]) == 0
    assert "; not made on this machine: fwbench env remove numpy, then" in capsys.readouterr().out
    assert not (tmp_path / "was-run").exists()


def test_a_removed_environment_is_forgotten(
    brought: Environment, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another one in its place was not made here."""
    text = (brought.folder / _FACTS).read_text(encoding="utf-8")
    assert main(["env", "remove", "numpy"]) == 0
    assert capsys.readouterr().out == "removed numpy\n"
    brought.folder.mkdir()
    (brought.folder / _FACTS).write_text(text, encoding="utf-8")
    assert not brought.is_made_here


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff", json.dumps({"folder": "/"})])
def test_a_note_that_is_damaged(brought: Environment, text: str) -> None:
    """It is none."""
    module._file(brought.folder).write_text(text, encoding="latin-1")
    assert not brought.is_made_here


def test_a_user_without_a_home(brought: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """A note below the current folder could come with the repository, too: it is not looked for."""
    monkeypatch.setattr("platformdirs.user_state_dir", lambda _: "~/.local/state/x")
    assert not brought.is_made_here
    module.forget(brought.folder)
    with pytest.raises(StorageError, match="set XDG_STATE_HOME"):
        complete(brought)
