"""Folders for temporary files, of which nothing is left even if their process is killed.

A folder is removed when it is left. What a process leaves that had no time for that is found by its
name and its mark, and removed by the next command that looks for it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fwbench.processes.interruption import held

#: What the names of these folders begin with.
PREFIX = "fwbench-job-"

#: Tells them from folders of other people's.
_MARK = ".fwbench-job"

#: A process that looks for abandoned folders may take a new one for one of them, but rarely.
_ATTEMPTS = 3


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, which is removed at the end."""
    made, owned = None, None
    try:
        with held():
            made, owned = _make()
        yield made
    finally:
        with held():
            if made is not None:
                remove(made)
            if owned is not None:
                owned.release()


def _make() -> "tuple[Path, Owned | None]":
    for _ in range(_ATTEMPTS):
        made = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
        if (owned := take(made)) is not None:
            break
        remove(made)
    else:  # no folder can be owned here, so no other process takes one either
        made = Path(tempfile.mkdtemp(prefix=PREFIX)).resolve()
    (made / _MARK).touch()
    return made, owned


def abandoned() -> Iterator[Path]:
    """The folders whose processes have ended: each is there until the next one is asked for."""
    for path in sorted(Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*")):
        if not _is_ours(path):
            continue
        owned = take(path)
        if owned is not None:
            with owned:
                yield path
                remove(path)


def _is_ours(path: Path) -> bool:
    """True if a folder was made here, by this user; one that is empty had no time to be marked."""
    try:
        mine = path.lstat().st_uid == os.getuid()
        return mine and ((path / _MARK).exists() or not any(path.iterdir()))
    except OSError:
        return False


def remove(made: Path) -> None:
    """Remove a folder as far as possible, with folders within that cannot be written to."""
    shutil.rmtree(made, ignore_errors=True)
    if made.exists():
        for path, _, _ in os.walk(made):
            with suppress(OSError):
                Path(path).chmod(0o700)
        shutil.rmtree(made, ignore_errors=True)


class Owned(ExitStack):
    """A folder that this process owns until it is released, or the process ends."""

    def release(self) -> None:
        """Leave the folder to others."""
        self.close()


def take(folder: Path) -> Owned | None:
    """Own a folder; None if another process does, or if it is not a folder that can be owned.

    A link to a folder cannot, and neither can any folder of some network file systems.
    """
    import fcntl  # Windows, where reports are read, has none

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last owner may have removed it, and another process created another one, meanwhile.
        is_there = os.path.samestat(os.fstat(descriptor), os.lstat(folder))
    except OSError:
        is_there = False
    if not is_there:
        os.close(descriptor)
        return None
    owned = Owned()
    owned.callback(os.close, descriptor)
    return owned
