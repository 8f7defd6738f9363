"""Reading files that may be cut off, damaged or hostile: never more than a limit."""

import contextlib
import gzip
import io
import lzma
import re
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DataError

#: No archive of a data set that is known here holds more.
_ARCHIVE_BYTES = 2**31

#: Nor does any have this many members: IMDB's has 100,024.
_MEMBERS = 2**18

#: More than the header of an array in NumPy's format has.
_HEADER_BYTES = 2**12

_CHUNK_BYTES = 2**16

#: The file itself is not at fault.
_NOT_FOR_US = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)

#: All that Python's and NumPy's readers raise on content that they do not understand.
_UNREADABLE = (
    OSError,
    EOFError,
    LookupError,
    MemoryError,
    OverflowError,
    RuntimeError,  # and NotImplementedError: encrypted or unknown members of a zip archive
    SyntaxError,
    ValueError,  # and UnicodeDecodeError
    lzma.LZMAError,
    struct.error,
    tarfile.TarError,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn exceptions of readers on bad content into an error that names the file.

    Raises:
        DataError: ``path`` cannot be read, or is damaged.
    """
    try:
        yield
    except _NOT_FOR_US as error:
        raise DataError(
            f"cannot read {path}: {error.strerror}; check that the file exists and may be read"
        ) from error
    except _UNREADABLE as error:
        raise DataError(
            f"cannot read {path}: {str(error) or type(error).__name__}; it is cut off, damaged or "
            "of another format: get it again"
        ) from error


def content(path: Path, limit_bytes: int) -> bytes:
    """The content of a file, decompressed where its name ends in ``.gz``.

    Args:
        limit_bytes: the expected size. Of a longer file one byte more is returned, so that it
            shows; only of a file that is not longer is the gzip checksum known to be right.

    Raises:
        DataError: the file cannot be read, or is damaged.
    """
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.read(limit_bytes + 1)


def check_utf8(text: bytes, what: str, remedy: str) -> None:
    """Refuse what is not UTF-8 text.

    Args:
        what: the subject of the error's sentence, which ends with the remedy.

    Raises:
        DataError: it is not.
    """
    try:
        text.decode()
    except UnicodeDecodeError as error:
        problem = f"is not UTF-8 text ({error.reason} at byte {error.start})"
        raise DataError(f"{what} {problem}{remedy}") from error


def most_frequent(lexicon: Mapping[bytes, int], words: NDArray[Any], number: int) -> list[int]:
    """The most frequent of the words of a lexicon that occur; of equally frequent ones by bytes."""
    counts = np.bincount(words, minlength=max(lexicon.values(), default=0) + 1).tolist()
    ranked = sorted((-counts[index], word, index) for word, index in lexicon.items())
    return [index for count, _, index in ranked[:number] if count]


def arrays(path: Path, names: Sequence[str], limit_bytes: int) -> list[NDArray[Any]]:
    """Arrays from a file of :func:`numpy.savez`. Nothing is ever unpickled.

    Raises:
        DataError: the file cannot be read or is damaged, or an array is missing, too large or one
            of Python objects.
    """
    with reading(path), zipfile.ZipFile(path) as archive:
        return [_array(path, archive, f"{name}.npy", limit_bytes) for name in names]


def _array(path: Path, archive: zipfile.ZipFile, name: str, limit_bytes: int) -> NDArray[Any]:
    if name not in archive.namelist():
        raise DataError(
            f"{path} has no {name!r}, only {', '.join(archive.namelist()[:9]) or 'nothing'}: "
            "it is another file"
        )
    _bound(f"{name!r} in {path}", archive.getinfo(name).file_size, limit_bytes + _HEADER_BYTES)
    # Read whole, since only that compares the checksum.
    array: NDArray[Any] = np.lib.format.read_array(  # type: ignore[no-untyped-call]
        io.BytesIO(archive.read(name)), allow_pickle=False
    )
    return array


def members(
    path: Path, pattern: re.Pattern[str], limit_bytes: int
) -> Iterator[tuple[re.Match[str], bytes]]:
    """The files in a ``.tar.gz`` archive whose names are wanted, one by one. Nothing is extracted.

    Links, devices and all other names are passed over.

    Yields:
        The match of a member's name, and its content.

    Raises:
        DataError: the archive cannot be read or is damaged, or a wanted member is too large, or
            there are far too many members.
    """
    with reading(path), gzip.open(path) as compressed:
        stream: Any = _Forward(compressed, path, max(limit_bytes, _CHUNK_BYTES))
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in _members(archive, path):
                name = pattern.fullmatch(member.name)
                if name is None or not _is_plain(member):
                    continue
                _bound(f"{member.name!r} in {path}", member.size, limit_bytes)
                stream.seek(member.offset_data)
                data = stream.read(member.size)
                if len(data) < member.size:
                    raise EOFError(f"it ends within {member.name!r}")
                yield name, data
        stream.finish()


def _members(archive: tarfile.TarFile, path: Path) -> Iterator[tarfile.TarInfo]:
    """The members of an archive one by one; tarfile would keep all of them."""
    for number, member in enumerate(iter(archive.next, None), 1):
        if number > _MEMBERS:
            raise DataError(
                f"{path} has more than {_MEMBERS:,} members: the file is damaged or not what its "
                "name says; get it again"
            )
        archive.members.clear()  # type: ignore[attr-defined]
        yield member


def _is_plain(member: tarfile.TarInfo) -> bool:
    """True if a member's content follows its header as it is."""
    return member.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not member.issparse()


class _Forward:
    """File for tarfile that is read forward, in small parts.

    A header can name any size, also a negative one. tarfile believes it: it would read an extended
    header of any size into memory, and go back to read the same member over and over.
    """

    def __init__(self, file: gzip.GzipFile, path: Path, limit_bytes: int) -> None:
        # Python 3.11 decompresses 8 KiB at a time, most of which is overhead.
        self._file = io.BufferedReader(file, 4 * _CHUNK_BYTES)
        self._path = path
        self._limit_bytes = limit_bytes
        self._position = 0

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes."""
        _bound(f"a member of {self._path}", size, self._limit_bytes)
        data = self._file.read(size)
        self._position += len(data)
        _bound(f"{self._path}, decompressed,", self._position, _ARCHIVE_BYTES)
        return data

    def tell(self) -> int:
        return self._position

    def seek(self, position: int) -> int:
        """Read up to ``position``, or to the end."""
        if position < self._position:
            raise tarfile.ReadError("a header names an impossible size")
        while self._position < position:
            if not self.read(min(position - self._position, _CHUNK_BYTES)):
                break
        return self._position

    def finish(self) -> None:
        """Read to the end, where gzip's checksum is compared."""
        while self.read(_CHUNK_BYTES):
            pass


def _bound(what: str, size: int, limit_bytes: int) -> None:
    if not 0 <= size <= limit_bytes:
        raise DataError(
            f"{what} claims to have {size:,} bytes, expected at most {limit_bytes:,}: "
            "the file is damaged or not what its name says; get it again"
        )
