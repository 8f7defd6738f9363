"""Files that are written as a whole or not at all, and read up to a size."""

import contextlib
import errno
import os
import secrets
import tempfile
from pathlib import Path

from fwbench.errors import StorageError

#: Of the largest file that is read. A thousand cases in ten launches of 800 rounds, the most that
#: a case has by default, are about 400 MiB.
LARGEST_BYTES = 512 * 2**20


def read(path: Path) -> bytes:
    """The content of a file, of at most 512 MiB.

    Raises:
        StorageError: it cannot be read, or is larger.
    """
    try:
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            # No more than there is, or memory for more is asked for; pipes do not say.
            most_bytes = size_bytes or LARGEST_BYTES + 1
            content = b"" if size_bytes > LARGEST_BYTES else file.read(most_bytes)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    if max(size_bytes, len(content)) > LARGEST_BYTES:
        raise StorageError(
            f"cannot read {path}: it is larger than {LARGEST_BYTES // 2**20} MiB, and so is not a "
            "run, or has too many cases for one; measure part of them in each of several sessions"
        )
    return content


def target(path: Path) -> Path:
    """The file that a path leads to; of links in a circle one of them, which cannot be read."""
    return Path(os.path.realpath(path))  # Path.resolve raises RuntimeError up to Python 3.12


def _written(path: Path) -> Path:
    if (file := target(path)).is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return file


def check_writable(path: Path) -> None:
    """Try whether a file could be written to ``path``, and leave nothing there."""
    if str(path) == "-":  # it would be a file of that name, which nobody wants
        raise StorageError("cannot write -: give a file, or /dev/stdout for standard output")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if is_special(path):
            return
        path = _written(path)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def write_atomically(path: Path, text: str) -> None:
    """Write a file as a whole or not at all: an earlier file stays until the new one is complete.

    A link is followed; devices and pipes are written to, since they keep nothing. Halves of
    characters, which names of files and damaged runs may have, are escaped.

    Raises:
        StorageError: it cannot be written; an earlier file is as it was.
    """
    try:
        if is_special(path):
            path.write_text(text, encoding="utf-8", errors="backslashreplace")
        else:
            _replace(_written(path), text)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from error


def _replace(path: Path, text: str) -> None:
    # No other process can have created it, nor a link of that name.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def is_special(path: Path) -> bool:
    """True if a path is a device or a pipe."""
    return path.exists() and not path.is_file()
