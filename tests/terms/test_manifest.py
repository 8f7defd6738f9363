"""Manifests reach the parent process, and are stored as long as they stay true."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import fwbench
from fwbench.errors import FrameworkBroken, FrameworkMissing
from fwbench.frameworks.cache import ManifestCache, _digest
from fwbench.terms import manifest as declarations
from fwbench.terms.manifest import Absent, Device, Gap, Manifest
from fwbench.testing import FakeFramework
from fwbench.workers.environments import Environment, Environments, complete
from support.fakes import manifest
from support.tables import tabled

#: What follows from a framework that declares no executions in which it recomputes.
_KEEPS = "fake does not recompute results of networks"
_WITHOUT = "(--fw-toggle recompute=off)"


def test_a_manifest_is_what_the_framework_says() -> None:
    """Every attribute is the framework's own answer, in a form that can be sent."""

    class Built(FakeFramework):
        def build(self) -> dict[str, str]:
            return {"compiler": "cc 1.0"}

    assert Built().manifest("Fake CPU") == Manifest(
        name="fake",
        version="1.2",
        devices=(Device("cpu", "Fake CPU"), Device("gpu:0", "Fake 9000")),
        executions=("eager", "graph", "compile"),
        on_request=("compile",),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        operations=("gemm", "flatten", "noop"),
        missing={},
        differentiable=True,
        gaps=(Gap("fake has no float16 product on GPUs", "gemm", dtype="float16", device="gpu"),),
        training_executions=("eager", "graph", "fit"),
        whole_loops=("fit",),
        training_dtypes=("float32", "float64"),
        process_toggles=("onednn",),
        gpu_memory=True,
        toggle_gaps=(
            *(
                (execution, "recompute", "on", f"{_KEEPS} in {execution} {_WITHOUT}")
                for execution in ("eager", "graph", "fit")
            ),
            ("fit", "sparse", "off", "fit leaves gradients sparse"),
            *(
                (execution, "l2", "cold", "fake's adapter cannot empty the cache of a GPU")
                for execution in ("eager", "graph", "compile")
            ),
        ),
        threads=2,
        build={"compiler": "cc 1.0"},
        sources=(__file__, str(Path(fwbench.__file__).parent)),
        notices=(),
    )


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"threads": None, "build": {"cuda": "12"}},
        {"gaps": (), "on_request": (), "devices": ()},
        {"gaps": (Gap("none", "gemm", "graph", "forward", "float16", "gpu"), Gap("open"))},
        {"missing": {"gelu": "fake 1.2 has no gelu"}, "notices": ("package fakes: old",)},
        {"defaults": {"onednn": "off"}, "enqueues": True},
        {"training_executions": (), "whole_loops": (), "toggle_gaps": ()},
    ],
    ids=str,
)
def test_a_manifest_survives_json(changes: dict[str, Any]) -> None:
    """A manifest that went through JSON text equals the one that was sent."""
    framework_manifest = manifest(**changes)
    assert (
        Manifest.from_json(json.loads(json.dumps(framework_manifest.to_json())))
        == framework_manifest
    )
    assert Manifest.from_json(framework_manifest.to_json()) == framework_manifest


def test_devices_are_found_by_name() -> None:
    """A device is asked for by the name that cells use; one that is not there is an error."""
    assert manifest().device("gpu:0") == Device("gpu:0", "Fake 9000")
    with pytest.raises(KeyError):
        manifest().device("gpu:1")


_CELL = {
    "workload": "gemm",
    "execution": "graph",
    "direction": "backward",
    "dtype": "float16",
    "device": "gpu:0",
    "terms": 0,
    "toggles": (),
}


@tabled
def test_a_gap_holds_for_every_cell_that_its_parts_do_not_exclude(
    parts: dict[str, str], changes: dict[str, str], figures: bool
) -> None:
    """Any part may be left open; a GPU stands for all GPUs."""
    framework_manifest = manifest(gaps=(Gap("no kernel", **parts),))
    cell = {**_CELL, **changes}
    assert framework_manifest.gap(*cell.values()) == ("no kernel" if figures else None)


@pytest.mark.parametrize(
    ("features", "reason"),
    [({"sse2", "avx"}, "no kernel"), ({"sse2", "amx"}, None), ({"avx512f"}, None), (set(), None)],
    ids=["neither", "the second", "the first", "not known"],
)
def test_gaps_of_cpus_that_lack_features(
    monkeypatch: pytest.MonkeyPatch, features: set[str], reason: str | None
) -> None:
    """Where the system does not tell what the CPU has, nothing is said to be missing."""
    monkeypatch.setattr(declarations, "cpu_features", lambda: features)
    lacking = Gap("no kernel", lacks="avx512f or amx")
    assert manifest(gaps=(lacking,)).gap(*_CELL.values()) == reason
    assert not lacking.whole


def test_the_first_gap_that_holds_gives_the_reason() -> None:
    framework_manifest = manifest(
        gaps=(Gap("of dot", "dot"), Gap("of graphs", execution="graph"), Gap("any"))
    )
    assert framework_manifest.gap(*_CELL.values()) == "of graphs"


@tabled
def test_gaps_of_toggles_are_by_execution_toggle_and_value(
    execution: str, toggle: str, value: str, expected: bool
) -> None:
    reason = "fit leaves gradients sparse"
    assert manifest().toggle_gap(execution, toggle, value) == (reason if expected else None)


class Folder:
    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def set(self, key: str, value: Any) -> None:
        self.values[key] = json.dumps(value)

    def get(self, key: str, default: Any) -> Any:
        return json.loads(self.values[key]) if key in self.values else default


def cache(folder: Folder | None, threads: int, root: Path = Path("no project")) -> ManifestCache:
    environments = Environments(root)
    return ManifestCache(folder, threads, environments.interpreter_of, environments.path_of)


@pytest.fixture
def folder() -> Folder:
    return Folder()


@pytest.fixture
def kept(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Manifest:
    """A manifest in the cache; its framework's packages and a folder of packages can be touched."""
    (tmp_path / "adapter" / "training").mkdir(parents=True)
    for name in ("adapter/__init__.py", "adapter/training/learner.py", "module.py"):
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "site-packages").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    framework_manifest = manifest(sources=(str(tmp_path / "adapter"), str(tmp_path / "module.py")))
    cache(folder, 2).put(framework_manifest)
    assert cache(folder, 2).get("fake") == framework_manifest
    return framework_manifest


_CPU, _GPU = Device("cpu", "a CPU"), Device("gpu:0", "a GPU")


@pytest.mark.parametrize(
    ("devices", "nodes", "stays"),
    [
        ((_CPU,), [], True),
        ((_CPU, _GPU), ["/dev/nvidia0"], True),
        ((_CPU,), ["/dev/nvidia0"], False),
    ],
    ids=["no GPU", "a GPU that is seen", "a GPU that is not seen"],
)
def test_a_gpu_that_was_away_is_asked_for_again(
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
    devices: tuple[Device, ...],
    nodes: list[str],
    *,
    stays: bool,
) -> None:
    """While its node is there: its driver may have been reloading, or its memory been full."""
    monkeypatch.setattr(CACHE, "_gpu_nodes", lambda: nodes)
    framework_manifest = manifest(devices=devices)
    cache(folder, 2).put(framework_manifest)
    assert cache(folder, 2).get("fake") == (framework_manifest if stays else None)


def test_a_manifest_is_kept(
    folder: Folder, kept: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that come and go in other folders of the path do not make ask again."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "result.json").write_text("", encoding="utf-8")
    assert cache(folder, 2).get("fake") == kept


def test_each_framework_has_its_own_place(folder: Folder, kept: Manifest) -> None:
    """A framework that was never asked is not in the cache, and two do not share a place."""
    assert cache(folder, 2).get("other") is None
    other = manifest(name="other", sources=kept.sources)
    cache(folder, 2).put(other)
    assert [cache(folder, 2).get(name) for name in ("fake", "other")] == [kept, other]


def test_an_older_fwbench_finds_no_manifest(folder: Folder, kept: Manifest) -> None:
    """Nothing is kept where versions look that expect another form: they would fail at it."""
    assert folder.get(f"fwbench/{kept.name}", None) is None


#: The module; its name in its package is taken by the decorator of functools.
CACHE = sys.modules[ManifestCache.__module__]


def touch(path: str | Path) -> None:
    """Change when a file was changed, to another time than any clock's."""
    os.utime(path, ns=(10**18, 10**18))


def grow(path: Path) -> None:
    """Change the size of a file and not when it was changed, as restored backups do."""
    before = path.stat()
    path.write_text("#", encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


#: What may change the answer of a framework; environment variables are below.
_CHANGES: dict[str, Callable[[pytest.MonkeyPatch, Manifest], object]] = {
    "its module": lambda patch, kept: touch(kept.sources[1]),
    "its module is gone": lambda patch, kept: Path(kept.sources[1]).unlink(),
    "deep in its package": lambda _, kept: touch(Path(kept.sources[0], "training", "learner.py")),
    "a new file": lambda patch, kept: Path(kept.sources[0], "operations.py").touch(),
    "a table": lambda patch, kept: Path(kept.sources[0], "gaps.toml").touch(),
    "the size of a file": lambda patch, kept: grow(Path(kept.sources[0], "__init__.py")),
    "packages": lambda patch, kept: touch(Path(kept.sources[0]).parent / "site-packages"),
    "path": lambda patch, kept: patch.syspath_prepend("/elsewhere/site-packages"),
    "fwbench": lambda patch, kept: patch.setattr(CACHE, "__version__", "99"),
    "interpreter": lambda patch, kept: patch.setattr(sys, "executable", "/elsewhere/python"),
    "GPUs": lambda patch, kept: patch.setattr(Path, "glob", lambda *_: [Path("/dev/nvidia99")]),
    "driver": lambda patch, kept: patch.setattr(CACHE, "_DRIVER", Path(__file__)),
    **{
        name: lambda patch, kept, name=name: patch.setenv(name, "7")
        for name in (
            *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
            *("JAX_PLATFORMS", "JAX_PLATFORM_NAME", "LD_LIBRARY_PATH", "TF_ENABLE_ONEDNN_OPTS"),
        )
    },
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_change_that_could_change_the_answer_makes_ask_again(
    folder: Folder,
    kept: Manifest,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[pytest.MonkeyPatch, Manifest], object],
) -> None:
    """A manifest is forgotten when its framework, its packages or the devices may have changed."""
    change(monkeypatch, kept)
    assert cache(folder, 2).get("fake") is None


def test_other_threads_make_ask_again(folder: Folder, kept: Manifest) -> None:
    assert cache(folder, 3).get(kept.name) is None


@pytest.fixture
def apart(folder: Folder, kept: Manifest, tmp_path: Path) -> Path:
    """The folder of a named environment, whose framework's manifest is in the cache."""
    made = tmp_path / ".fwbench" / "envs" / "second"
    (made / "lib" / "python3.99" / "site-packages").mkdir(parents=True)
    complete(Environment("second", made, ("fake",), "3.99", "uv", {"fake": "1.2"}))
    framework_manifest = replace(kept, name="fake@second")
    cache(folder, 2, tmp_path).put(framework_manifest)
    assert cache(folder, 2, tmp_path).get("fake@second") == framework_manifest
    return made


def test_packages_of_a_named_environment_make_ask_again(
    folder: Folder, apart: Path, kept: Manifest, tmp_path: Path
) -> None:
    touch(tmp_path / "site-packages")
    result = cache(folder, 2, tmp_path)
    assert (result.get("fake"), result.get("fake@second")) == (
        None,
        replace(kept, name="fake@second"),
    )
    result.put(kept)
    touch(apart / "lib" / "python3.99" / "site-packages")
    assert (result.get("fake"), result.get("fake@second")) == (kept, None)


def test_an_environment_at_another_place_makes_ask_again(
    folder: Folder, apart: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(tmp_path / ".fwbench", other / ".fwbench")
    assert cache(folder, 2, tmp_path).get("fake@second") is not None
    assert cache(folder, 2, other).get("fake@second") is None
    shutil.rmtree(apart)
    assert cache(folder, 2, tmp_path).get("fake@second") is None


#: Turns what is kept into what nobody has put there.
_DAMAGE: dict[str, Callable[[Any], Any]] = {
    "a list": lambda stored: [stored],
    "a text": lambda _: "manifest",
    "a number": lambda _: 3,
    "nothing": lambda _: {},
    "no fingerprint": lambda stored: {"manifest": stored["manifest"]},
    "another version": lambda stored: {**stored, "manifest": {**stored["manifest"], "name": "x"}},
    "a damaged manifest": lambda stored: {**stored, "manifest": None},
    "a damaged device": lambda s: {**s, "manifest": {**s["manifest"], "devices": [3]}},
}


def _forged(stored: Any) -> dict[str, Any]:
    """With the digest of what is stored now."""
    lists = {**stored, "manifest": {**stored["manifest"], "network_executions": [[]]}}
    return {**lists, "digest": _digest(lists)}


_DAMAGE["lists in lists"] = _forged


@pytest.mark.parametrize("damage", _DAMAGE.values(), ids=_DAMAGE)
def test_what_is_not_as_it_was_kept_is_nothing(
    folder: Folder, kept: Manifest, damage: Callable[[Any], Any]
) -> None:
    key = f"fwbench/manifests/{kept.name}"
    folder.set(key, damage(folder.get(key, None)))
    assert cache(folder, 2).get(kept.name) is None


def test_a_cache_that_is_nested_too_deeply_is_nothing(folder: Folder, kept: Manifest) -> None:
    folder.values[f"fwbench/manifests/{kept.name}"] = "[" * 100_000
    assert cache(folder, 2).get(kept.name) is None


def test_without_a_cache_nothing_is_kept() -> None:
    off = cache(None, 2)
    off.put(manifest())
    assert off.get("fake") is None


def test_files_that_are_no_sources_do_not_make_ask_again(folder: Folder, kept: Manifest) -> None:
    (compiled := Path(kept.sources[0], "__pycache__")).mkdir()
    compiled.joinpath("x.py").touch()
    Path(kept.sources[0], "notes.txt").touch()
    assert cache(folder, 2).get("fake") == kept


def test_that_a_package_is_missing_is_kept_until_one_is_installed(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session need not start a process for each framework that nobody has; nor for long."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    missing = Absent.because("fake", FrameworkMissing("not installed (no fake)", "install it"))
    cache(folder, 2).put(missing)
    assert cache(folder, 2).get("fake") == missing
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    assert cache(folder, 2).get("fake") is None
    monkeypatch.delenv("PYTHONPATH")
    touch(packages)
    assert cache(folder, 2).get("fake") is None


def test_what_is_broken_is_asked_anew(folder: Folder) -> None:
    cache(folder, 2).put(Absent.because("fake", FrameworkBroken("does not import")))
    assert cache(folder, 2).get("fake") is None
