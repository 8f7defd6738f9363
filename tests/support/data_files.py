"""Small data sets in every format, and damaged ones."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import struct
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

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


def same(first: DataSet, other: DataSet) -> bool:
    """True where all arrays and the digests are equal."""
    return first.digest == other.digest and all(
        np.array_equal(getattr(getattr(first, part), axis), getattr(getattr(other, part), axis))
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


#: What stands where something else was: as JSON text, since some of it has no value in Python.
NONSENSE = (
    *("null", "true", "false", "0", "-0.0", "-1", "1", "2.5", '""', '"1.0"', "[]", "{}", "[null]"),
    *("5e-324", "1e-300", "-5e-324", "1e308", "-1e308", "1e400", "-1e400", "NaN", "Infinity"),
    *("-Infinity", "99999999999999999999", "1" * 400, "-" + "1" * 5000, "0." + "1" * 400),
    *('"\\ud800"', '"\\udc80.py"', '"\\u0000\\u001b[31m"', '"=1+1"', '"| a | <b>"', '"a\\nb"'),
    *("[" * 90 + "]" * 90, "[" * 200 + "]" * 200, "[" * 100_000, '{"a": 1, "a": 2}'),
    *('[{"a": [1, "b"]}]', '"0001-01-01T00:00:00+05:00"', '"' + "x" * 3000 + '"', "[1.0]"),
)

_BYTES = (b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b'"', b"{", b"}", b",", b"\x00" * 512)

Damage = Callable[[bytes], bytes]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The content of a JSON file with something in it that was not measured."""
    damage = draw(st.sampled_from((values_damaged, values_damaged, values_damaged, bytes_damaged)))
    return draw(damage(content))


@st.composite
def lines_damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """The content of a file of JSON lines, one of them damaged, gone, or there twice."""
    lines = content.splitlines(keepends=True)
    place = draw(st.integers(0, len(lines) - 1))
    line = draw(damaged(lines[place].rstrip(b"\n")))
    ways: tuple[list[bytes], ...] = (
        [line + b"\n"],
        [lines[place], line + b"\n"],
        [],
        [lines[place]] * 2,
        [line],
    )
    return b"".join([*lines[:place], *draw(st.sampled_from(ways)), *lines[place + 1 :]])


@st.composite
def values_damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """JSON in which up to three values were replaced, deleted, repeated or given another type."""
    values = [json.loads(content)]
    raw: dict[str, str] = {}
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        _damage_value(draw, values, raw)
    text = json.dumps(values[0]) if values else ""
    for mark, nonsense in raw.items():
        text = text.replace(json.dumps(mark), nonsense)
    return text.encode()


def _damage_value(draw: st.DrawFn, values: list[Any], raw: dict[str, str]) -> None:
    """Change one value in place; ``raw`` keeps what JSON text is to be written for a mark."""
    place = _place(draw, values)
    if place is None:
        return
    parent, key = place
    mark = f"<{len(raw)}>"
    way = draw(st.integers(0, 9))
    if way == 0:
        del parent[key]
    elif way == 1:
        parent[key] = [parent[key]]
    elif way == 2:
        parent[key] = str(parent[key])
    elif way == 3 and isinstance(parent, list):
        parent.insert(key, parent[key])
    elif way == 3:
        parent[f"{key}_too"] = parent[key]
    else:
        parent[key] = mark
        raw[mark] = draw(st.sampled_from(NONSENSE))


def _place(draw: st.DrawFn, values: Any) -> tuple[Any, Any] | None:
    """Somewhere in the values: the container and the key or index; None in an empty one."""
    parent, depth = values, draw(st.integers(1, 9))
    place = None
    while depth and isinstance(parent, dict | list) and parent:
        keys = [*parent] if isinstance(parent, dict) else range(len(parent))
        place = parent, draw(st.sampled_from(keys))
        parent, depth = parent[place[1]], depth - 1
    return place


@st.composite
def bytes_damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """A file that was cut off, or of which a part was lost, repeated, or overwritten."""
    start = draw(st.integers(0, len(content)))
    length = draw(st.sampled_from((0, 1, 2, 16, 512, len(content))))
    end = min(len(content), start + length)
    put = draw(st.sampled_from((*_BYTES, content[start:end] * 2)))
    damaged = content[:start] + put + content[end:]
    return draw(st.sampled_from((damaged, damaged, damaged, content.decode().encode("utf-16"))))
