"""The packages that a framework's class is made of."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import fwbench
from fwbench.frameworks import cache
from fwbench.frameworks.numpy.framework import NumPy

_ADAPTER = "from fwbench.frameworks.numpy.framework import NumPy\nclass Mars(NumPy): pass\n"

FWBENCH = str(Path(fwbench.__file__).parent)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that packages are imported from, and forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    before = {*sys.modules}
    yield tmp_path
    for module in {*sys.modules} - before:
        del sys.modules[module]


def written(folder: Path, name: str, text: str = "") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def imported(name: str) -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module(name)


def test_fwbenchs_own_are_made_of_fwbench() -> None:
    assert cache.packages_of(NumPy) == (FWBENCH,)


def test_a_package_is_covered_from_its_top(packages: Path) -> None:
    """Not the folder of the class alone: tables may be in another; fwbench's base class counts."""
    written(packages, "planets/__init__.py")
    written(packages, "planets/inner/__init__.py")
    written(packages, "planets/inner/adapter.py", _ADAPTER)
    mars = imported("planets.inner.adapter").Mars
    assert cache.packages_of(mars) == (str(packages / "planets"), FWBENCH)


def test_a_module_in_no_package_is_its_file(packages: Path) -> None:
    path = written(packages, "planets.py", _ADAPTER)
    assert cache.packages_of(imported("planets").Mars) == (str(path), FWBENCH)


def test_a_namespace_package_is_not_covered_as_a_whole(packages: Path) -> None:
    """It lies in many folders, and belongs to many projects."""
    written(packages, "space/planets/__init__.py")
    written(packages, "space/planets/adapter.py", _ADAPTER)
    mars = imported("space.planets.adapter").Mars
    assert cache.packages_of(mars) == (str(packages / "space" / "planets"), FWBENCH)


def test_the_state_of_a_package(tmp_path: Path) -> None:
    """Every Python file with its time and size; other files and compiled ones do not count."""
    paths = [written(tmp_path, name, "#" * 7) for name in ("a.py", "b/__init__.py", "b/c.py")]
    for name in ("notes.txt", "__pycache__/a.py", "data/x.json"):
        written(tmp_path, name)
    expected = [(str(path), path.stat().st_mtime_ns, 7) for path in sorted(paths)]
    assert cache.state(str(tmp_path)) == expected
    assert cache.state(str(paths[0])) == expected[:1]


@pytest.mark.parametrize("name", ["gone", "gone.py"])
def test_what_is_gone_has_no_state(tmp_path: Path, name: str) -> None:
    """A package that was uninstalled is no error."""
    assert cache.state(str(tmp_path / name)) == []
