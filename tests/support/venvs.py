"""Interpreters of their own, with fwbench and what it needs linked into them, and no network."""

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from fwbench import cli
from fwbench.workers.environments import Environment, Environments, complete

#: Programs of the standard library alone: they start sooner.
_PROGRAM = f"""\
#!{sys.executable} -IS
import json, os, shutil, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent
command, arguments = sys.argv[1], sys.argv[2:]
"""

_UV = """
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

_PYTHON = """
assert [command, arguments[0]] == ["-m", "venv"]
folder = Path(arguments[1])
{venv}
pip = next(folder.glob("lib/*/site-packages")) / "pip"
pip.mkdir()
(pip / "__main__.py").write_text({pip!r})
"""

#: Frameworks that interpreters do not name: each would cost fwbench doctor a process.
_OTHERS = re.compile(r"^(?!numpy|torch).* = fwbench\.frameworks\..*\n", re.MULTILINE)


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
    for info in packages.glob("fwbench-*.dist-info"):
        installed = info.resolve()
        info.unlink()
        shutil.copytree(installed, info)
        points = info / "entry_points.txt"
        points.write_text(_OTHERS.sub("", points.read_text(encoding="utf-8")), encoding="utf-8")
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

    def __init__(self, folder: Path, venv: str, install: str) -> None:
        self.folder = folder
        _write_program(folder / "uv", _UV.format(venv=_indented(venv), install=_indented(install)))

    @property
    def calls(self) -> list[tuple[list[str], str | None]]:
        """The arguments of each call, and the environment that was active."""
        log = self.folder / "uv.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [tuple(json.loads(line)) for line in lines]


def _indented(source: str) -> str:
    return "\n".join(f"    {line}" for line in (source or "pass").splitlines())


def _write_program(path: Path, source: str) -> None:
    path.write_text(_PROGRAM + source, encoding="utf-8")
    path.chmod(0o755)


def _distributions(name: str) -> dict[str, Path]:
    """A distribution and all that it needs, with the folders that have them."""
    figures: dict[str, Path] = {}
    left = [(name, "")]
    while left:
        name, extra = left.pop()
        distribution = metadata.distribution(name)
        figures[name] = Path(str(distribution.locate_file("")))
        for text in distribution.requires or []:
            requirement = Requirement(text)
            needed = requirement.marker is None or requirement.marker.evaluate({"extra": extra})
            if needed and requirement.name not in figures:
                left += [(requirement.name, extra_name) for extra_name in ("", *requirement.extras)]
    return figures


def _tops(name: str) -> list[str]:
    """The files and folders of a distribution in the folder of packages."""
    files = metadata.distribution(name).files or []
    return sorted({file.parts[0] for file in files} - {"..", "__pycache__"})


def _copying(interpreter: Path) -> str:
    return f"shutil.copytree({str(interpreter)!r}, folder, symlinks=True, dirs_exist_ok=True)"


class Maker:
    """A project, and the programs on the path that make environments for it.

    Args:
        interpreter: a folder with one that has fwbench, to be copied.

    Attributes:
        path: the project's folder, which is the current one.
        environments: of the project.
        programs: the only folder of the path where uv could be.
        temporary: the folder for temporary files.
    """

    def __init__(self, path: Path, interpreter: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.programs = path / "programs"
        self.programs.mkdir()
        self.temporary = path / "temporary"
        self.temporary.mkdir()
        (path / "pytest.ini").write_text("", encoding="utf-8")
        self.environments = Environments(path)
        self._interpreter = interpreter
        self._capsys = capsys

    def make(self, *names: str) -> None:
        """Make environments that are complete, and empty."""
        for name in names:
            folder = self.environments.folder_of(name)
            folder.mkdir(parents=True)
            complete(Environment(name, folder, ("numpy",), "3.11", "uv", {"numpy": "1.0"}))

    def uv(self, venv: str = "", install: str = "", interpreter: Path | None = None) -> Uv:
        """Put a uv on the path that makes environments without a network.

        Args:
            venv: what it does instead of copying an interpreter; as of :class:`Uv`.
            install: as of :class:`Uv`.
            interpreter: the folder of another one to be copied.
        """
        return Uv(self.programs, venv or _copying(interpreter or self._interpreter), install)

    def python(self, *, pip: str) -> str:
        """Put an interpreter on the path whose venvs have a pip that runs this source."""
        program = self.programs / "mypython"
        _write_program(program, _PYTHON.format(venv=_copying(self._interpreter), pip=pip))
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
