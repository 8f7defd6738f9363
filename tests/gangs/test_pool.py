"""The gang of a session, and the engines that start it: its own, and those of other packages."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.errors import UsageError
from fwbench.gangs.launch import Local
from fwbench.gangs.pool import GangPool, check_places, engine
from fwbench.options import values
from fwbench.options.options import SETTINGS, Selection
from fwbench.workloads import lenet_step
from fwbench.workloads.grid import GridRequest, cells
from support.gangs import ScriptedGang, composition, installed
from support.grids import SHARED

_PINNED = """
from fwbench.gangs.launch import Hosts, Local

class PinnedHosts(Hosts):
    def start(self, host, name, framework, threads):
        return super().start(host, f"pinned {name}", framework, threads)

class Pinned(Local):
    def __init__(self, machines):
        self.machines = machines

    def hosts(self, number, network):
        return PinnedHosts()
"""


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, two of which name engines; one of them does not work."""
    (tmp_path / "of_pinned.py").write_text(_PINNED)
    installed(tmp_path, "pinned", "of_pinned:Pinned", group="fwbench.engines")
    installed(tmp_path, "broken", "of_nobody:Engine", group="fwbench.engines")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "of_pinned", raising=False)
    return tmp_path


@pytest.mark.usefixtures("packages")
def test_engines_of_other_packages_start_gangs() -> None:
    assert SETTINGS["engine"].parse("pinned") == "pinned"
    gangs = GangPool("pinned")
    try:
        assert [role.name for role in gangs(composition())._roles] == [
            *("pinned worker 0 of 2", "pinned worker 1 of 2")
        ]
    finally:
        gangs.close()


@pytest.mark.usefixtures("packages")
def test_an_engine_that_does_not_work_is_named() -> None:
    message = r"the engine broken \(of_nobody:Engine\) cannot be used: .*use -o fw_engine=local"
    with pytest.raises(UsageError, match=message):
        engine("broken")


def test_places_are_counted_for_the_largest_gang(tmp_path: Path) -> None:
    """With its servers and its coordinator; cells with a gap and single processes take none."""
    file = tmp_path / "places.toml"
    manifests = {"rich": replace(SHARED, coordinated=(), coordinator="scheduler")}
    requested = GridRequest(
        {"replicas": ("1", "2"), "strategy": ("ps_async",), "servers": ("1", "3")}
    )
    selection = Selection(devices=("cpu",), sizes=(48,))
    largest = [*cells((lenet_step,), selection, manifests, more=requested)]
    file.write_text('[[place]]\ncommand = ["env"]\nroles = 5')
    check_places("local", None, largest, manifests)
    with pytest.raises(
        UsageError, match=r"of 6 processes needs as many places, .*places.toml has 5"
    ):
        check_places("local", file, largest, manifests)
    check_places("local", file, largest[:2], manifests)
    check_places("local", file, [replace(cell, gap="none") for cell in largest], manifests)


def test_local_is_always_there() -> None:
    """With any packages; other names are unknown, and the message has the known ones."""
    assert isinstance(engine("local"), Local)
    for refused in (engine, SETTINGS["engine"].parse):
        with pytest.raises(UsageError, match="unknown engine 'horovod'; known: local"):
            refused("horovod")


def test_engines_of_the_extras_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are not installed, an error says what they come with."""
    monkeypatch.setattr(values.metadata, "entry_points", lambda **_: SimpleNamespace(names={"own"}))
    with pytest.raises(UsageError, match="the engine ray comes with fwbench-extras"):
        values.engine("ray")
    with pytest.raises(UsageError, match="unknown engine 'mars'; known: local, own"):
        values.engine("mars")


def _gangs() -> tuple[GangPool, list[ScriptedGang]]:
    made: list[ScriptedGang] = []

    def make(requested: Any, _: Any) -> Any:
        assert all(not gang.alive for gang in made), "two gangs live at once"
        made.append(ScriptedGang(requested))
        return made[-1]

    return GangPool("local", make), made


def test_cases_of_one_composition_share_a_gang() -> None:
    gangs, made = _gangs()
    assert gangs(composition(2)) is gangs(composition(2))
    assert [gang.requests for gang in made] == [[("start",)]]


def test_another_composition_ends_the_gang_before() -> None:
    gangs, made = _gangs()
    gangs(composition(2))
    gangs(composition(3))
    assert made[0].requests == [("start",), ("close",)]
    gangs.close()
    gangs.close()
    assert made[1].requests == [("start",), ("close",)]


def test_a_gang_that_has_died_is_replaced() -> None:
    """The next case gets a new one."""
    gangs, made = _gangs()
    gangs(composition(2)).kill()
    gangs(composition(2))
    assert [gang.alive for gang in made] == [False, True]
