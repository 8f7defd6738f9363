"""Small data sets in every format, and damaged ones."""

import contextlib
import copy
import dataclasses
import gzip
import io
import json
import random
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
    path.parent.mkdir(parents=True, exist_ok=True)
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

_BYTES = (b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\n", b'"', b"{", b"}", b",", bytes(512))


def damaged(source: random.Random, content: bytes) -> bytes:
    """A file's content with wrong values (of JSON), or with lost, repeated or other bytes."""
    if source.random() < 0.7:
        with contextlib.suppress(ValueError):
            return _values_damaged(source, content)
    start = source.randint(0, len(content))
    end = start + source.choice((0, 1, 2, 16, 512, len(content)))
    put = source.choice((*_BYTES, content[start:end] * 2))
    ways = (
        content[:start] + put + content[end:],
        content[:start],
        _flipped(source, content),
        content.decode("latin-1").encode("utf-16"),
        gzip.compress(content),
    )
    return source.choice((*ways[:3], *ways))


def lines_damaged(source: random.Random, content: bytes) -> bytes:
    """The content of a file of JSON lines, one of them damaged, gone, or there twice."""
    lines = content.splitlines(keepends=True)
    place = source.randrange(len(lines))
    line = damaged(source, lines[place].rstrip(b"\n"))
    whole = line + b"\n"
    ways = (whole, lines[place] + whole, b"", lines[place] * 2, line)
    return b"".join([*lines[:place], source.choice(ways), *lines[place + 1 :]])


def _flipped(source: random.Random, content: bytes) -> bytes:
    flipped = bytearray(content)
    for _ in range(source.choice((1, 1, 8)) if content else 0):
        flipped[source.randrange(len(flipped))] ^= 1 << source.randrange(8)
    return bytes(flipped)


def _values_damaged(source: random.Random, content: bytes) -> bytes:
    """JSON in which up to three values are replaced, deleted, repeated or of another type."""
    values, raw = [json.loads(content)], {}
    for number in range(source.choice((1, 1, 1, 2, 3))):
        parent, key = _place(source, values)
        mark = f"<{number}>"
        if (way := source.randrange(10)) == 0:
            del parent[key]
        elif way == 1:
            parent[key] = [parent[key]]
        elif way == 2:
            parent[key] = str(parent[key])
        elif way == 3 and isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif way == 3:
            parent[f"{key}_too"] = copy.deepcopy(parent[key])
        else:
            parent[key], raw[json.dumps(mark)] = mark, source.choice(NONSENSE)
    text = json.dumps(values[0]) if values else ""
    for mark, nonsense in raw.items():
        text = text.replace(mark, nonsense)
    return text.encode()


def _place(source: random.Random, values: Any) -> tuple[Any, Any]:
    """Somewhere in the values: the container, and the key or index."""
    if not values:
        raise ValueError("there is nothing to damage")
    key = source.choice([*values] if isinstance(values, dict) else range(len(values)))
    inner = values[key]
    deeper = isinstance(inner, dict | list) and inner and source.random() < 0.85
    return _place(source, inner) if deeper else (values, key)
