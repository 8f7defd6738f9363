"""What a framework says of itself reaches the parent, and is kept as long as it stays true."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fakes
import pytest
from fakes import Fake, manifest

from fwbench.frameworks import Device, Manifest
from fwbench.frameworks.cache import ManifestCache


def test_a_manifest_is_what_the_framework_says() -> None:
    """Every attribute is the framework's own answer, in a form that can be sent."""

    class Built(Fake):
        def build(self) -> dict[str, str]:
            return {"compiler": "cc 1.0"}

    assert Manifest.of(Built(), "Fake CPU") == Manifest(
        name="fake",
        version="1.2",
        devices=(Device("cpu", "Fake CPU"), Device("gpu:0", "Fake 9000")),
        executions=("eager", "graph", "compile"),
        on_request=("compile",),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        operations=("gemm", "flatten", "noop"),
        differentiable=True,
        gaps=(("gemm", "float16", "gpu", "fake has no float16 product on GPUs"),),
        training_executions=("eager", "graph", "fit"),
        whole_loops=("fit",),
        training_dtypes=("float32", "float64"),
        process_toggles=("onednn",),
        toggle_gaps=(("fit", "sparse", "off", "fit leaves gradients sparse"),),
        threads=2,
        build={"compiler": "cc 1.0"},
        source=__file__,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"threads": None, "build": {"cuda": "12"}},
        {"gaps": (), "on_request": (), "devices": ()},
        {"training_executions": (), "whole_loops": (), "toggle_gaps": ()},
    ],
    ids=str,
)
def test_a_manifest_survives_json(changes: dict[str, Any]) -> None:
    """A manifest that went through JSON text equals the one that was sent."""
    one = manifest(**changes)
    assert Manifest.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert Manifest.from_json(one.to_json()) == one


def test_devices_are_found_by_name() -> None:
    """A device is asked for by the name that cells use; one that is not there is an error."""
    assert manifest().device("gpu:0") == Device("gpu:0", "Fake 9000")
    with pytest.raises(KeyError):
        manifest().device("gpu:1")


@pytest.mark.parametrize(
    ("operation", "dtype", "device", "found"),
    [
        ("gemm", "float16", "gpu:0", True),
        ("gemm", "float16", "gpu:3", True),
        ("gemm", "float16", "cpu", False),
        ("gemm", "float32", "gpu:0", False),
        ("dot", "float16", "gpu:0", False),
    ],
)
def test_gaps_are_by_operation_dtype_and_kind_of_device(
    operation: str, dtype: str, device: str, found: bool
) -> None:
    """A gap is on all GPUs or on the CPU, for one dtype of one operation."""
    reason = "fake has no float16 product on GPUs"
    assert manifest().gap(operation, dtype, device) == (reason if found else None)


@pytest.mark.parametrize(
    ("execution", "toggle", "value", "found"),
    [
        ("fit", "sparse", "off", True),
        ("fit", "sparse", "on", False),
        ("eager", "sparse", "off", False),
        ("fit", "decay", "off", False),
    ],
)
def test_gaps_of_toggles_are_by_execution_toggle_and_value(
    execution: str, toggle: str, value: str, found: bool
) -> None:
    """What one execution cannot do says nothing of another, nor of another value."""
    reason = "fit leaves gradients sparse"
    assert manifest().toggle_gap(execution, toggle, value) == (reason if found else None)


# The cache


class Folder:
    """Stands in for pytest's cache: JSON text by key."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self.values[key] = json.dumps(value)

    def get(self, key: str, default: Any) -> Any:
        """The value that was kept."""
        return json.loads(self.values[key]) if key in self.values else default


@pytest.fixture
def folder() -> Folder:
    """An empty cache folder."""
    return Folder()


@pytest.fixture
def kept(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """A manifest in the cache; its framework's file and a folder of packages can be touched."""
    (tmp_path / "framework.py").write_text("", encoding="utf-8")
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    one = manifest(source=str(tmp_path / "framework.py"))
    ManifestCache(folder, 2).put(one)
    assert ManifestCache(folder, 2).get("fake") == one
    return one


def test_a_manifest_is_kept(
    folder: Folder, kept: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that come and go in other folders of the path do not make ask again."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "result.json").write_text("", encoding="utf-8")
    assert ManifestCache(folder, 2).get("fake") == kept


def test_each_framework_has_its_own_place(folder: Folder, kept: Manifest) -> None:
    """A framework that was never asked is not in the cache, and two do not share a place."""
    assert ManifestCache(folder, 2).get("other") is None
    other = manifest(name="other", source=kept.source)
    ManifestCache(folder, 2).put(other)
    assert [ManifestCache(folder, 2).get(name) for name in ("fake", "other")] == [kept, other]


#: The module; its name in its package is taken by the decorator of functools.
CACHE = sys.modules[ManifestCache.__module__]


def touch(path: str | Path) -> None:
    """Change when a file was changed, to another time than any clock's."""
    os.utime(path, ns=(10**18, 10**18))


@pytest.mark.parametrize(
    "change",
    [
        lambda patch, kept: touch(kept.source),
        lambda patch, kept: Path(kept.source).unlink(),
        lambda patch, kept: touch(Path(kept.source).parent / "site-packages"),
        lambda patch, kept: patch.syspath_prepend("/elsewhere/site-packages"),
        lambda patch, kept: patch.setattr(CACHE, "__version__", "99"),
        lambda patch, kept: patch.setattr(sys, "executable", "/elsewhere/python"),
        lambda patch, kept: patch.setenv("CUDA_VISIBLE_DEVICES", "7"),
        lambda patch, kept: patch.setattr(Path, "glob", lambda *_: [Path("/dev/nvidia99")]),
    ],
    ids=[
        "its file",
        "its file is gone",
        "packages",
        "path",
        "fwbench",
        "interpreter",
        "visible GPUs",
        "GPUs",
    ],
)
def test_whatever_could_change_the_answer_makes_ask_again(
    folder: Folder,
    kept: Manifest,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch, Manifest], None],
) -> None:
    """A manifest is forgotten when its framework, its packages or the devices may have changed."""
    change(monkeypatch, kept)
    assert ManifestCache(folder, 2).get("fake") is None


def test_other_threads_make_ask_again(folder: Folder, kept: Manifest) -> None:
    """What a framework said of two threads is not its answer for three."""
    assert ManifestCache(folder, 3).get(kept.name) is None


def test_without_a_cache_nothing_is_kept() -> None:
    """With pytest's cache switched off, frameworks are asked every time."""
    off = ManifestCache(None, 2)
    off.put(manifest())
    assert off.get("fake") is None


def test_a_manifest_names_the_file_of_its_class() -> None:
    """The file whose change makes ask again is that of the framework's class."""
    assert manifest().source == fakes.__file__
