"""MNIST: handwritten digits (LeCun, Cortes and Burges), as IDX files or as Keras' ``mnist.npz``.

Images (n, 28, 28, 1) of uint8, 0 is paper; labels 0 to 9. The 60,000 training images are 48,000 to
train with, the first ones, and 12,000 to validate with.
"""

import hashlib
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import DataError
from fwbench.workloads.data import files
from fwbench.workloads.data.dataset import FileLayout, Split, Splits

TRAIN_EXAMPLES = 48_000

WANTED = "its four IDX files, or Keras' mnist.npz"
OTHER_FORMS: Mapping[str, str] = {
    "mnist.pkl.gz": "pickled",
    "processed/training.pt": "PyTorch's tensors",
    "mnist_train.csv": "as CSV",
}

_CLASSES = 10

FOLDERS: Sequence[str] = ("", "mnist", "MNIST/raw", "MNIST", "raw")


@dataclass(frozen=True)
class Part:
    """One of the four files."""

    #: Of the IDX file, without the suffix of the format.
    name: str
    #: Of the array in ``mnist.npz``.
    key: str
    #: Of its array of uint8.
    shape: tuple[int, ...]
    md5: str

    @property
    def header(self) -> bytes:
        """Head of the IDX file: the magic number, then the shape."""
        return struct.pack(f">{1 + len(self.shape)}I", _magic(len(self.shape)), *self.shape)

    @property
    def size_bytes(self) -> int:
        """The size of the IDX file, uncompressed."""
        return len(self.header) + math.prod(self.shape)

    def files(self, folder: Path) -> tuple[Path, ...]:
        """The names under which the IDX file is met, the original one first."""
        formats = (f"{dot}idx{len(self.shape)}-ubyte{gz}" for dot in "-." for gz in (".gz", ""))
        return tuple(folder / f"{self.name}{form}" for form in formats)


def _magic(dimensions: int) -> int:
    """The first four bytes of an IDX file of unsigned bytes."""
    return 0x800 + dimensions


#: In the order in which :func:`read` takes them.
PARTS = (
    Part("train-images", "x_train", (60_000, 28, 28), "6bbc9ace898e44ae57da46a324031adb"),
    Part("train-labels", "y_train", (60_000,), "a25bea736e30d166cdddb491f175f624"),
    Part("t10k-images", "x_test", (10_000, 28, 28), "2646ac647ad5339dbf082846283269ea"),
    Part("t10k-labels", "y_test", (10_000,), "27ae3e4e09519cfbb04c329615203637"),
)


def layouts(folder: Path) -> Iterator[FileLayout]:
    """Four IDX files, compressed or not, or ``mnist.npz``."""
    folders = [folder / name for name in FOLDERS]
    for where in folders:
        yield FileLayout(tuple(part.files(where) for part in PARTS))
    for where in folders:
        yield FileLayout(((where / "mnist.npz",),))


def read(paths: Sequence[Path], _cache: Path | None) -> Splits:
    """Read MNIST from its IDX files or ``mnist.npz``.

    Args:
        paths: the four IDX files in the order of :data:`PARTS`, or ``mnist.npz``.
        _cache: not used, since reading takes less than a second.

    Raises:
        DataError: a file is missing, cut off or another one.
    """
    if len(paths) == 1:
        images, labels, test_images, test_labels = _npz(paths[0])
    else:
        images, labels, test_images, test_labels = (
            _idx(path, part) for path, part in zip(paths, PARTS, strict=True)
        )
    return (
        _split(images[:TRAIN_EXAMPLES], labels[:TRAIN_EXAMPLES]),
        _split(images[TRAIN_EXAMPLES:], labels[TRAIN_EXAMPLES:]),
        _split(test_images, test_labels),
    )


def _split(images: NDArray[Any], labels: NDArray[Any]) -> Split:
    return Split(images[..., None].copy(), labels.astype(np.int32))


def _npz(path: Path) -> list[NDArray[Any]]:
    limit_bytes = max(part.size_bytes for part in PARTS)
    arrays = files.arrays(path, [part.key for part in PARTS], limit_bytes)
    for part, array in zip(PARTS, arrays, strict=True):
        if (array.dtype, array.shape) != (np.dtype(np.uint8), part.shape):
            raise DataError(
                f"{part.key!r} in {path} is {array.dtype} of shape {array.shape}, expected uint8 "
                f"of shape {part.shape}: it is not MNIST as Keras has it; get it again"
            )
        _check(f"{part.key!r} in {path}", part, array)
    return arrays


def _idx(path: Path, part: Part) -> NDArray[Any]:
    data = files.content(path, part.size_bytes)
    _check_header(path, part, data)
    if len(data) != part.size_bytes:
        size = "more" if len(data) > part.size_bytes else f"{len(data):,}"
        raise DataError(
            f"{path} should have {part.size_bytes:,} bytes, uncompressed, and has {size}: "
            "it is cut off or damaged; get it again"
        )
    array = np.frombuffer(data, np.uint8, offset=len(part.header)).reshape(part.shape)
    _check(str(path), part, array)
    return array


def _check_header(path: Path, part: Part, data: bytes) -> None:
    if len(data) < len(part.header):
        raise DataError(
            f"{path} has {len(data)} bytes, uncompressed, less than an IDX header: it is cut off; "
            "get it again"
        )
    form = f">{1 + len(part.shape)}I"
    expected, *shape = struct.unpack(form, part.header)
    magic, *actual = struct.unpack(form, data[: len(part.header)])
    if magic != expected:
        known = {_magic(1): " (labels)", _magic(3): " (images)"}
        raise DataError(
            f"{path} begins with the magic number {magic}{known.get(magic, '')}, expected "
            f"{expected}{known[expected]}: it is another file under this name; get the right one"
        )
    if actual != shape:
        raise DataError(
            f"{path} claims the shape {_shape(actual)}, expected {_shape(shape)}: "
            "it is another file under this name, such as the test set's under the training set's; "
            "get the right one"
        )


def _shape(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def _check(what: str, part: Part, array: NDArray[Any]) -> None:
    if array.ndim == 1 and array.max() >= _CLASSES:
        raise DataError(
            f"{what} has the label {array.max()}, expected 0 to {_CLASSES - 1}: "
            "it is damaged or of another data set; get it again"
        )
    # A checksum of the known content, nothing that guards a secret.
    digest = hashlib.md5(part.header, usedforsecurity=False)
    digest.update(np.ascontiguousarray(array).data)
    if digest.hexdigest() != part.md5:
        raise DataError(
            f"{what} has the right shape and the MD5 {digest.hexdigest()}, MNIST's is {part.md5}: "
            "it is another data set of this shape (such as Fashion-MNIST) or damaged; get MNIST's"
        )
