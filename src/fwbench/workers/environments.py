"""Named environments: interpreters with their own packages, in addition to the one of pytest.

Each is a folder of its name under ``.fwbench/envs`` of the project; its contents are written
next to it when, and only when, it is complete. A framework in it is named ``FRAMEWORK@NAME``. An
environment whose name is a framework's, or ``FRAMEWORK@LABEL``, gives its own name to it.
"""

import dataclasses
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fwbench import project
from fwbench.errors import FrameworkBroken, StorageError, UsageError
from fwbench.records.files import write_atomically
from fwbench.terms.names import framework_of

#: Where environments are, if not under the project.
VARIABLE = "FWBENCH_ENVS"

#: Stands for the environment that runs pytest.
DEFAULT = "default"

#: Of an environment that came with a repository, say, so that its interpreter may be any program.
NOT_MADE_HERE = "not made on this machine"

#: Marks a complete environment, and tells what it holds.
FACTS = "fwbench-environment.json"


@dataclass(frozen=True)
class Environment:
    """A named environment whose installation was completed."""

    name: str
    folder: Path
    requirements: tuple[str, ...]
    python: str
    #: What made it: ``uv`` or ``pip``.
    installer: str
    #: Version of each framework that could be used when it was made.
    frameworks: Mapping[str, str]

    @property
    def interpreter(self) -> str:
        """The path of its Python."""
        return interpreter_in(self.folder)

    @property
    def is_made_here(self) -> bool:
        """True if ``fwbench env add`` made it on this machine; nothing of any other is run."""
        return is_known(self.folder, self.interpreter)

    @property
    def path(self) -> list[str]:
        """The folders of its packages."""
        # As venv lays them out; looking any deeper would walk through all that is installed.
        layouts = ("lib*/python*/site-packages", "Lib/site-packages")
        return sorted(str(path) for layout in layouts for path in self.folder.glob(layout))

    def reference(self, framework: str) -> str:
        """The name by which ``--fw`` selects a framework in it."""
        return self.name if framework_of(self.name) == framework else f"{framework}@{self.name}"

    @property
    def references(self) -> list[str]:
        """The names by which ``--fw`` selects its frameworks.

        NumPy comes with fwbench: it counts only where the name or nothing else says so.
        """
        framework = framework_of(self.name)
        if framework in self.frameworks:
            return [self.name]
        frameworks = [name for name in self.frameworks if name != "numpy"] or ["numpy"]
        return [self.reference(name) for name in frameworks]


def interpreter_in(folder: Path) -> str:
    """The Python of the virtual environment in a folder."""
    return str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")


def check_name(name: str) -> None:
    """Refuse a name that could not stand in a case id or be a folder.

    Raises:
        UsageError: the name has other characters, or is reserved.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+@]{0,99}", name) or name == DEFAULT:
        raise UsageError(
            f"environment {name!r}: give a name of letters, digits and . _ + @ that begins with a "
            f"letter or digit, has at most 100 characters, and is not {DEFAULT!r}; such as "
            "tensorflow@2.20"
        )


class Environments:
    """The named environments of a project."""

    def __init__(self, root: Path) -> None:
        given = os.environ.get(VARIABLE)
        self.folder = Path(given).absolute() if given else project.own_folder(root, "envs")

    def names(self) -> list[str]:
        """The names of all complete environments, whether or not they can still be read."""
        return sorted(mark.parent.name for mark in self.folder.glob(f"[!.]*/{FACTS}"))

    def all(self) -> dict[str, Environment]:
        """Every environment that can be read, by name."""
        environments = {}
        for name in self.names():
            with suppress(StorageError):
                environments[name] = _read(self.folder / name / FACTS)
        return environments

    def environment_of(self, reference: str) -> Environment | None:
        """The environment in which a framework is; None for the one that runs pytest.

        An environment with exactly that name comes before one that the label names.
        """
        label = reference.partition("@")[2]
        known = self.names()
        for name in (reference, label):
            if name in known:
                return _read(self.folder / name / FACTS)
        return None

    def interpreter_of(self, reference: str) -> str:
        """The interpreter that has a framework.

        Raises:
            FrameworkBroken: it is of an environment that was not made here.
            StorageError: what its environment holds cannot be read.
        """
        environment = self.environment_of(reference)
        if environment is None:
            return sys.executable
        # If its interpreter has gone, starting it fails with a message of its own.
        if Path(environment.interpreter).exists() and not environment.is_made_here:
            raise FrameworkBroken(
                f"its environment {environment.folder} was {NOT_MADE_HERE}",
                f"recreate it: fwbench env remove {environment.name}, then fwbench env add",
            )
        return environment.interpreter

    def path_of(self, reference: str) -> list[str]:
        """The folders that the interpreter of a framework imports packages from."""
        environment = self.environment_of(reference)
        return sys.path if environment is None else environment.path

    def references(self) -> list[str]:
        """Every framework of every environment, as ``--fw`` takes it."""
        return [name for environment in self.all().values() for name in environment.references]

    def folder_of(self, name: str) -> Path:
        """The path of an environment of that name, which need not exist."""
        return self.folder / name


def complete(environment: Environment) -> None:
    """Mark an environment as complete, and as made here."""
    note(environment.folder, environment.interpreter)
    facts = dataclasses.asdict(environment)
    del facts["name"], facts["folder"]
    write_atomically(environment.folder / FACTS, json.dumps(facts, indent=2) + "\n")


def _read(mark: Path) -> Environment:
    try:
        facts: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
        facts["requirements"] = tuple(facts["requirements"])
        return Environment(name=mark.parent.name, folder=mark.parent, **facts)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StorageError(
            f"cannot read {mark} ({error}); recreate the environment: "
            f"fwbench env remove {mark.parent.name}, then fwbench env add"
        ) from error


_PROGRAM = "fwbench"


def note(folder: Path, interpreter: str) -> None:
    """Note that the environment in a folder was made here, with this interpreter."""
    file = _file(folder)
    text = json.dumps(_noted(folder, interpreter), indent=2) + "\n"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror}") from error


def is_known(folder: Path, interpreter: str) -> bool:
    """True if the environment in a folder was made here, and its interpreter is still the same."""
    with suppress(OSError, StorageError, ValueError):
        facts = json.loads(_file(folder).read_text(encoding="utf-8"))
        return bool(facts == _noted(folder, interpreter))
    return False


def forget(folder: Path) -> None:
    """Forget an environment that is removed."""
    with suppress(OSError, StorageError):
        _file(folder).unlink()


def _file(folder: Path) -> Path:
    import platformdirs  # few have environments

    state = Path(platformdirs.user_state_dir(_PROGRAM))
    if not state.is_absolute():
        raise StorageError(
            f"no place to note that {folder} was made here: this user has no home; set "
            "XDG_STATE_HOME to the absolute path of a folder"
        )
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return state / "environments" / f"{name}.json"


def _noted(folder: Path, interpreter: str) -> dict[str, Any]:
    """Place of an environment, and its interpreter: the program, and what decides on its modules.

    The content of a program outside the environment does not count: updates of the system change
    it, and no repository can.
    """
    program = Path(interpreter).resolve()
    contents = [folder / "pyvenv.cfg"]
    if program.is_relative_to(folder.resolve()):
        contents.append(program)
    identity = [str(program), *map(_digest, contents)]
    return {"folder": str(folder.resolve()), "interpreter": identity}


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
