"""Named environments are made as a whole or not at all: ``fwbench env create``."""

import json
import os
import sys
import sysconfig
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fwbench.version import __version__
from fwbench.workers import install
from support.tables import tabled
from support.venvs import Maker, make, name_framework

# What is made


def test_an_environment_is_made_and_shown(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """With uv: an interpreter, what was asked for and this fwbench; then it is looked at.

    What the installer says is passed on; what was made, and how to measure it, is the result. An
    environment that is active has nothing to do with it. One is never overwritten.
    """
    monkeypatch.setenv("VIRTUAL_ENV", str(env.path / "active"))
    uv = env.uv()
    output, progress = env("add", "second", "numpy", "attrs>=23")
    folder = env.environments.folder_of("second")
    python = ".".join(map(str, sys.version_info[:3]))
    held = f"python {python}; numpy {np.__version__}"
    assert output == f"second: {held}\nmeasure it: pytest benchmarks --fw numpy@second\n"
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
    assert command[6:] == install.this_fwbench()
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
    _, output = env("add", "second", "numpy", status=2)
    assert output == (
        "fwbench: error: there is an environment 'second' already (fwbench env list); choose "
        "another name, or remove it first: fwbench env remove second\n"
    )
    assert len(uv.calls) == 2
    assert [*env.environments.all()] == ["second"]
    _assert_alone(env)


def _assert_alone(env: Maker) -> None:
    """Nothing tells that an environment was being made; it stays out of version control."""
    assert env.left() == ["second"]
    ignored = env.environments.folder / ".gitignore"
    assert ignored.read_text(encoding="utf-8") == "*\n"
    names = {path.name for path in env.environments.folder_of("second").iterdir()}
    assert "fwbench-environment.json" in names
    assert install._MAKER not in names
    assert [*env.temporary.iterdir()] == []


def test_uv_beside_the_interpreter_is_used(env: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed into the environment that runs fwbench, it need not be on the path."""
    monkeypatch.setenv("PATH", os.defpath)
    uv = env.uv(install="sys.exit(1)")
    env("add", "second", "numpy", status=3)
    assert len(uv.calls) == 2


def test_without_uv_venv_and_pip_do_it(env: Maker) -> None:
    """The interpreter's own venv makes it, and the new interpreter's pip fills it."""
    pip = "import json, sys; json.dump(sys.argv[1:], open('pip.json', 'w')); print('filled')"
    output, progress = env("add", "second", "numpy", "--python", env.python(pip=pip))
    assert "measure it: pytest benchmarks --fw numpy@second" in output
    assert "  filled" in progress.splitlines()
    requested = json.loads((env.path / "pip.json").read_text(encoding="utf-8"))
    assert requested[:2] == ["install", "--disable-pip-version-check"]
    assert requested[2:] == ["numpy", *install.this_fwbench()]
    assert "  installed by  pip" in env("show", "second")[0].splitlines()


def _origin(**facts: Any) -> Callable[[str], Any]:
    text = json.dumps(facts) if facts else None
    return lambda _: SimpleNamespace(read_text=lambda _: text)


@tabled
def test_the_same_fwbench_is_installed(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any], installs: tuple[str, ...]
) -> None:
    """From where this one came: another one would measure otherwise."""
    monkeypatch.setattr(metadata, "distribution", _origin(**origin))
    assert install.this_fwbench() == [part.format(version=__version__) for part in installs]


@pytest.mark.parametrize("name", ["default", "a-b", "../up", "a/b", ""])
def test_a_name_that_cannot_be_one(env: Maker, name: str) -> None:
    """It is refused before anything is done."""
    uv = env.uv()
    _, output = env("add", name, "numpy", status=2)
    assert output.startswith(f"fwbench: error: environment {name!r}: give a name of letters")
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


def test_a_requirement_that_is_empty(env: Maker) -> None:
    """It is refused before anything is done, as where a variable is not set."""
    uv = env.uv()
    _, output = env("add", "second", "numpy", " ", status=2)
    assert output.startswith("fwbench: error: environment second: a requirement is empty; give")
    assert uv.calls == []


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
    output = env("add", "second", _MISSING, status=3)[1]
    error = output[output.index("fwbench: error: ") :]
    program = "uv" if installer == "uv" else "python"
    assert error.startswith(f"fwbench: error: {program} ended with exit status ")
    assert "; its last output:\n  " in error
    assert _MISSING.removeprefix("./") in error
    assert "Traceback" not in error
    assert env.left() == []


def test_only_the_end_of_what_an_installer_said_is_repeated(env: Maker) -> None:
    """Fifteen lines, the last ones, whichever stream they came by; all of them had been shown."""
    env.uv(
        install="for i in range(40):\n    print('line', i, file=[sys.stdout, sys.stderr][i % 2], "
        "flush=True)\nsys.exit(7)"
    )
    output = env("add", "second", "numpy", status=3)[1]
    progress, error = output.split("fwbench: error: ")
    lines = [f"  line {i}" for i in range(40)]
    assert [line for line in progress.splitlines() if "line" in line] == lines
    assert error.splitlines() == ["uv ended with exit status 7; its last output:", *lines[-15:]]
    assert env.left() == []


def test_an_interpreter_that_cannot_be_made(env: Maker) -> None:
    """uv knows interpreters by path, name or version; its failure leaves nothing either."""
    uv = env.uv(venv="folder.joinpath('half').mkdir(); sys.exit('no such python')")
    _, output = env("add", "second", "numpy", "--python", "3.99", status=2)
    assert "fwbench: error: --python 3.99 makes no environment: " in output
    assert "uv ended with exit status 1; its last output:" in output
    assert output.endswith("  no such python\n")
    ((command, _),) = uv.calls
    assert command[2:4] == ["--python", "3.99"]
    assert env.left() == []


def test_an_interpreter_that_is_not_there(env: Maker) -> None:
    """Without uv, which knows where to get one, --python names a program that is there."""
    _, output = env("add", "second", "numpy", "--python", "python9.99", status=2)
    assert output.startswith("fwbench: error: --python python9.99: there is no such program")
    assert env.left() == []


def test_an_installer_that_does_not_run(env: Maker) -> None:
    """A broken uv is named, with the reason."""
    program = env.programs / "uv"
    program.write_text("#!/no/such/interpreter\n", encoding="utf-8")
    program.chmod(0o755)
    _, output = env("add", "second", "numpy", status=3)
    assert output == f"fwbench: error: cannot run {program}: No such file or directory\n"
    assert env.left() == []


def test_a_framework_that_is_not_there(env: Maker) -> None:
    """An environment named after a framework is to have it."""
    env.uv()
    _, output = env("add", "torch@nightly", "numpy", status=3)
    error = output[output.index("fwbench: error: ") :]
    assert error.startswith("fwbench: error: torch cannot be used in torch@nightly: not installed")
    assert "add its requirement (torch==VERSION), or choose another name" in error
    assert env.left() == []


_BROKEN = "raise OSError('libbroken.so: cannot open shared object file')"


def test_a_framework_that_does_not_import(env: Maker) -> None:
    """The framework that gives an environment its name is tried: its error is the answer.

    In an environment that is named after none, those that work are what it holds.
    """
    other = env.path / "other"
    name_framework(make(other), "frail", _BROKEN)
    env.uv(interpreter=other)
    _, output = env("add", "frail", "frail", status=3)
    assert (
        "fwbench: error: frail cannot be used in frail: does not import (OSError: libbro" in output
    )
    assert "Traceback" not in output
    assert env.left() == []
    env("add", "second", "frail")
    assert [*env.environments.all()["second"].frameworks] == ["numpy"]


def test_an_environment_in_which_fwbench_does_not_run(env: Maker) -> None:
    """The message has the reason why it does not run, and nothing is left."""
    other = env.path / "other"
    make(other, fwbench=False)
    env.uv(interpreter=other)
    _, output = env("add", "second", "numpy", status=3)
    assert "fwbench: error: fwbench does not run in second; its last output:\n" in output
    assert "No module named fwbench" in output
    assert env.left() == []


def test_uv_takes_the_build_of_pytorch_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It brings no CUDA to a machine without a GPU; whoever has chosen an index is left alone."""
    for name in install._SOURCES:
        monkeypatch.delenv(name, raising=False)
    assert install.outside(tmp_path)["UV_TORCH_BACKEND"] == "auto"
    monkeypatch.setenv("UV_INDEX_URL", "https://packages.example.com")
    assert "UV_TORCH_BACKEND" not in install.outside(tmp_path)
    monkeypatch.setenv("UV_TORCH_BACKEND", "cu126")
    assert install.outside(tmp_path)["UV_TORCH_BACKEND"] == "cu126"
