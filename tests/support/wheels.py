"""Packages that are built and installed without a network: wheels of a few lines."""

import sysconfig
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest

from fwbench.version import __version__
from fwbench.workers import install

#: A build backend that a project brings itself: its wheel is what ``tiny.py`` and ``needs`` say.
_BACKEND = """
import sys, zipfile
from pathlib import Path

def build_wheel(directory, config_settings=None, metadata_directory=None):
    {action}
    needs = Path("needs").read_text().split()
    wheel = Path(directory) / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.write("tiny.py")
        requires = "".join(f"Requires-Dist: {{need}}\\n" for need in needs)
        texts = {{
            "METADATA": f"Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n{{requires}}",
            "WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
            "RECORD": "tiny.py,,\\n",
        }}
        for name, text in texts.items():
            file.writestr(f"tiny-1.0.dist-info/{{name}}", text)
    return wheel.name
"""

_PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "tiny"
version = "1.0"
dynamic = ["dependencies"]
"""


def work(calls: int) -> str:
    """A module whose function takes a time that is proportional to a number."""
    return f"def work():\n    return sum(range({calls}))\n"


def project(
    calls: int = 2000, needs: Sequence[str] = (), action: str = "pass", **more: str
) -> dict[str, str]:
    """The files of the project ``tiny``, for :func:`support.suites.commit_all`.

    Args:
        needs: requirements of it.
        action: a line of Python, which runs when it is built.
    """
    return {
        "pyproject__toml": _PROJECT,
        "backend__py": _BACKEND.format(action=action),
        "needs": "\n".join(needs) + "\n",
        "tiny__py": work(calls),
        **more,
    }


def write_wheel(
    folder: Path, name: str, version: str, files: dict[str, str], needs: Sequence[str] = ()
) -> Path:
    """Write a wheel of pure Python."""
    wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {need}\n" for need in needs)
    texts = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "".join(f"{file},,\n" for file in files),
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in texts.items():
            archive.writestr(file, text)
    return wheel


def serve(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have uv take packages from a folder alone: versions 1.0, 2.0 and 2.1 of ``needed``, say.

    The harness in it is this environment's own, by a link: it need not be installed.
    """
    folder.mkdir()
    here = sysconfig.get_path("purelib")
    points = metadata.distribution("fwbench").read_text("entry_points.txt") or ""
    link = {
        "harness_link.pth": f"import site; site.addsitedir({here!r})\n",
        f"fwbench-{__version__}.dist-info/entry_points.txt": points,
    }
    harness = {"fwbench": __version__, "pytest": "9", "pytest-benchmark": "5", "pyinstrument": "5"}
    for name, version in harness.items():
        write_wheel(folder, name, version, link if name == "fwbench" else {})
    for version in ("1.0", "2.0", "2.1"):
        write_wheel(folder, "needed", version, {"needed.py": f"version = {version}\n"})
    for version, calls in (("1.0", 2000), ("2.0", 6000)):
        write_wheel(folder, "quick", version, {"quick.py": work(calls)})
    monkeypatch.setattr(install, "this_fwbench", lambda: [f"fwbench=={__version__}"])
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(folder.parent / "uv-cache"))
