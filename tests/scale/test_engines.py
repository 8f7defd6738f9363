"""What starts gangs: fwbench's own, and the engines of other packages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fwbench.errors import UsageError
from fwbench.options import values
from fwbench.scale.engines import Local, engine
from fwbench.scale.gangs import Gangs
from support.gangs import composition, installed

_PINNED = """
from fwbench.scale.engines import Local, Loopback

class Hosts(Loopback):
    def start(self, host, name, framework, threads):
        return super().start(host, f"pinned {name}", framework, threads)

class Pinned(Local):
    def hosts(self, number, network):
        return Hosts()
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
    """By the name of their entry point."""
    assert values.engine("pinned") == "pinned"
    gangs = Gangs("pinned")
    try:
        assert [role.name for role in gangs(composition())._roles] == [
            *("pinned worker 0 of 2", "pinned worker 1 of 2"),
        ]
    finally:
        gangs.close()


@pytest.mark.usefixtures("packages")
def test_an_engine_that_does_not_work_is_named() -> None:
    """With where it is, and another one."""
    said = r"the engine broken \(of_nobody:Engine\) cannot be used: .*use --fw-engine local"
    with pytest.raises(UsageError, match=said):
        engine("broken")


def test_local_is_always_there() -> None:
    """Whatever is installed; others are unknown, and the message has those that there are."""
    assert isinstance(engine("local"), Local)
    for refused in (engine, values.engine):
        with pytest.raises(UsageError, match="unknown engine 'horovod'; known: local"):
            refused("horovod")
