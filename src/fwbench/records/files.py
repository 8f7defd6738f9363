"""Files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from fwbench.errors import StorageError


def check_writable(path: Path) -> None:
    """Try whether a file could be written to ``path``, and leave nothing there.

    Raises:
        StorageError: it could not be written.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _is_special(path):
            return
        path = path.resolve()
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file as a whole or not at all: an earlier file stays until the new one is complete.

    A link is followed; devices and pipes are written to, since they keep nothing.

    Args:
        path: of the file.
        text: its content.

    Raises:
        StorageError: it cannot be written; an earlier file is as it was.
    """
    try:
        if _is_special(path):
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _is_special(path: Path) -> bool:
    """Whether a path is a device or a pipe."""
    return path.exists() and not path.is_file()
