"""Data sets, and their layouts on disk."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DataError


@dataclass(frozen=True, eq=False)
class Split:
    """A part of a data set."""

    #: Uint8 images (n, height, width, channels), or int32 tokens (n, length).
    x: NDArray[Any]
    #: Int32 labels (n,), or (n, length) where each token has one.
    y: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.y)


#: Training, validation and test part; no validation part where the data has none.
Splits = tuple[Split, Split | None, Split]


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set in memory."""

    #: ``mnist``, ``cifar10``, ``imdb`` or ``text``.
    name: str
    #: ``real`` or ``synthetic``.
    source: str
    #: The names of the files or of the folder it was read from, or ``generated``.
    origin: str
    train: Split
    #: To watch the learning with; the same object as ``test`` where ``validation_is_test``.
    validation: Split
    test: Split
    #: True if the data has no validation part.
    validation_is_test: bool
    #: 16 hexadecimal digits that tell any two data sets apart.
    digest: str


@dataclass(frozen=True)
class Found:
    """A data set that was found, but not read; name, source and origin are those of a DataSet."""

    name: str
    source: str
    origin: str
    #: The files to read; none if it is generated.
    paths: tuple[Path, ...]
    #: Number in the training part; None where only reading it shows that.
    train_examples: int | None


@dataclass(frozen=True)
class FileLayout:
    """One layout of a data set in a folder."""

    #: For each part the possible paths, the usual one first.
    parts: tuple[tuple[Path, ...], ...]
    #: The folder whose name stands for all parts; None where each stands for itself.
    folder: Path | None = None

    def present(self) -> list[Path]:
        """The parts that are there, in order."""
        return [path for path in map(_first, self.parts) if path is not None]

    def missing(self) -> list[Path]:
        """The parts that are not, by their usual paths."""
        return [ways[0] for ways in self.parts if _first(ways) is None]

    @property
    def begun(self) -> bool:
        """True if anything of it is there."""
        return bool(self.present()) or (self.folder is not None and self.folder.is_dir())

    @property
    def origin(self) -> str:
        """The names of the parts that are there, without their folders."""
        if self.folder is not None:
            return self.folder.name
        return ", ".join(path.name for path in self.present())


class Kind(Protocol):
    """Interface of a data set's module."""

    #: Files and folders of the same data in a form that is not read, with the name of the form.
    OTHER_FORMS: Mapping[str, str]
    #: The form to get instead.
    WANTED: str
    #: The folders to search below the named one.
    FOLDERS: Sequence[str]

    @property
    def TRAIN_EXAMPLES(self) -> int | None:  # noqa: N802 (a constant of the module)
        """Number of examples in the training part; None where that differs."""

    def layouts(self, folder: Path) -> Iterator[FileLayout]:
        """The layouts that the data set may have in ``folder``, the preferred one first."""

    def read(self, paths: Sequence[Path], cache: Path | None, /) -> Splits:
        """The splits of the data set, checked.

        Args:
            cache: a folder for intermediate results; None to keep nothing.

        Raises:
            DataError: a file is missing, cut off or another one.
        """


def data_set(location: Found, splits: Splits) -> DataSet:
    """A data set with its contents and their digest."""
    train, validation, test = splits
    return DataSet(
        name=location.name,
        source=location.source,
        origin=location.origin,
        train=train,
        validation=test if validation is None else validation,
        test=test,
        validation_is_test=validation is None,
        digest=_digest(split for split in splits if split is not None),
    )


def _first(ways: Sequence[Path]) -> Path | None:
    # Neither pipes nor devices: opening one could wait for ever.
    good = next((path for path in ways if path.is_file() or path.is_dir()), None)
    if not good and (other := next(filter(os.path.lexists, ways), None)):
        raise DataError(f"{other} is a broken link, a pipe or a device; put the file there")
    return good


def _digest(splits: Iterator[Split]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for split in splits:
        for array in (split.x, split.y):
            digest.update(f"{array.dtype.name}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
    return digest.hexdigest()
