"""Named environments are made as a whole or not at all, and removed: ``fwbench env``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from fwbench import cli
from fwbench.environments import install
from fwbench.environments.named import Environments
from fwbench.version import __version__
from support.venvs import Uv


class Maker:
    """A project, and the programs on the path that make environments for it.

    Attributes:
        path: the project's folder, which is the current one.
        environments: of the project.
        programs: the only folder of the path where uv could be.
    """

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self.programs = path / "programs"
        self.programs.mkdir()
        (path / "pytest.ini").write_text("", encoding="utf-8")
        self.environments = Environments(path)
        self._capsys = capsys

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


@pytest.fixture
def env(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Maker:
    """A project without environments, on a machine without uv."""
    made = Maker(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{made.programs}{os.pathsep}{os.defpath}")
    monkeypatch.setattr(
        install, "sysconfig", SimpleNamespace(get_path=lambda _: str(made.programs))
    )
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return made


# What is made


def test_an_environment_is_made_and_shown(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With uv: an interpreter, what was asked for and this fwbench; then it is looked at.

    What the installer says is passed on; what was made, and how to measure it, is the result. An
    environment that is active has nothing to do with it.
    """
    monkeypatch.setenv("VIRTUAL_ENV", str(env.path / "active"))
    uv = env.uv()
    said, progress = env("add", "second", "numpy", "attrs>=23")
    folder = env.environments.folder_of("second")
    python = ".".join(map(str, sys.version_info[:3]))
    held = f"python {python}; numpy {np.__version__}"
    assert said == f"second: {held}\nmeasure it: pytest benchmarks --fw numpy@second\n"
    assert progress.splitlines() == [
        "  making it",
        "  installing into it",
        "looking at what second can do",
    ]
    create = ["venv", "--allow-existing", "--python", sys.executable, str(folder)]
    assert uv.calls[0] == (create, None)
    (command, active) = uv.calls[1]
    assert command[:6] == [
        *("pip", "install", "--python", str(folder / "bin" / "python")),
        *("numpy", "attrs>=23"),
    ]
    assert command[6:] == install._this_fwbench()
    assert active is None
    assert len(uv.calls) == 2
    assert env("list")[0] == f"second: {held}\n"
    assert env("show", "second")[0].splitlines() == [
        "second",
        f"  folder        {folder}",
        f"  python        {python}",
        "  requirements  numpy attrs>=23",
        "  installed by  uv",
        "  --fw          numpy@second",
        f"  numpy         {np.__version__}",
    ]


def test_only_the_environment_is_left(env: Maker) -> None:
    """Nothing tells that it was being made; environments stay out of version control."""
    env.uv()
    env("add", "second", "numpy")
    assert env.left() == ["second"]
    ignored = env.environments.folder / ".gitignore"
    assert ignored.read_text(encoding="utf-8") == "*\n"
    names = {path.name for path in env.environments.folder_of("second").iterdir()}
    assert "fwbench-environment.json" in names
    assert install._MAKER not in names


def test_another_interpreter_is_built_on(env: Maker) -> None:
    """uv is told which, by path, name or version as it takes them."""
    uv = env.uv()
    env("add", "second", "numpy", "--python", "3.13")
    assert uv.calls[0][0][2:4] == ["--python", "3.13"]


def test_uv_beside_the_interpreter_is_used(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed into the environment that runs fwbench, it need not be on the path."""
    monkeypatch.setenv("PATH", os.defpath)
    uv = env.uv()
    env("add", "second", "numpy")
    assert len(uv.calls) == 2


def test_without_uv_venv_and_pip_do_it(env: Maker) -> None:
    """The interpreter's own venv makes it, and the new interpreter's pip fills it."""
    pip = "import json, sys; json.dump(sys.argv[1:], open('pip.json', 'w')); print('filled')"
    said, progress = env("add", "second", "numpy", "--python", env.python(pip=pip))
    assert "measure it: pytest benchmarks --fw numpy@second" in said
    assert "  filled" in progress.splitlines()
    asked = json.loads((env.path / "pip.json").read_text(encoding="utf-8"))
    assert asked[:2] == ["install", "--disable-pip-version-check"]
    assert asked[2:] == ["numpy", *install._this_fwbench()]
    assert "  installed by  pip" in env("show", "second")[0].splitlines()


def _origin(**facts: Any) -> Callable[[str], Any]:
    """A distribution that was installed from there."""
    text = json.dumps(facts) if facts else None
    return lambda _: SimpleNamespace(read_text=lambda _: text)


_COMMIT = "0123456789abcdef0123456789abcdef01234567"

#: Where fwbench may have come from (PEP 610), and what installs the same one again.
_ORIGINS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "index": ({}, [f"fwbench=={__version__}"]),
    "in place": (
        {"url": "file:///a%20b/fwbench", "dir_info": {"editable": True}},
        ["--editable", "/a b/fwbench"],
    ),
    "folder": (
        {"url": "file:///a%20b/fwbench", "dir_info": {}},
        ["fwbench @ file:///a%20b/fwbench"],
    ),
    "archive": (
        {"url": "https://example.org/fwbench-0.1.0.tar.gz", "archive_info": {}},
        ["fwbench @ https://example.org/fwbench-0.1.0.tar.gz"],
    ),
    "repository": (
        {
            "url": "https://example.org/fwbench.git",
            "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": _COMMIT},
        },
        [f"fwbench @ git+https://example.org/fwbench.git@{_COMMIT}"],
    ),
}


@pytest.mark.parametrize(("origin", "installs"), _ORIGINS.values(), ids=_ORIGINS)
def test_the_same_fwbench_is_installed(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any], installs: list[str]
) -> None:
    """From where this one came: another one would measure otherwise."""
    monkeypatch.setattr(metadata, "distribution", _origin(**origin))
    assert install._this_fwbench() == installs


# What is refused


def test_a_name_that_is_taken(env: Maker) -> None:
    """An environment is never overwritten; what to do is said."""
    uv = env.uv()
    env("add", "second", "numpy")
    _, said = env("add", "second", "numpy", status=2)
    assert said == (
        "fwbench: error: there is an environment 'second' already (fwbench env list); choose "
        "another name, or remove it first: fwbench env remove second\n"
    )
    assert len(uv.calls) == 2
    assert [*env.environments.all()] == ["second"]


@pytest.mark.parametrize("name", ["default", "a-b", "../up", "a/b"])
def test_a_name_that_cannot_be_one(env: Maker, name: str) -> None:
    """It is refused before anything is done."""
    uv = env.uv()
    _, said = env("add", name, "numpy", status=2)
    assert said.startswith(f"fwbench: error: environment {name!r}: give a name of letters")
    assert uv.calls == []
    assert not env.environments.folder.exists()


@pytest.mark.parametrize("arguments", [["add", "second"], ["add"], [], ["remove"], ["show"]])
def test_arguments_that_are_missing(env: Maker, arguments: list[str]) -> None:
    """A name without requirements is no environment: argparse says what is missing."""
    with pytest.raises(SystemExit) as caught:
        env(*arguments)
    assert caught.value.code == 2
    assert env.left() == []


_MISSING = "./no-such-package"


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_requirement_that_cannot_be_installed(
    env: Maker, monkeypatch: pytest.MonkeyPatch, installer: str
) -> None:
    """The real installers' last words are shown, and nothing is left."""
    if installer == "uv":
        scripts = sysconfig.get_path("scripts")
        if not (Path(scripts) / "uv").exists():
            pytest.skip("uv is not installed here")
        monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.defpath}")
        monkeypatch.setenv("UV_OFFLINE", "1")
    said = env("add", "second", _MISSING, status=3)[1]
    error = said[said.index("fwbench: error: ") :]
    program = "uv" if installer == "uv" else "python"
    assert error.startswith(f"fwbench: error: {program} ended with exit status ")
    assert "; it said last:\n  " in error
    assert _MISSING.removeprefix("./") in error
    assert "Traceback" not in error
    assert env.left() == []


def test_only_the_end_of_what_an_installer_said_is_repeated(env: Maker) -> None:
    """Fifteen lines, the last ones, whichever stream they came by; all of them had been shown."""
    env.uv(
        install="for i in range(40):\n    print('line', i, file=[sys.stdout, sys.stderr][i % 2], "
        "flush=True)\nsys.exit(7)"
    )
    said = env("add", "second", "numpy", status=3)[1]
    progress, error = said.split("fwbench: error: ")
    lines = [f"  line {i}" for i in range(40)]
    assert [line for line in progress.splitlines() if "line" in line] == lines
    assert error.splitlines() == [
        "uv ended with exit status 7; it said last:",
        *lines[-15:],
    ]
    assert env.left() == []


def test_an_interpreter_that_cannot_be_made(env: Maker) -> None:
    """What fails before anything is installed leaves nothing either."""
    uv = env.uv(venv="folder.joinpath('half').mkdir(); sys.exit('no such python')")
    _, said = env("add", "second", "numpy", "--python", "3.99", status=2)
    assert "fwbench: error: --python 3.99 makes no environment: " in said
    assert "uv ended with exit status 1; it said last:" in said
    assert said.endswith("  no such python\n")
    assert len(uv.calls) == 1
    assert env.left() == []


def test_an_interpreter_that_is_not_there(env: Maker) -> None:
    """Without uv, which knows where to get one, --python names a program that is there."""
    _, said = env("add", "second", "numpy", "--python", "python9.99", status=2)
    assert said.startswith("fwbench: error: --python python9.99: there is no such program")
    assert env.left() == []


def test_an_installer_that_does_not_run(env: Maker) -> None:
    """A broken uv is named, with the reason."""
    program = env.programs / "uv"
    program.write_text("#!/no/such/interpreter\n", encoding="utf-8")
    program.chmod(0o755)
    _, said = env("add", "second", "numpy", status=3)
    assert said == f"fwbench: error: cannot run {program}: No such file or directory\n"
    assert env.left() == []


def test_a_framework_that_is_not_there(env: Maker) -> None:
    """An environment named after a framework is to have it; one with any other name need not."""
    env.uv()
    _, said = env("add", "torch@nightly", "numpy", status=3)
    error = said[said.index("fwbench: error: ") :]
    assert error.startswith("fwbench: error: torch cannot be used in torch@nightly: not installed")
    assert "add its requirement (torch==VERSION), or choose another name" in error
    assert env.left() == []
    env("add", "nightly", "numpy")
    assert env.left() == ["nightly"]


_BROKEN = "raise OSError('libbroken.so: cannot open shared object file')"


def test_a_framework_that_does_not_import(env: Maker) -> None:
    """The framework that gives an environment its name is tried: its error is the answer."""
    env.uv(
        install=f"name_framework(next(folder.glob('lib/*/site-packages')), 'frail', {_BROKEN!r})"
    )
    _, said = env("add", "frail", "frail", status=3)
    assert "fwbench: error: frail cannot be used in frail: does not import (OSError: libbro" in said
    assert "Traceback" not in said
    assert env.left() == []


def test_one_broken_framework_does_not_keep_the_others_out(env: Maker) -> None:
    """In an environment that is named after none, those that work are what it holds."""
    env.uv(
        install=f"name_framework(next(folder.glob('lib/*/site-packages')), 'frail', {_BROKEN!r})"
    )
    env("add", "second", "frail")
    assert [*env.environments.all()["second"].frameworks] == ["numpy"]


def test_an_environment_in_which_fwbench_does_not_run(env: Maker) -> None:
    """Whatever keeps it from running is the answer, and nothing is left."""
    env.uv(venv="make(folder, fwbench=False)")
    _, said = env("add", "second", "numpy", status=3)
    assert "fwbench: error: fwbench does not run in second; it said last:\n" in said
    assert "No module named fwbench" in said
    assert env.left() == []


# Interruptions


#: Installers start programs of their own, and take longer than anyone waits here.
_INSTALLING = """\
import subprocess
(folder / "half").mkdir(exist_ok=True)
subprocess.Popen(["sleep", "600"])
(here / "installing").touch()
time.sleep(600)
"""

_PATIENCE_S = 60.0


class Installing:
    """``fwbench env add second`` in a process of its own, while the installer is at work.

    Attributes:
        process: of fwbench.
        installers: what that has started, and what these have.
    """

    def __init__(self, env: Maker) -> None:
        env.uv(install=_INSTALLING)
        # Ctrl-C is switched on even where the tests run in the background of a shell.
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from fwbench.cli import main; sys.exit(main())"
        )
        with (env.path / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code, "env", "add", "second", "numpy"],
                cwd=env.path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
            )
        deadline = time.monotonic() + _PATIENCE_S
        while not (env.programs / "installing").exists():
            said = (env.path / "stderr").read_text(encoding="utf-8")
            assert self.process.poll() is None, said
            assert time.monotonic() < deadline, said
            time.sleep(0.02)
        self.installers = psutil.Process(self.process.pid).children(recursive=True)
        assert len(self.installers) == 2

    def kill(self) -> None:
        """End everything at once."""
        self.process.kill()
        self.process.wait()
        for one in self.installers:
            with suppress(psutil.NoSuchProcess):
                one.kill()


@pytest.fixture
def installing(env: Maker) -> Iterator[Installing]:
    """An installation that goes on until the test is over."""
    started = Installing(env)
    yield started
    started.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_installation_leaves_nothing(
    env: Maker, installing: Installing, number: signal.Signals
) -> None:
    """Neither Ctrl-C nor a termination leaves half an environment, or an installer at work."""
    assert (env.environments.folder_of("second") / "half").exists()
    installing.process.send_signal(number)
    assert installing.process.wait(_PATIENCE_S) == 130
    assert (env.path / "stderr").read_text(encoding="utf-8").endswith("\nfwbench: interrupted\n")
    assert env.left() == []
    uv = installing.installers[0]
    assert not uv.is_running()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_an_installer_has_started_ends_with_it(
    installing: Installing, number: signal.Signals
) -> None:
    """A compiler that goes on, say, would write into a folder that has gone."""
    installing.process.send_signal(number)
    installing.process.wait(_PATIENCE_S)
    _, alive = psutil.wait_procs(installing.installers, timeout=5.0)
    assert alive == []


def test_an_environment_that_is_being_made(env: Maker, installing: Installing) -> None:
    """Two cannot make one environment at a time: the second is told who does, and harms nothing."""
    process = installing.process
    _, said = env("add", "second", "numpy", status=2)
    assert said == (f"fwbench: error: second is being made by process {process.pid}; wait for it\n")
    assert process.poll() is None
    assert (env.environments.folder_of("second") / "half").exists()
    assert env("list")[0].startswith("there is no environment under ")
    assert "second" in env("remove", "second", status=2)[1]
    assert env.left() == ["second"]


def test_what_a_killed_process_has_left(env: Maker, installing: Installing) -> None:
    """It is no environment, is in nobody's way, and nothing of it is in the next one."""
    installing.kill()
    assert env.left() == ["second"]
    assert env("list")[0].startswith("there is no environment under ")
    env.uv()
    env("add", "second", "numpy")
    assert [*env.environments.all()] == ["second"]
    assert not (env.environments.folder_of("second") / "half").exists()


def test_what_is_nobodys_leftover_stays(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that fwbench has not begun is refused: FWBENCH_ENVS may name any folder."""
    shared = env.path / "shared"
    (shared / "second").mkdir(parents=True)
    thesis = shared / "second" / "thesis.txt"
    thesis.write_text("the only copy", encoding="utf-8")
    monkeypatch.setenv("FWBENCH_ENVS", str(shared))
    env.uv()
    assert cli.main(["env", "add", "second", "numpy"]) != 0
    assert thesis.read_text(encoding="utf-8") == "the only copy"


def test_what_others_keep_out_of_version_control_stays(
    env: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A .gitignore that is there already is somebody else's: FWBENCH_ENVS may name any folder."""
    shared = env.path / "shared"
    shared.mkdir()
    (shared / ".gitignore").write_text("*.log\n", encoding="utf-8")
    monkeypatch.setenv("FWBENCH_ENVS", str(shared))
    env.uv()
    env("add", "second", "numpy")
    assert (shared / ".gitignore").read_text(encoding="utf-8") == "*.log\n"


# Removal


def test_what_is_removed_is_gone(env: Maker) -> None:
    """The whole folder; other environments stay, and the name is free again."""
    env.uv()
    env("add", "second", "numpy")
    env("add", "third", "numpy")
    assert env("remove", "second") == ("removed second\n", "")
    assert env.left() == ["third"]
    assert [*env.environments.all()] == ["third"]
    env("add", "second", "numpy")
    assert env.left() == ["second", "third"]


@pytest.mark.parametrize("command", ["remove", "show"])
def test_an_environment_that_is_not_there(env: Maker, command: str) -> None:
    """It is named, and so are those that are."""
    env.uv()
    env("add", "second", "numpy")
    _, said = env(command, "secnod", status=2)
    assert said.startswith("fwbench: error: unknown environment 'secnod'")
    assert "second" in said
    assert env.left() == ["second"]


@pytest.mark.parametrize("name", ["..", ".", "second/../../.."])
def test_nothing_else_can_be_removed(env: Maker, name: str) -> None:
    """What is no name of an environment is none, wherever it would lead."""
    env.uv()
    env("add", "second", "numpy")
    assert "unknown environment" in env("remove", name, status=2)[1]
    assert env.left() == ["second"]
    assert (env.path / "pytest.ini").exists()


def test_an_environment_that_cannot_be_read_can_be_removed(env: Maker) -> None:
    """It is still listed, with what to do about it."""
    env.uv()
    env("add", "second", "numpy")
    facts = env.environments.folder_of("second") / "fwbench-environment.json"
    facts.write_text("{", encoding="utf-8")
    listed, _ = env("list")
    assert listed == "second: cannot be read; fwbench env remove second, and make it anew\n"
    env("remove", "second")
    assert env.left() == []


def test_what_cannot_be_removed(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is named, with the reason."""
    env.uv()
    env("add", "second", "numpy")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(install.shutil, "rmtree", refuse)
    _, said = env("remove", "second", status=3)
    folder = env.environments.folder_of("second")
    assert said == f"fwbench: error: cannot remove {folder}: Permission denied\n"


# Other commands beside


def test_without_environments(env: Maker) -> None:
    """The list says where they would be, and how to make one."""
    assert env("list")[0] == (
        f"there is no environment under {env.environments.folder}; make one: fwbench env add\n"
    )


def test_as_users_call_it(env: Maker) -> None:
    """The program, in a folder within the project: its output, its streams, its exit status."""
    env.uv()
    (env.path / "inner").mkdir()
    run = [sys.executable, "-P", "-m", "fwbench", "env"]

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*run, *arguments],
            cwd=env.path / "inner",
            capture_output=True,
            text=True,
            check=False,
        )

    added = call("add", "second", "numpy")
    assert added.returncode == 0, added.stderr
    assert added.stdout.endswith("measure it: pytest benchmarks --fw numpy@second\n")
    assert "installing into it" in added.stderr
    assert env.left() == ["second"]
    removed = call("remove", "third")
    assert (removed.returncode, removed.stdout) == (2, "")
    assert "unknown environment 'third'" in removed.stderr
