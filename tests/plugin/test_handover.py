"""Options and modules reach a worker, also where its interpreter is another one."""

import base64
import pickle
import pickletools
import sys
from pathlib import Path, PurePath
from typing import Any

import pytest

from fwbench.plugin import handover
from fwbench.testing import FakeFramework


class Unpicklable:
    """An option of a plugin that cannot leave its process."""

    def __reduce__(self) -> Any:
        raise TypeError("stays here")


_OPTIONS: dict[str, Any] = {
    "a path": Path("data") / "sets",
    "a pure path": PurePath("/data/sets"),
    "paths within": {"given": [Path("one"), (Path("two"), None)]},
    "numbers": [1, 2.5],
    "text": "größe",
    "nothing": None,
}


def test_options_arrive_as_they_were() -> None:
    result = handover.unpacked(handover._packed(_OPTIONS))
    assert result == {name: value for name, value in _OPTIONS.items() if name != "a pure path"} | {
        "a pure path": Path("/data/sets")
    }
    assert isinstance(result["a path"], Path)


@pytest.mark.parametrize("name", ["a path", "a pure path", "paths within"])
def test_paths_name_no_class_of_this_pythons(name: str) -> None:
    """From version to version of Python their classes are in other modules: none is named."""
    text = handover._packed(_OPTIONS)[name]
    written = base64.b64decode(text)
    assert b"pathlib" in pickle.dumps(_OPTIONS[name])
    named = [argument for _, argument, _ in pickletools.genops(written)]
    assert [
        argument for argument in named if isinstance(argument, str) and "pathlib" in argument
    ] == []


def test_what_cannot_be_handed_over_is_the_default_there() -> None:
    """One option that cannot be pickled, or not be found there, does not keep the others."""
    packed = handover._packed({"bad": Unpicklable(), "good": 1})
    assert {*packed} == {"good"}
    packed["of a plugin"] = base64.b64encode(b"cno_such_module\nThing\n.").decode()
    assert handover.unpacked(packed) == {"good": 1}


def test_plugins_are_handed_over_as_pytest_takes_them(pytester: pytest.Pytester) -> None:
    """``-p no:NAME`` may be one word in an ini file; the worker must not look for `` no:NAME``."""
    config = pytester.parseconfigure("-p", "no:cacheprovider", "-p no:randomly")
    manifest = FakeFramework().manifest("Fake CPU")
    packed = handover.worker_session(config, [], manifest, sys.executable)
    assert {"no:cacheprovider", "no:randomly"} <= {*packed["unwanted"]}
    assert {*packed["unwanted"]} < {*handover.unpacked(packed["options"])["plugins"]}


def test_only_the_projects_folders_are_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To another interpreter no package of this one is, even if its folder is in the project."""
    inside = [str(tmp_path), str(tmp_path / "src"), str(tmp_path / "benchmarks")]
    excluded = [str(tmp_path / ".venv" / "lib" / "site-packages"), "/lib/python3.99", ""]
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    monkeypatch.setattr(
        sys, "path", [inside[0], excluded[0], inside[1], excluded[1], excluded[2], inside[2]]
    )
    assert handover._of_project(tmp_path) == inside
