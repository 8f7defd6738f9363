"""CIFAR-10: small photographs (Krizhevsky 2009), in the binary version.

Images (n, 32, 32, 3) of uint8; labels 0 to 9; 50,000 to train and 10,000 to test with. There are no
checksums to compare with; that every class has its 5,000 and 1,000 images reveals a batch that is
there twice or comes from somewhere else.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DataError
from fwbench.workloads.data import files
from fwbench.workloads.data.dataset import FileLayout, Split, Splits

TRAIN_EXAMPLES = 50_000

WANTED = "cifar-10-binary.tar.gz"
OTHER_FORMS: Mapping[str, str] = {
    "cifar-10-batches-py": "pickled for Python",
    "cifar-10-python.tar.gz": "pickled for Python",
    "cifar-10-batches-py.tar.gz": "pickled for Python",
    "cifar-10-batches-mat": "for MATLAB",
    "cifar-10-matlab.tar.gz": "for MATLAB",
}

#: Images in each file.
FILE_EXAMPLES = 10_000

_CLASSES = 10
_CHANNELS, _HEIGHT, _WIDTH = 3, 32, 32
_RECORD_BYTES = 1 + _CHANNELS * _HEIGHT * _WIDTH

#: Five files to train with, then one to test with.
_NAMES = (*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin")

_FOLDER = "cifar-10-batches-bin"
_MEMBER = re.compile(rf"{_FOLDER}/({'|'.join(map(re.escape, _NAMES))})")

FOLDERS: Sequence[str] = ("", "cifar10", "CIFAR10", "cifar-10", "cifar")


def layouts(folder: Path) -> Iterator[FileLayout]:
    """The folder of the original archive, its files alone as MXNet keeps them, or the archive."""
    folders = [folder / name for name in FOLDERS]
    for where in folders:
        yield FileLayout(_files(where / _FOLDER), folder=where / _FOLDER)
    for where in folders:
        yield FileLayout(_files(where))
    for where in folders:
        yield FileLayout(((where / "cifar-10-binary.tar.gz",),))


def _files(folder: Path) -> tuple[tuple[Path], ...]:
    return tuple((folder / name,) for name in _NAMES)


def read(paths: Sequence[Path], _cache: Path | None) -> Splits:
    """Read CIFAR-10 from its six files or its archive.

    Args:
        paths: the six files, the test batch last, or the archive.

    Raises:
        DataError: a file is missing, cut off or another one.
    """
    limit_bytes = FILE_EXAMPLES * _RECORD_BYTES
    plain = ((str(path), files.content(path, limit_bytes)) for path in paths)
    batches = _archive(paths[0]) if len(paths) == 1 else plain
    records = [_records(what, data) for what, data in batches]
    where = paths[0] if len(paths) == 1 else paths[0].parent
    train, test = _split(records[:-1]), _split(records[-1:])
    _check_balance(f"the training part in {where}", train)
    _check_balance(f"the test part in {where}", test)
    return train, None, test


def _archive(path: Path) -> list[tuple[str, bytes]]:
    limit_bytes = FILE_EXAMPLES * _RECORD_BYTES
    contents = {name[1]: data for name, data in files.members(path, _MEMBER, limit_bytes)}
    missing = [name for name in _NAMES if name not in contents]
    if missing:
        raise DataError(
            f"{path} has no file {_FOLDER}/{missing[0]}: it is cut off or another archive; "
            "get cifar-10-binary.tar.gz again"
        )
    return [(f"{name} in {path}", contents[name]) for name in _NAMES]


def _records(what: str, data: bytes) -> NDArray[Any]:
    expected = FILE_EXAMPLES * _RECORD_BYTES
    if len(data) != expected:
        size = "more" if len(data) > expected else f"{len(data):,}"
        raise DataError(
            f"{what} should have {expected:,} bytes, {FILE_EXAMPLES:,} records of {_RECORD_BYTES}, "
            f"and has {size}: it is cut off or another file; get it again"
        )
    records = np.frombuffer(data, np.uint8).reshape(FILE_EXAMPLES, _RECORD_BYTES)
    if records[:, 0].max() >= _CLASSES:
        raise DataError(
            f"{what} has the label {records[:, 0].max()}, expected 0 to {_CLASSES - 1}: "
            "it is damaged or of another data set; get it again"
        )
    return records


def _split(batches: list[NDArray[Any]]) -> Split:
    records = np.concatenate(batches)
    planes = records[:, 1:].reshape(-1, _CHANNELS, _HEIGHT, _WIDTH)
    return Split(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), records[:, 0].astype(np.int32))


def _check_balance(what: str, split: Split) -> None:
    expected = len(split.y) // _CLASSES
    for label, count in enumerate(np.bincount(split.y, minlength=_CLASSES)):
        if count != expected:
            raise DataError(
                f"{what} has {count:,} images of class {label}, expected {expected:,}: "
                "a file is there twice or comes from another data set; get CIFAR-10 again"
            )
