"""Interpreters of their own, with fwbench and what it needs linked into them: no network is asked.

A program that runs this module's :func:`make` stands in for uv, see :func:`install_uv`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fwbench import cli
from fwbench.workers.environments import Environment, Environments, complete

_UV = """\
#!{python}
import json, os, sys, time
from pathlib import Path

sys.path.insert(0, {tests!r})
from support.venvs import make, name_framework

here = Path(__file__).parent
command, arguments = sys.argv[1], sys.argv[2:]
with (here / "uv.log").open("a") as log:
    print(json.dumps([sys.argv[1:], os.environ.get("VIRTUAL_ENV")]), file=log)
if command == "venv":
    folder = Path(arguments[-1])
    print("making it")
{venv}
else:
    folder = Path(arguments[arguments.index("--python") + 1]).parents[1]
    print("installing into it", file=sys.stderr)
{install}
"""


def make(folder: Path, *, fwbench: bool = True) -> Path:
    """Make an interpreter in a folder; returns where its packages lie.

    Args:
        fwbench: whether it has fwbench.
    """
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name, place in _distributions("fwbench").items():
        for top in _tops(name) if fwbench or name != "fwbench" else ():
            (packages / top).symlink_to(place / top)
    return packages


def change_fwbench(packages: Path, version: str) -> None:
    """Make the fwbench of an interpreter another version: a copy of this one that says so."""
    for path in packages.glob("_editable_impl_fwbench*"):
        path.unlink()
    import fwbench

    folder = packages / "fwbench"
    folder.unlink(missing_ok=True)  # a link, where fwbench is not installed in place
    shutil.copytree(Path(fwbench.__file__).parent, folder)
    init = folder / "version.py"
    source = init.read_text(encoding="utf-8")
    changed = source.replace(f'__version__ = "{fwbench.__version__}"', f'__version__ = "{version}"')
    assert changed != source
    init.write_text(changed, encoding="utf-8")


def name_framework(packages: Path, name: str, source: str) -> None:
    """Install a framework of that name: a module and an entry point for its class ``Framework``."""
    (packages / f"{name}_framework.py").write_text(source, encoding="utf-8")
    info = packages / f"{name}_framework-1.0.dist-info"
    info.mkdir()
    texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: {name}-framework\nVersion: 1.0\n",
        "entry_points.txt": f"[fwbench.frameworks]\n{name} = {name}_framework:Framework\n",
    }
    for file, text in texts.items():
        (info / file).write_text(text, encoding="utf-8")


class Uv:
    """A program that answers to ``uv`` as far as fwbench calls it.

    Args:
        folder: to put it into, which is to be the first of ``PATH``.
        venv: what it does for ``uv venv``; Python source, in which ``folder`` is what it is for.
        install: what it does for ``uv pip install``.
    """

    def __init__(self, folder: Path, venv: str = "make(folder)", install: str = "") -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        source = _UV.format(
            python=sys.executable,
            tests=str(Path(__file__).parents[1]),
            venv=_indented(venv),
            install=_indented(install),
        )
        program = folder / "uv"
        program.write_text(source, encoding="utf-8")
        program.chmod(0o755)

    @property
    def calls(self) -> list[tuple[list[str], str | None]]:
        """The arguments of each call, and the environment that was active."""
        log = self.folder / "uv.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [tuple(json.loads(line)) for line in lines]


def _indented(source: str) -> str:
    return "\n".join(f"    {line}" for line in (source or "pass").splitlines())


def _distributions(name: str) -> dict[str, Path]:
    """A distribution and all that it needs, with the folders that have them."""
    found: dict[str, Path] = {}
    left = [(name, "")]
    while left:
        name, extra = left.pop()
        distribution = metadata.distribution(name)
        found[name] = Path(str(distribution.locate_file("")))
        for text in distribution.requires or []:
            requirement = Requirement(text)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
            if needed and requirement.name not in found:
                left += [(requirement.name, one) for one in ("", *requirement.extras)]
    return found


def _tops(name: str) -> list[str]:
    """The files and folders of a distribution in the folder of packages."""
    files = metadata.distribution(name).files or []
    return sorted({file.parts[0] for file in files} - {"..", "__pycache__"})


class Maker:
    """A project, and the programs on the path that make environments for it.

    Attributes:
        path: the project's folder, which is the current one.
        environments: of the project.
        programs: the only folder of the path where uv could be.
        temporary: the folder for temporary files.
    """

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.programs = path / "programs"
        self.programs.mkdir()
        self.temporary = path / "temporary"
        self.temporary.mkdir()
        (path / "pytest.ini").write_text("", encoding="utf-8")
        self.environments = Environments(path)
        self._capsys = capsys

    def make(self, *names: str) -> None:
        """Make environments that are complete, and empty."""
        for name in names:
            folder = self.environments.folder_of(name)
            folder.mkdir(parents=True)
            complete(Environment(name, folder, ("numpy",), "3.11", "uv", {"numpy": "1.0"}))

    def uv(self, **behaviour: str) -> Uv:
        """Put a uv on the path that makes environments without a network."""
        return Uv(self.programs, **behaviour)

    def python(self, *, pip: str) -> str:
        """Put an interpreter on the path whose venvs have a pip that runs this source."""
        program = self.programs / "mypython"
        program.write_text(
            f"#!{sys.executable}\n"
            "import sys\n"
            "from pathlib import Path\n"
            f"sys.path.insert(0, {str(Path(__file__).parents[1])!r})\n"
            "from support.venvs import make\n"
            "assert sys.argv[1:3] == ['-m', 'venv']\n"
            "folder = make(Path(sys.argv[3])) / 'pip'\n"
            "folder.mkdir()\n"
            f"(folder / '__main__.py').write_text({pip!r})\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        return program.name

    def __call__(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        """Run ``fwbench env`` here; returns what it wrote to standard output and error."""
        assert cli.main(["env", *arguments]) == status, self._capsys.readouterr()
        captured = self._capsys.readouterr()
        assert (captured.out == "") == (status != 0)
        return captured.out, captured.err

    def left(self) -> list[str]:
        """The folders of environments, complete or not."""
        folder = self.environments.folder
        return sorted(path.name for path in folder.glob("[!.]*")) if folder.exists() else []
