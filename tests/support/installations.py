"""Environments that are made, and what is left of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fwbench import cli
from fwbench.workers.environments import Environment, Environments, complete
from support.venvs import Uv


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
