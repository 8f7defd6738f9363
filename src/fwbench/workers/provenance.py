"""Which environments were made on this machine: the interpreters of no others are run.

A repository may bring a folder ``.fwbench/envs``, and with it a program of its author's that poses
as an interpreter. So ``fwbench env add`` notes outside the project what it has made, in the folder
for the state of programs (``XDG_STATE_HOME``), a file for each environment.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from fwbench.errors import StorageError

_PROGRAM = "fwbench"


def note(folder: Path, interpreter: str) -> None:
    """Note that the environment in a folder was made here, with this interpreter.

    Args:
        folder: of the environment.
        interpreter: the path of its Python.

    Raises:
        StorageError: there is no place for it, or it cannot be written.
    """
    file = _file(folder)
    facts = {"folder": str(folder.resolve()), "interpreter": _identity(folder, interpreter)}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {file}: {error.strerror}") from error


def is_known(folder: Path, interpreter: str) -> bool:
    """Whether the environment in a folder was made here, and its interpreter is still the same.

    Args:
        folder: of the environment.
        interpreter: the path of its Python.
    """
    with suppress(OSError, StorageError, ValueError):
        facts = json.loads(_file(folder).read_text(encoding="utf-8"))
        expected = {"folder": str(folder.resolve()), "interpreter": _identity(folder, interpreter)}
        return bool(facts == expected)
    return False


def forget(folder: Path) -> None:
    """Forget an environment that is removed."""
    with suppress(OSError, StorageError):
        _file(folder).unlink()


def _file(folder: Path) -> Path:
    """The file of an environment.

    Raises:
        StorageError: this user has no folder for it; one below the current folder would not do.
    """
    import platformdirs  # few have environments

    state = Path(platformdirs.user_state_dir(_PROGRAM))
    if not state.is_absolute():
        raise StorageError(
            f"no place to note that {folder} was made here: this user has no home; set "
            "XDG_STATE_HOME to the absolute path of a folder"
        )
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return state / "environments" / f"{name}.json"


def _identity(folder: Path, interpreter: str) -> list[str]:
    """What an interpreter is: the program it leads to, and what decides where its modules are.

    The content of a program outside the environment does not count: updates of the system change
    it, and no repository can.
    """
    program = Path(interpreter).resolve()
    contents = [folder / "pyvenv.cfg"]
    if program.is_relative_to(folder.resolve()):
        contents.append(program)
    return [str(program), *map(_digest, contents)]


def _digest(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""
