"""Makes and removes named environments: ``fwbench env add | remove``."""

import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from fwbench.errors import InstallationError, UsageError, unknown
from fwbench.processes import command, scratch
from fwbench.processes.interruption import held
from fwbench.processes.scratch import Owned
from fwbench.terms.names import framework_of
from fwbench.version import __version__
from fwbench.workers.environments import (
    FACTS,
    VARIABLE,
    Environment,
    Environments,
    check_name,
    complete,
    forget,
    interpreter_in,
)

_SHOWN_LINES = 15


def add(
    environments: Environments,
    name: str,
    requirements: Sequence[str],
    python: str | None,
    say: Callable[[str], Any],
) -> Environment:
    """Make an environment: an interpreter, the requirements, this fwbench, and a look at it.

    Args:
        python: path or name of the interpreter to build on; None for the one that runs this.

    Raises:
        UsageError: the name is taken or cannot be one, or there is no such interpreter.
        InstallationError: something cannot be installed, or does not work once it is; nothing is
            left of the environment then.
    """
    check_name(name)
    if not all(map(str.strip, requirements)):
        raise UsageError(
            f"environment {name}: a requirement is empty; give packages as pip takes them, such as "
            "torch==2.13"
        )
    folder = environments.folder_of(name)
    if name in environments.names():
        raise UsageError(conflict(folder))
    with claimed(folder), scratch.folder() as temporary:
        run = partial(run_installer, say=say, temporary=temporary)
        installer = _created(folder, python, run)
        run([*installer.install, *requirements, *this_fwbench()])
        say(f"looking at what {name} can do")
        facts = _looked_at(folder, name)
        environment = Environment(
            name,
            folder,
            tuple(requirements),
            facts["machine"]["python"],
            installer.name,
            {framework: values["version"] for framework, values in facts["frameworks"].items()},
        )
        complete(environment)
    return environment


def remove(environments: Environments, name: str) -> None:
    """Remove an environment with all that it holds."""
    unfinished = unfinished_names(environments.folder)
    if name not in environments.names() and name not in unfinished:
        raise unknown("environment", name, [*environments.names(), *unfinished])
    folder = environments.folder_of(name)
    owner = scratch.take(folder)
    if owner is None and name in unfinished:
        raise UsageError(conflict(folder))
    with owner or nullcontext(), held():
        discard(folder)
        forget(folder)


@dataclass(frozen=True)
class _Installer:
    """A program that makes environments."""

    name: str
    #: The command that makes an empty one.
    create: Sequence[str]
    #: The command that puts requirements into it, which follow.
    install: Sequence[str]


def _installer(folder: Path, python: str | None) -> _Installer:
    """Command of the installer: uv where it is installed, or else venv and pip."""
    target = interpreter_in(folder)
    uv = shutil.which("uv") or shutil.which("uv", path=sysconfig.get_path("scripts"))
    if uv is not None:
        # --allow-existing: the folder is there, with the name of its maker.
        create = [uv, "venv", "--allow-existing", "--python", python or sys.executable, str(folder)]
        return _Installer("uv", create, [uv, "pip", "install", "--python", target])
    base = shutil.which(python) if python else sys.executable
    if base is None:
        raise UsageError(
            f"--python {python}: there is no such program; give the path of an interpreter"
        )
    pip = [target, "-m", "pip", "install", "--disable-pip-version-check"]
    return _Installer("pip", [base, "-m", "venv", str(folder)], pip)


def _created(folder: Path, python: str | None, run: Callable[[Sequence[str]], None]) -> _Installer:
    """The installer, which has made an empty environment in a folder."""
    installer = _installer(folder, python)
    try:
        run(installer.create)
    except InstallationError as error:
        if python is None:
            raise
        raise UsageError(f"--python {python} makes no environment: {error}") from error
    return installer


def run_installer(arguments: Sequence[str], say: Callable[[str], Any], temporary: Path) -> None:
    """Run an installer; its temporary files stay in ``temporary`` if it is killed."""
    try:
        done = command.run(
            arguments,
            keep_lines=_SHOWN_LINES,
            variables=outside(temporary),
            say=lambda line: say(f"  {line}"),
        )
    except OSError as error:
        raise InstallationError(f"cannot run {arguments[0]}: {error.strerror}") from error
    if done.status:
        raise InstallationError(
            f"{Path(arguments[0]).name} ended with exit status {done.status}; its last output:\n"
            + "\n".join(f"  {line}" for line in done.last_lines)
        )


#: Settings of uv that say where packages come from. Whoever has one has chosen the builds; else uv
#: takes PyTorch's for this machine, and no CUDA to one without a GPU.
_SOURCES = (
    *("UV_TORCH_BACKEND", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL"),
    *("UV_FIND_LINKS", "UV_NO_INDEX", "UV_OFFLINE", "UV_CONFIG_FILE"),
)


def outside(temporary: Path) -> dict[str, str]:
    """Variables of an installer: an activated environment must not pass for the one it makes."""
    variables = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHONHOME")}
    fitting = {} if variables.keys() & {*_SOURCES} else {"UV_TORCH_BACKEND": "auto"}
    return {**variables, **fitting, "TMPDIR": str(temporary)}


def this_fwbench() -> list[str]:
    """Requirement that installs this fwbench from its own source (PEP 610)."""
    origin = metadata.distribution("fwbench").read_text("direct_url.json")
    if origin is None:
        return [f"fwbench=={__version__}"]
    facts = json.loads(origin)
    if facts.get("dir_info", {}).get("editable"):
        return ["--editable", unquote(urlparse(facts["url"]).path)]
    vcs = facts.get("vcs_info")
    if vcs is not None:
        return [f"fwbench @ {vcs['vcs']}+{facts['url']}@{vcs['commit_id']}"]
    return [f"fwbench @ {facts['url']}"]


def _looked_at(folder: Path, name: str) -> dict[str, Any]:
    done = command.capture(
        [interpreter_in(folder), "-P", "-m", "fwbench", "doctor", "--json"],
        # Without the project's other environments.
        variables={**os.environ, VARIABLE: str(folder / "none")},
    )
    try:
        facts: dict[str, Any] = json.loads(done.output)
    except ValueError:
        lines = done.errors.splitlines()[-_SHOWN_LINES:]
        raise InstallationError(
            f"fwbench does not run in {name}; its last output:\n" + "\n".join(lines)
        ) from None
    framework = framework_of(name)
    if framework in facts["absent"]:
        absent = facts["absent"][framework]
        raise InstallationError(
            f"{framework} cannot be used in {name}: {absent['reason']}; an environment of that "
            f"name is to have it: add its requirement ({framework}==VERSION), or choose another "
            "name"
        )
    return facts


#: Marks an environment that is not complete, and names the process that makes it.
_MAKER = "fwbench-maker"

#: What the names of folders begin with that are not an environment's yet, or not any more.
_UNNAMED = ".fwbench-unnamed-"


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """A new folder, owned; it is removed again if what fills it fails or is interrupted.

    Raises:
        UsageError: another process is filling it, or it holds something else.
        InstallationError: it cannot be made.
    """
    owner = None
    try:
        with held():
            owner = _claim(folder)
        yield
        (folder / _MAKER).unlink()
    except BaseException:
        if owner is not None:
            with held():
                discard(folder)
        raise
    finally:
        if owner is not None:
            owner.release()


def _claim(folder: Path) -> Owned:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        ignored = folder.parent / ".gitignore"
        if not ignored.exists():  # what is written here is of this machine: no version control
            ignored.write_text("*\n", encoding="utf-8")
        if (
            folder.name in unfinished_names(folder.parent)
            and (left := scratch.take(folder)) is not None
        ):
            with left:
                discard(folder)
        new = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=folder.parent))
        (new / _MAKER).write_text(str(os.getpid()), encoding="ascii")
    except OSError as error:
        raise InstallationError(f"cannot make {folder}: {error.strerror}") from error
    owner = scratch.take(new)
    if owner is None:
        scratch.remove(new)
        raise InstallationError(f"cannot lock {new}: its file system must have locks (flock)")
    try:
        new.rename(folder)
    except OSError as error:  # there is one already, and it is not empty
        owner.release()
        scratch.remove(new)
        raise UsageError(conflict(folder)) from error
    return owner


def discard(folder: Path) -> None:
    """Remove the folder of an environment, which this process owns: all of it at once."""
    try:
        # Under this name the rest of it after a kill is not an environment.
        unnamed = folder.rename(tempfile.mkdtemp(prefix=_UNNAMED, dir=folder.parent))
    except OSError as error:
        raise InstallationError(f"cannot remove {folder}: {error.strerror}") from error
    scratch.remove(unnamed)
    if unnamed.exists():
        raise InstallationError(f"cannot remove all of {unnamed}, which was {folder.name}")


def remove_abandoned(envs: Path) -> None:
    """Remove what killed processes were about to make or to remove."""
    for unnamed in envs.glob(f"{_UNNAMED}*"):
        if (owner := scratch.take(unnamed)) is not None:
            with owner:
                scratch.remove(unnamed)


def unfinished_names(envs: Path) -> list[str]:
    """The names of environments that are being made, or that a killed process has left."""
    makers = envs.glob(f"[!.]*/{_MAKER}")
    return sorted(maker.parent.name for maker in makers if not maker.with_name(FACTS).exists())


def conflict(folder: Path) -> str:
    """Why a folder is not free, and what to do."""
    name, maker = folder.name, folder / _MAKER
    if (folder / FACTS).exists():
        return (
            f"there is an environment {name!r} already (fwbench env list); choose another name, or "
            f"remove it first: fwbench env remove {name}"
        )
    if not maker.is_file():
        return f"{folder} is there already and is not an environment; choose another name"
    owner = scratch.take(folder)
    if owner is None:
        return f"{name} is being made by process {_number(maker)}; wait for it"
    owner.release()
    return f"{name} is not complete, its fwbench env add was killed; fwbench env remove {name}"


def _number(maker: Path) -> str:
    try:
        return maker.read_text(encoding="ascii")
    except OSError:  # it has just been completed
        return "?"
