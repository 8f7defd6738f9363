"""Folders for temporary files, of which nothing is left even if their process is killed.

A folder is removed when it is left. What a process leaves that had no time for that is found by its
name and its mark, and removed by the next command that looks for it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fwbench.processes.interruption import held
from fwbench.processes.owned import Owned, take

#: What the names of these folders begin with.
PREFIX = "fwbench-job-"

#: Tells them from folders of other people's.
_MARK = ".fwbench-job"

#: Somebody who looks for abandoned folders may take a new one for one of them, but not often.
_ATTEMPTS = 3


@contextmanager
def folder() -> Iterator[Path]:
    """A new folder, which is removed at the end.

    Raises:
        OSError: it cannot be made.
    """
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


def _make() -> tuple[Path, Owned | None]:
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
    for found in sorted(Path(tempfile.gettempdir()).resolve().glob(f"{PREFIX}*")):
        if not _is_ours(found):
            continue
        owned = take(found)
        if owned is not None:
            with owned:
                yield found
                remove(found)


def _is_ours(found: Path) -> bool:
    """Whether a folder was made here, by this user; one that is empty had no time to be marked."""
    try:
        mine = found.lstat().st_uid == os.getuid()
        return mine and ((found / _MARK).exists() or not any(found.iterdir()))
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
