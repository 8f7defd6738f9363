"""A session's frameworks: asked once each, here or in workers, and missed with a reason."""

from pathlib import Path

import pytest

from fwbench.errors import UsageError
from fwbench.terms.manifest import Absent, Manifest
from fwbench.workers import inventory as module
from fwbench.workers.environments import Environment, Environments, complete
from fwbench.workers.inventory import Inventory, describe
from support.tables import tabled


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The frameworks whose workers were asked; none of them is there."""
    requested: list[str] = []

    def describe(names: list[str], *_: object) -> dict[str, Absent]:
        requested.extend(names)
        return {name: Absent(name, "not there", "install it") for name in names}

    monkeypatch.setattr(module, "describe", describe)
    return requested


def test_a_framework_is_asked_once(tmp_path: Path, described: list[str]) -> None:
    """However often it is asked for; one that was not asked for is not known."""
    inventory = Inventory(Environments(tmp_path), 1, None, isolated=True)
    inventory.ask(["numpy"])
    inventory.ask(["numpy", "torch"])
    assert described == ["numpy", "torch"]
    assert {*inventory.absent} == {"numpy", "torch"}
    assert inventory.manifests == {}


def test_an_unknown_framework_is_refused_before_any_is_asked(
    tmp_path: Path, described: list[str]
) -> None:
    inventory = Inventory(Environments(tmp_path), 1, None, isolated=True)
    with pytest.raises(UsageError, match=r"unknown framework 'numpi'; .*Did you mean 'numpy'\?"):
        inventory.ask(["torch", "numpi"])
    assert described == []


def test_without_isolation_a_framework_is_loaded_here(tmp_path: Path, described: list[str]) -> None:
    """It needs no worker, and its manifest is that of the framework that is loaded."""
    inventory = Inventory(Environments(tmp_path), 1, None, isolated=False)
    inventory.ask(["numpy"])
    assert described == []
    manifest = inventory.manifests["numpy"]
    assert isinstance(manifest, Manifest)
    assert manifest.version == inventory.load("numpy").version


@tabled
def test_a_framework_in_an_environment_says_what_to_do_there(
    tmp_path: Path, described: list[str], isolated: bool, remedy: str
) -> None:
    """One that is gone is installed where it was; one that is elsewhere cannot be loaded here."""
    environments = Environments(tmp_path)
    folder = environments.folder_of("numpy@old")
    folder.mkdir(parents=True)
    complete(Environment("numpy@old", folder, (), "3.11", "uv", {"numpy": "1.0"}))
    inventory = Inventory(environments, 1, None, isolated=isolated)
    assert inventory.is_named("numpy@old")
    inventory.ask(["numpy@old"])
    assert inventory.absent["numpy@old"].remedy == remedy
    assert described == ["numpy@old"] * isolated
    assert inventory.interpreter_of("numpy@old").startswith(str(folder))


_LATE = """
import atexit, pathlib, sys, time

def end():
    time.sleep(0.3)
    pathlib.Path({!r}).touch()

if any("fwbench.plugin.worker" in argument for argument in sys.orig_argv):
    atexit.register(end)
"""


@pytest.mark.usefixtures("started")  # what an interpreter runs at its start is tried
def test_a_process_that_has_described_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So its exit handlers run: coverage writes its file then."""
    ended = tmp_path / "ended"
    (tmp_path / "sitecustomize.py").write_text(_LATE.format(str(ended)), encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answers = describe(["numpy"], 1)
    assert isinstance(answers["numpy"], Manifest)
    assert ended.exists()
