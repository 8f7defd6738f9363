"""Small data sets in every format, and damaged ones."""

from __future__ import annotations

import dataclasses
import gzip
import io
import struct
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fwbench.workloads import data
from fwbench.workloads.data import DataSet, mnist


def idx(array: np.ndarray[Any, Any], magic: int | None = None) -> bytes:
    """An array of uint8 as an IDX file."""
    magic = 0x800 + array.ndim if magic is None else magic
    return struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes()


@dataclasses.dataclass
class Mnist:
    """A small data set that passes for MNIST: 8 images to train, 4 to validate, 5 to test with."""

    folder: Path
    payloads: dict[str, bytes]

    @property
    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        return {
            part.key: np.frombuffer(self.payloads[part.name], np.uint8, offset=len(part.header))
            .reshape(part.shape)
            .copy()
            for part in mnist.PARTS
        }

    def write(self, dot: str = "-", gz: str = ".gz", folder: str = ".", **changed: bytes) -> Path:
        """All four files; the content of some may be another one."""
        where = self.folder / folder
        where.mkdir(parents=True, exist_ok=True)
        for part in mnist.PARTS:
            payload = changed.get(part.key, self.payloads[part.name])
            name = f"{part.name}{dot}idx{len(part.shape)}-ubyte{gz}"
            (where / name).write_bytes(gzip.compress(payload) if gz else payload)
        return where

    def npz(self, **changed: Any) -> Path:
        """Keras' file; some of its arrays may be others."""
        path = self.folder / "mnist.npz"
        np.savez(path, **{**self.arrays, **changed})
        return path

    def load(self) -> DataSet:
        return data.load(data.find("mnist", self.folder))


def tar_gz(path: Path, contents: Sequence[tuple[str | tarfile.TarInfo, bytes]]) -> Path:
    """An archive of files, in this order."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


#: Three reviews of each class, by member name.
REVIEWS = {
    f"{part}/{label}/{number}_{rating}.txt": f"{text} {part}<br /><br />{'film ' * number}".encode()
    for part in ("train", "test")
    for label, rating, text in (("neg", 2, "It's BAD, bad;"), ("pos", 9, "A caf\u00e9 & Good"))
    for number in (2, 10, 1)
}


def same(one: DataSet, other: DataSet) -> bool:
    """Whether all arrays are equal and the digests too."""
    return one.digest == other.digest and all(
        np.array_equal(getattr(getattr(one, part), axis), getattr(getattr(other, part), axis))
        for part in ("train", "validation", "test")
        for axis in "xy"
    )


def changed(payload: bytes, at: int, by: int = 1) -> bytes:
    """The same with another byte."""
    return payload[:at] + bytes([(payload[at] + by) % 256]) + payload[at + 1 :]


def write_tree(folder: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
