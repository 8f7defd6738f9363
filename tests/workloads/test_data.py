"""Data sets are found, checked and read, or generated, and never silently wrong."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import io
import os
import pickle
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.errors import DataError, UsageError
from fwbench.workloads import data
from fwbench.workloads.data import DataSet, Found, cifar, files, imdb, mnist, synthetic
from fwbench.workloads.data.synthetic.digits import digits

_BESIDE = Path(__file__).parents[3] / "shared" / "data"
#: Where real data is, if anywhere.
_REAL = os.environ.get(data.VARIABLE) or (str(_BESIDE) if _BESIDE.is_dir() else "")


@pytest.fixture(autouse=True)
def _nothing_around(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No data is found that the test did not put there."""
    empty = tmp_path_factory.mktemp("empty")
    for variable in (data.VARIABLE, "KERAS_HOME", "MXNET_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(empty))
    monkeypatch.setenv("USERPROFILE", str(empty))
    monkeypatch.chdir(empty)


# ------------------------------------------------------------------ small data sets of each format


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


@pytest.fixture
def small_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mnist:
    rng = np.random.default_rng(1)
    payloads, parts = {}, []
    for part in mnist.PARTS:
        shape = (12 if "train" in part.name else 5, *part.shape[1:])
        array = rng.integers(0, 256 if len(shape) > 1 else 10, shape, np.uint8)
        payloads[part.name] = idx(array)
        md5 = hashlib.md5(payloads[part.name], usedforsecurity=False).hexdigest()
        parts.append(dataclasses.replace(part, shape=shape, md5=md5))
    monkeypatch.setattr(mnist, "PARTS", tuple(parts))
    monkeypatch.setattr(mnist, "TRAIN_EXAMPLES", 8)
    return Mnist(tmp_path, payloads)


def tar_gz(path: Path, contents: Sequence[tuple[str | tarfile.TarInfo, bytes]]) -> Path:
    """An archive of files, in this order."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in contents:
            info = tarfile.TarInfo(name) if isinstance(name, str) else name
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def raw_tar_gz(path: Path, *blocks: bytes) -> Path:
    """An archive of these bytes."""
    padded = b"".join(block.ljust(-len(block) // 512 * -512, b"\0") for block in blocks)
    path.write_bytes(gzip.compress(padded + bytes(1024)))
    return path


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    """A link or a device for an archive."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The header of a member that claims to be of any size."""
    info = special(name, kind)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The six files of a small CIFAR-10: 20 images each, two of every class."""
    monkeypatch.setattr(cifar, "FILE_EXAMPLES", 20)
    rng = np.random.default_rng(2)
    found = {}
    for name in (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"):
        labels = rng.permutation(20).astype(np.uint8)[:, None] % 10
        pixels = rng.integers(0, 256, (20, 3072), np.uint8)
        found[name] = np.concatenate([labels, pixels], axis=1).tobytes()
    return found


#: Three reviews of each class, by member name.
REVIEWS = {
    f"{part}/{label}/{number}_{rating}.txt": f"{text} {part}<br /><br />{'film ' * number}".encode()
    for part in ("train", "test")
    for label, rating, text in (("neg", 2, "It's BAD, bad;"), ("pos", 9, "A caf\u00e9 & Good"))
    for number in (2, 10, 1)
}


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Three reviews of each class, in an order of its own."""
    monkeypatch.setattr(imdb, "CLASS_EXAMPLES", 3)
    return dict(REVIEWS)


def imdb_archive(folder: Path, contents: dict[str, bytes], *more: Any) -> Path:
    members = [(f"aclImdb/{name}", text) for name, text in contents.items()]
    return tar_gz(folder / "aclImdb_v1.tar.gz", [*members, *more])


def same(one: DataSet, other: DataSet) -> bool:
    """Whether all arrays are equal and the digests too."""
    return one.digest == other.digest and all(
        np.array_equal(getattr(getattr(one, part), axis), getattr(getattr(other, part), axis))
        for part in ("train", "validation", "test")
        for axis in "xy"
    )


# -------------------------------------------------------------------------------------- finding


def test_data_that_is_nowhere_is_generated() -> None:
    """Without any data, find says synthetic and how many examples there will be."""
    for name in data.NAMES:
        found = data.find(name, None)
        assert (found.source, found.origin, found.paths) == ("synthetic", "generated", ())
        assert found.train_examples == synthetic.TRAIN_EXAMPLES[name]


def test_an_unknown_data_set_is_refused() -> None:
    """A name that is not known is met with those that are."""
    with pytest.raises(UsageError, match=r"unknown data set 'mnits'.*mnist, cifar10, imdb.*mean"):
        data.find("mnits", None)


@pytest.mark.parametrize("kind", ["missing", "file"])
@pytest.mark.parametrize("where", ["option", "variable"])
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, kind: str
) -> None:
    """Whoever names a folder that does not exist, or a file, is told so and by what he named it."""
    named = tmp_path / "named"
    if kind == "file":
        named.touch()
    else:
        monkeypatch.setenv(data.VARIABLE, os.pathsep.join([str(tmp_path), str(named)]))
    option = named if where == "option" else None
    monkeypatch.setenv(data.VARIABLE, os.pathsep.join([str(tmp_path), str(named)]))
    who = "--fw-data" if where == "option" else f"variable {data.VARIABLE}"
    what = "is no folder" if kind == "file" else "does not exist"
    with pytest.raises(UsageError, match=f"{who} names {re.escape(str(named))}, which {what}"):
        data.find("mnist", option)


def test_the_order_of_the_places(small_mnist: Mnist, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder asked for comes first, then the variable's in order, then the caches."""
    places = [small_mnist.folder / name for name in ("option", "first", "second", "keras/datasets")]
    for place in places:
        small_mnist.write(folder=str(place))
    option, first, second, keras = places
    monkeypatch.setenv("KERAS_HOME", str(keras.parent))
    monkeypatch.setenv(data.VARIABLE, os.pathsep.join(map(str, (first, second))))

    def found(folder: Path | None) -> Path:
        return data.find("mnist", folder).paths[0].parent

    assert found(option) == option
    assert found(None) == first
    shutil.rmtree(first)
    first.mkdir()
    assert found(None) == second
    monkeypatch.delenv(data.VARIABLE)
    assert found(None) == keras


@pytest.mark.parametrize(
    ("variable", "folder"),
    [
        (None, ".keras/datasets"),
        (None, ".mxnet/datasets/mnist"),
        (None, "data/MNIST/raw"),
        ("KERAS_HOME", "elsewhere/datasets"),
        ("MXNET_HOME", "elsewhere/datasets/mnist"),
    ],
)
def test_the_frameworks_caches(
    small_mnist: Mnist, monkeypatch: pytest.MonkeyPatch, variable: str | None, folder: str
) -> None:
    """Data is found where Keras, MXNet and torchvision keep it, also where a variable moved it."""
    if variable is not None:
        monkeypatch.setenv(variable, str(small_mnist.folder / "elsewhere"))
    monkeypatch.setenv("HOME", str(small_mnist.folder))
    monkeypatch.setenv("USERPROFILE", str(small_mnist.folder))
    monkeypatch.chdir(small_mnist.folder)
    where = small_mnist.write(folder=folder)
    assert {path.parent for path in data.find("mnist", None).paths} == {where}


@pytest.mark.parametrize("lost", range(4))
def test_a_part_of_a_data_set_is_an_error_where_it_was_asked_for(
    small_mnist: Mnist, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """Three of four files in a named folder: the error names the fourth; a cache is passed over."""
    where = small_mnist.write(folder="keras/datasets")
    missing = data.find("mnist", where).paths[lost]
    missing.unlink()
    with pytest.raises(DataError, match=re.escape(missing.name)):
        data.find("mnist", where)
    monkeypatch.setenv("KERAS_HOME", str(where.parent))
    assert data.find("mnist", None).source == "synthetic"
    monkeypatch.setenv(data.VARIABLE, str(where))
    with pytest.raises(DataError, match=re.escape(missing.name)):
        data.find("mnist", None)


def test_a_complete_set_beside_a_part_of_one(small_mnist: Mnist) -> None:
    """A folder with both is not at fault."""
    stray = small_mnist.write(folder="mnist") / "t10k-labels-idx1-ubyte.gz"
    stray.unlink()
    small_mnist.npz()
    assert data.find("mnist", small_mnist.folder).origin == "mnist.npz"


def test_a_place_that_cannot_be_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder without permission is an error where it was named, else it is passed over."""
    forbidden = tmp_path / "forbidden"
    (forbidden / "datasets").mkdir(parents=True)
    is_file = Path.is_file

    def refuse(path: Path) -> bool:
        if forbidden in path.parents:
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(DataError, match=r"cannot look into .*Permission denied"):
        data.find("imdb", forbidden)
    monkeypatch.setenv("KERAS_HOME", str(forbidden))
    assert data.find("imdb", None).source == "synthetic"


def test_the_origin_has_no_folders_of_the_user(
    tmp_path: Path, small_mnist: Mnist, reviews: dict[str, bytes]
) -> None:
    """What ends in a record names files and folders of the data set alone."""
    small_mnist.write(gz="")
    assert data.find("mnist", tmp_path).origin.startswith("train-images-idx3-ubyte, train-labels")
    tar_gz(tmp_path / "cifar-10-binary.tar.gz", [])
    assert data.find("cifar10", tmp_path).origin == "cifar-10-binary.tar.gz"
    write_tree(tmp_path / "imdb" / "aclImdb", reviews)
    for folder in (tmp_path, tmp_path / "imdb", tmp_path / "imdb" / "aclImdb"):
        assert data.find("imdb", folder).origin == "aclImdb"


def test_importing_is_cheap() -> None:
    """Neither a framework nor anything else large is imported."""
    code = "import sys, fwbench.workloads.data; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.split())
    assert not loaded & {"tensorflow", "keras", "mxnet", "torch", "jax", "scipy", "pandas"}


# ---------------------------------------------------------------------------------------- MNIST


def test_mnist_of_every_format_is_the_same(small_mnist: Mnist) -> None:
    """IDX files compressed or not, with either spelling of their names, and Keras' file."""
    found = []
    for dot in "-.":
        for gz in (".gz", ""):
            where = small_mnist.write(dot, gz, folder=f"mnist{dot}{gz}")
            found.append(data.load(data.find("mnist", where)))
    small_mnist.npz()
    found.append(small_mnist.load())
    assert all(same(found[0], other) for other in found[1:])
    assert [len(split.y) for split in (found[0].train, found[0].validation, found[0].test)] == [
        8,
        4,
        5,
    ]
    expected = small_mnist.arrays
    train = found[0].train
    assert (train.x.dtype, train.x.shape) == (np.uint8, (8, 28, 28, 1))
    assert np.array_equal(train.x[..., 0], expected["x_train"][:8])
    assert np.array_equal(found[0].validation.y, expected["y_train"][8:])
    assert np.array_equal(found[0].test.y, expected["y_test"])
    assert train.y.dtype == np.int32
    assert not found[0].validation_is_test


def changed(payload: bytes, at: int, by: int = 1) -> bytes:
    """The same with another byte."""
    return payload[:at] + bytes([(payload[at] + by) % 256]) + payload[at + 1 :]


@pytest.mark.parametrize(
    ("key", "damage", "message"),
    [
        ("x_train", lambda own, all_: own[:-1], "should have .* bytes.*has .*cut off"),
        ("x_train", lambda own, all_: own + b"\0", "and has more"),
        ("x_train", lambda own, all_: own[:9], "has 9 bytes"),
        ("x_train", lambda own, all_: b"", "has 0 bytes"),
        (
            "x_train",
            lambda own, all_: all_["train-labels"],
            r"magic number 2049 \(labels\), expected 2051 \(images\)",
        ),
        (
            "y_train",
            lambda own, all_: all_["train-images"],
            r"magic number 2051 \(images\), expected 2049 \(labels\)",
        ),
        (
            "x_train",
            lambda own, all_: all_["t10k-images"],
            "shape is 5x28x28, expected 12x28x28.*test set's",
        ),
        ("y_test", lambda own, all_: all_["train-labels"], "shape is 12, expected 5"),
        ("x_train", lambda own, all_: changed(own, 0), "magic number 16779267, expected 2051"),
        ("x_train", lambda own, all_: changed(own, 11), "shape is 12x29x28"),
        ("x_train", lambda own, all_: changed(own, 500), "MD5 .*Fashion-MNIST"),
        ("x_train", lambda own, all_: own[:16] + own[16:][::-1], "MD5 .*Fashion-MNIST"),
        ("y_train", lambda own, all_: own[:-1] + b"\x0a", "label 10, expected 0 to 9"),
        ("y_train", lambda own, all_: own[:-1] + bytes([9 - own[-1]]), "MD5"),
    ],
)
def test_idx_files_that_are_not_mnist(
    small_mnist: Mnist,
    key: str,
    damage: Callable[[bytes, dict[str, bytes]], bytes],
    message: str,
) -> None:
    """Cut off, swapped, damaged or another data set: refused with the file, what and why."""
    part = next(part for part in mnist.PARTS if part.key == key)
    damaged = damage(small_mnist.payloads[part.name], small_mnist.payloads)
    for gz in (".gz", ""):
        small_mnist.write(gz=gz, folder=f"mnist{gz}", **{key: damaged})
        with pytest.raises(DataError, match=message) as error:
            data.load(data.find("mnist", small_mnist.folder / f"mnist{gz}"))
        assert part.name in str(error.value)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda packed: packed[:-20], "end-of-stream"),
        (lambda packed: packed[:-4], "end-of-stream"),
        (lambda packed: changed(packed, -7), "CRC"),
        (lambda packed: changed(packed, 0), "[Nn]ot a gzipped file"),
        (lambda packed: packed + b"more", "[Nn]ot a gzipped file"),
        (gzip.decompress, "[Nn]ot a gzipped file"),
        (lambda packed: packed[:10], "end-of-stream"),
    ],
)
def test_damaged_gzip_files(
    small_mnist: Mnist, damage: Callable[[bytes], bytes], message: str
) -> None:
    """What gzip finds wrong is said of the file, as a data error."""
    path = small_mnist.write() / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=f"cannot read .*{path.name}: .*{message}.*get it again"):
        small_mnist.load()


def test_a_small_file_that_becomes_a_large_one(small_mnist: Mnist) -> None:
    """Of a file that decompresses to far more than expected only what is expected is read."""
    small_mnist.write(x_train=small_mnist.payloads["train-images"] + bytes(50_000_000))
    path = small_mnist.folder / "train-images-idx3-ubyte.gz"
    assert len(files.content(path, 100)) == 101
    with pytest.raises(DataError, match="has more"):
        small_mnist.load()


def test_a_folder_in_place_of_a_file(small_mnist: Mnist) -> None:
    """What the system says is passed on."""
    path = small_mnist.write() / "train-images-idx3-ubyte.gz"
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=rf"cannot read .*{path.name}: .*that you may read it"):
        small_mnist.load()


def test_a_file_that_is_gone_when_it_is_read(small_mnist: Mnist) -> None:
    """Between finding and reading anything may happen."""
    small_mnist.write()
    found = data.find("mnist", small_mnist.folder)
    found.paths[3].unlink()
    with pytest.raises(DataError, match=found.paths[3].name):
        data.load(found)


class _Trap:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def test_an_array_of_objects_is_not_unpickled(small_mnist: Mnist) -> None:
    """A file of Keras' name that would run code when unpickled is refused, and runs none."""
    mark = small_mnist.folder / "ran"
    trap = np.empty(12, object)
    trap[:] = [_Trap(mark)] * 12
    small_mnist.npz(y_train=trap)
    with pytest.raises(DataError, match=r"mnist\.npz.*allow_pickle=False"):
        small_mnist.load()
    path = small_mnist.folder / "mnist.npz"
    path.write_bytes(pickle.dumps(_Trap(mark)))
    with pytest.raises(DataError, match=r"mnist\.npz"):
        small_mnist.load()
    with zipfile.ZipFile(path, "w") as archive:
        for part in mnist.PARTS:
            archive.writestr(f"{part.key}.npy", pickle.dumps(_Trap(mark)))
    with pytest.raises(DataError, match=r"mnist\.npz"):
        small_mnist.load()
    assert not mark.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_train": np.zeros((12, 28, 28), np.int64)}, "is too large|is said to have|is int64"),
        ({"y_train": np.zeros(12, np.int8)}, "is int8 of shape"),
        ({"x_train": np.zeros((5, 28, 28), np.uint8)}, r"shape \(5, 28, 28\), expected"),
        ({"x_train": np.zeros((12, 28, 28), np.uint8)}, "MD5 .*Fashion-MNIST"),
        ({"y_train": np.full(12, 10, np.uint8)}, "label 10"),
        ({"x_train": np.zeros((1000, 28, 28), np.uint8)}, "is said to have 784,128 bytes"),
    ],
)
def test_another_file_under_the_name_of_keras(
    small_mnist: Mnist, change: dict[str, Any], message: str
) -> None:
    """Arrays of another type, shape, size or content are refused."""
    small_mnist.npz(**change)
    with pytest.raises(DataError, match=message):
        small_mnist.load()


def test_damaged_files_of_keras(small_mnist: Mnist) -> None:
    """Empty, cut off, with a flipped byte, without an array: refused by name."""
    path = small_mnist.npz()
    whole = path.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], changed(whole, 5_000), b"no archive at all"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"cannot read .*mnist\.npz"):
            small_mnist.load()
    np.savez(path, x_train=np.zeros(3))
    with pytest.raises(DataError, match=r"has no 'y_train\.npy', only x_train\.npy"):
        small_mnist.load()


# ------------------------------------------------------------------------------------- CIFAR-10


def write_tree(folder: Path, contents: dict[str, bytes]) -> Path:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def cifar_archive(folder: Path, contents: dict[str, bytes]) -> Path:
    """As the original: with files beside the batches."""
    members = [(f"cifar-10-batches-bin/{name}", content) for name, content in contents.items()]
    more = [("cifar-10-batches-bin/readme.html", b"<html>"), ("../test_batch.bin", b"evil")]
    return tar_gz(folder / "cifar-10-binary.tar.gz", [*more, *reversed(members)])


def test_cifar_of_every_format_is_the_same(tmp_path: Path, batches: dict[str, bytes]) -> None:
    """The folder, its files alone and the archive in any order; test is the validation part."""
    folders = [tmp_path / name for name in "abc"]
    write_tree(folders[0] / "cifar-10-batches-bin", batches)
    write_tree(folders[1] / "cifar10", batches)
    folders[2].mkdir()
    cifar_archive(folders[2], batches)
    first, *others = [data.load(data.find("cifar10", folder)) for folder in folders]
    assert all(same(first, other) for other in others)
    assert first.validation is first.test
    assert first.validation_is_test
    assert (first.train.x.shape, first.test.x.shape) == ((100, 32, 32, 3), (20, 32, 32, 3))
    record = batches["data_batch_2.bin"][3073:6146]
    assert first.train.y[21] == record[0]
    # Red, green and blue of row 3, column 5.
    at = [1 + plane * 1024 + 3 * 32 + 5 for plane in range(3)]
    assert first.train.x[21, 3, 5].tolist() == [record[i] for i in at]


def test_a_cifar_folder_without_a_batch(tmp_path: Path, batches: dict[str, bytes]) -> None:
    """The missing file is named; also an empty folder is no reason to generate something."""
    folder = write_tree(tmp_path / "cifar-10-batches-bin", batches)
    (folder / "data_batch_4.bin").unlink()
    with pytest.raises(DataError, match=r"data_batch_4\.bin"):
        data.find("cifar10", tmp_path)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(DataError, match=r"data_batch_1\.bin"):
        data.find("cifar10", tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda own, other: own[:-1], "should have 61,460 bytes, 20 records of 3073, and has"),
        (lambda own, other: b"", "and has 0"),
        (lambda own, other: changed(own, 0, 10 - own[0]), "label 10, expected 0 to 9"),
        (lambda own, other: changed(own, 0, (own[0] == 9) * -2 + 1), "images of class"),
    ],
)
def test_damaged_cifar_files(
    tmp_path: Path,
    batches: dict[str, bytes],
    damage: Callable[[bytes, bytes], bytes],
    message: str,
) -> None:
    """A wrong size, label or balance of classes is found, in the folder and in the archive."""
    batches["data_batch_3.bin"] = damage(batches["data_batch_3.bin"], batches["test_batch.bin"])
    folders = [tmp_path / "folder", tmp_path / "archive"]
    write_tree(folders[0], batches)
    folders[1].mkdir()
    cifar_archive(folders[1], batches)
    for folder in folders:
        with pytest.raises(DataError, match=message):
            data.load(data.find("cifar10", folder))


def test_too_large_cifar_files(tmp_path: Path, batches: dict[str, bytes]) -> None:
    """More than the expected size is not read."""
    batches["data_batch_3.bin"] += b"\0"
    write_tree(tmp_path, batches)
    with pytest.raises(DataError, match="and has more"):
        data.load(data.find("cifar10", tmp_path))
    (tmp_path / "archive").mkdir()
    cifar_archive(tmp_path / "archive", batches)
    with pytest.raises(DataError, match="is said to have 61,461 bytes, expected at most 61,460"):
        data.load(data.find("cifar10", tmp_path / "archive"))


def test_a_cifar_archive_without_a_batch(tmp_path: Path, batches: dict[str, bytes]) -> None:
    """The missing member is named."""
    del batches["test_batch.bin"]
    cifar_archive(tmp_path, batches)
    with pytest.raises(DataError, match=r"has no file cifar-10-batches-bin/test_batch\.bin"):
        data.load(data.find("cifar10", tmp_path))


# ----------------------------------------------------------------------------------------- IMDB


def test_reviews_become_tokens_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """Order, case, breaks, apostrophes, frequencies, ties, unknown words, padding in front."""
    monkeypatch.setattr(imdb, "VOCABULARY", 10)
    monkeypatch.setattr(imdb, "LENGTH", 8)
    imdb_archive(tmp_path, reviews)
    found = data.load(data.find("imdb", tmp_path))
    # In the training part: film 26 times, bad and train 6, a caf good its 3 each: "its" comes last
    # and is the eighth word, for which there is no token left.
    film, bad, train, a, caf, good, its = 3, 4, 5, 6, 7, 8, 9
    unknown = imdb.UNKNOWN
    assert found.train.x[:3].tolist() == [
        [0, 0, imdb.START, its, bad, bad, train, film],
        [0, 0, imdb.START, a, caf, good, train, film],
        [0, imdb.START, its, bad, bad, train, film, film],
    ]
    assert found.train.x[-1].tolist() == [film] * 8
    assert found.test.x[0].tolist() == [0, 0, imdb.START, its, bad, bad, unknown, film]
    assert found.train.y.tolist() == found.test.y.tolist() == [0, 1] * 3
    assert found.train.x.dtype == found.train.y.dtype == np.int32
    assert found.validation is found.test


def test_words_are_what_the_expression_matches() -> None:
    """Of every byte there is, the fast way to split makes what the documented one makes."""
    text = b"".join(bytes([byte]) + b"x" for byte in range(256)) + b"a<br /><br />B'c D1\n"
    plain = re.sub(rb"<br />", b" ", text).replace(b"'", b"")
    assert imdb._words(text) == re.findall(rb"[a-z0-9]+", plain.lower())


def test_a_full_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """No token reaches the size of the vocabulary: the rarest words become unknown."""
    monkeypatch.setattr(imdb, "VOCABULARY", 5)
    imdb_archive(tmp_path, reviews)
    x = data.load(data.find("imdb", tmp_path)).train.x
    assert x.shape == (6, 500)
    assert set(np.unique(x)) == {imdb.PADDING, imdb.START, imdb.UNKNOWN, 3, 4}


def test_reviews_from_archive_and_folder_are_the_same(
    tmp_path: Path, reviews: dict[str, bytes]
) -> None:
    """Whatever the order in the archive, and whatever lies beside the reviews."""
    beside = {"README": b"?", "train/unsup/0_0.txt": b"?", "train/pos/notes.md": b"?"}
    names = np.random.default_rng(1).permutation(list(reviews)).tolist()
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    imdb_archive(folders[0], reviews)
    imdb_archive(folders[1], {**beside, **{name: reviews[name] for name in names}})
    write_tree(folders[2] / "aclImdb", {**beside, **reviews})
    first, *others = [data.load(data.find("imdb", folder)) for folder in folders]
    assert all(same(first, other) for other in others)


def test_hostile_members_are_passed_over(tmp_path: Path, reviews: dict[str, bytes]) -> None:
    """Names that lead elsewhere, links and devices change nothing and write nothing."""
    plain, hostile = tmp_path / "plain", tmp_path / "a" / "b" / "hostile"
    plain.mkdir()
    hostile.mkdir(parents=True)
    imdb_archive(plain, reviews)
    review = "aclImdb/train/pos/77_9.txt"
    imdb_archive(
        hostile,
        reviews,
        ("../evil.txt", b"evil"),
        ("../../aclImdb/train/pos/7_9.txt", b"evil"),
        ("aclImdb/train/pos/../pos/7_9.txt", b"evil"),
        (f"/{review}", b"evil"),
        (str(tmp_path / "absolute.txt"), b"evil"),
        (special(review, tarfile.SYMTYPE, "/etc/passwd"), b""),
        (special(review, tarfile.LNKTYPE, "aclImdb/train/pos/1_9.txt"), b""),
        (special(review, tarfile.CHRTYPE), b""),
        (special(review, tarfile.FIFOTYPE), b""),
        (special(review, tarfile.DIRTYPE), b""),
    )
    before = sorted(tmp_path.rglob("*"))
    loaded = [data.load(data.find("imdb", folder)) for folder in (plain, hostile)]
    assert same(*loaded)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([header("aclImdb/train/pos/0_9.txt", 2**40)], "said to have 1,099,511,627,776 bytes"),
        ([header("aclImdb/train/pos/0_9.txt", 2000), b"x" * 512], "it ends within"),
        ([header("first", 0), header("other", -512)], "impossible size"),
        ([header("aclImdb/train/pos/0_9.txt", -512)], "said to have -512 bytes"),
        ([header("pax", 2**33, tarfile.XHDTYPE)], "said to have 8,589,"),
        ([header("pax", -512, tarfile.XHDTYPE)], "said to have -"),
        ([header("././@LongLink", 2**33, tarfile.GNUTYPE_LONGNAME)], "said to have 8,589,"),
        ([b"no archive"], "cannot read .*get it again"),
        ([], "expected 3"),
    ],
)
@pytest.mark.usefixtures("reviews")
def test_archives_that_lie_about_sizes(tmp_path: Path, blocks: list[bytes], message: str) -> None:
    """A size without measure, or below zero, is refused for what the header says alone."""
    raw_tar_gz(tmp_path / "aclImdb_v1.tar.gz", *blocks)
    with pytest.raises(DataError, match=message) as error:
        data.load(data.find("imdb", tmp_path))
    assert "aclImdb_v1.tar.gz" in str(error.value)


def test_an_archive_that_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reviews: dict[str, bytes]
) -> None:
    """What an archive may decompress to is bounded, whatever is in it."""
    monkeypatch.setattr(files, "_ARCHIVE_BYTES", 2**20)
    imdb_archive(tmp_path, reviews, ("large", bytes(2**21)))
    with pytest.raises(DataError, match=r"decompressed, is said to have .* at most 1,048,576"):
        data.load(data.find("imdb", tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train/neg/1_2.txt": None}, "has 2 reviews in train/neg, expected 3"),
        ({"test/pos/3_9.txt": b"more"}, "has 4 reviews in test/pos, expected 3"),
        ({"train/neg/1_3.txt": b"again"}, "two reviews with the number 1 in train/neg"),
        ({"train/neg/1_2.txt": b"caf\xe9"}, "review 1 in train/neg .* is not UTF-8 text"),
    ],
)
def test_reviews_that_are_not_all_there(
    tmp_path: Path, reviews: dict[str, bytes], change: dict[str, bytes | None], message: str
) -> None:
    """A wrong number, one number twice or no text: refused, in the archive and in the folder."""
    now = {name: text for name, text in {**reviews, **change}.items() if text is not None}
    (tmp_path / "archive").mkdir()
    imdb_archive(tmp_path / "archive", now)
    write_tree(tmp_path / "folder" / "aclImdb", now)
    for place in ("archive", "folder"):
        with pytest.raises(DataError, match=message) as error:
            data.load(data.find("imdb", tmp_path / place))
        assert "aclImdb" in str(error.value)


def test_an_imdb_folder_without_a_class(tmp_path: Path, reviews: dict[str, bytes]) -> None:
    """The missing folder is named."""
    kept = {name: text for name, text in reviews.items() if not name.startswith("test/neg")}
    write_tree(tmp_path / "aclImdb", kept)
    with pytest.raises(DataError, match=r"aclImdb.test.neg"):
        data.find("imdb", tmp_path)


def test_a_review_of_a_folder_that_is_none(tmp_path: Path, reviews: dict[str, bytes]) -> None:
    """A gigantic file is not read, and a link is not followed."""
    folder = write_tree(tmp_path / "aclImdb", reviews)
    with (folder / "train/pos/1_9.txt").open("wb") as file:
        file.truncate(2**33)
    with pytest.raises(DataError, match=r"1_9\.txt has more than 1,048,576 bytes"):
        data.load(data.find("imdb", tmp_path))
    (folder / "train/pos/1_9.txt").unlink()
    (folder / "train/pos/1_9.txt").symlink_to(folder / "train/pos/2_9.txt")
    with pytest.raises(DataError, match="has 2 reviews in train/pos"):
        data.load(data.find("imdb", tmp_path))


@pytest.mark.parametrize("keep", [0, 5, 100, -4, -8, -12])
def test_cut_off_archives(tmp_path: Path, reviews: dict[str, bytes], keep: int) -> None:
    """Wherever an archive ends too early, also within the checksum alone, it is refused."""
    path = imdb_archive(tmp_path, reviews)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"cannot read .*aclImdb_v1\.tar\.gz"):
        data.load(data.find("imdb", tmp_path))


def test_every_damage_is_a_data_error(
    tmp_path: Path, small_mnist: Mnist, reviews: dict[str, bytes]
) -> None:
    """Whatever bytes of a file are wrong, in the packing or within: the data, or a data error."""
    small_mnist.npz()
    imdb_archive(tmp_path, reviews)
    rng = np.random.default_rng(3)
    for name, file in (("mnist", "mnist.npz"), ("imdb", "aclImdb_v1.tar.gz")):
        path, found = tmp_path / file, data.find(name, tmp_path)
        good, packed = data.load(found), path.read_bytes()
        for _ in range(150):
            path.write_bytes(damaged(packed, name == "imdb" and rng.random() < 0.5, rng))
            with contextlib.suppress(DataError):
                loaded = data.load(found)
                # Only a byte that says nothing may be another: MNIST is held to its checksums.
                assert name == "imdb" or same(loaded, good)


def damaged(packed: bytes, within: bool, rng: np.random.Generator) -> bytes:
    """Up to three bytes are others, of a compressed file or within what it decompresses to."""
    content = gzip.decompress(packed) if within else packed
    for _ in range(rng.integers(1, 4)):
        content = changed(content, int(rng.integers(len(content))), int(rng.integers(1, 256)))
    return gzip.compress(content, 1) if within else content


# ------------------------------------------------------------------------------------ the cache


@pytest.fixture
def unread(tmp_path: Path, reviews: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Found:
    """A found archive, and a count of how often it is read in ``imdb.reads``."""
    imdb_archive(tmp_path, reviews)
    monkeypatch.setattr(imdb, "reads", 0, raising=False)
    members = files.members

    def counted(*args: Any) -> Iterator[Any]:
        imdb.reads += 1
        return members(*args)

    monkeypatch.setattr(files, "members", counted)
    return data.find("imdb", tmp_path)


def test_tokens_are_kept(tmp_path: Path, unread: Found) -> None:
    """The second time the archive is not read, the data is the same, and one file is there."""
    cache = tmp_path / "new" / "cache"
    first, second = data.load(unread, cache), data.load(unread, cache)
    assert same(first, second)
    assert imdb.reads == 1
    assert [path.suffix for path in cache.iterdir()] == [".npz"]
    assert same(first, data.load(unread))
    assert imdb.reads == 2


@pytest.mark.parametrize("change", ["archive", "time", "vocabulary", "length", "version", "path"])
def test_what_is_kept_is_for_the_same_archive_alone(
    tmp_path: Path, unread: Found, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Whatever the tokens depend on, another one is another file."""
    cache = tmp_path / "cache"
    data.load(unread, cache)
    path = unread.paths[0]
    if change == "archive":
        path.write_bytes(path.read_bytes() + bytes(512))
    elif change == "time":
        os.utime(path, ns=(0, 1))
    elif change == "path":
        (tmp_path / "imdb").mkdir()
        path.rename(tmp_path / "imdb" / path.name)
        unread = data.find("imdb", tmp_path)
    else:
        name = change.upper() if change != "version" else "_VERSION"
        monkeypatch.setattr(imdb, name, getattr(imdb, name) - 1)
    data.load(unread, cache)
    assert imdb.reads == 2
    assert len(list(cache.iterdir())) == 2


def test_a_changed_file_in_the_folder_is_read_anew(
    tmp_path: Path, reviews: dict[str, bytes]
) -> None:
    """The tokens of a folder depend on each of its files."""
    folder = write_tree(tmp_path / "aclImdb", reviews)
    cache = tmp_path / "cache"
    found = data.find("imdb", tmp_path)
    first = data.load(found, cache)
    (folder / "train/pos/1_9.txt").write_text("another text of another length")
    assert not same(first, data.load(found, cache))


@pytest.mark.parametrize("damage", ["empty", "cut off", "flipped", "objects", "token", "lengths"])
def test_a_damaged_cache_is_made_anew(tmp_path: Path, unread: Found, damage: str) -> None:
    """What cannot be what was kept is ignored, and written again."""
    cache = tmp_path / "cache"
    first = data.load(unread, cache)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    with np.load(kept) as stored:
        arrays = dict(stored)
    if damage == "empty":
        kept.write_bytes(b"")
    elif damage == "cut off":
        kept.write_bytes(whole[:-10])
    elif damage == "flipped":
        kept.write_bytes(changed(whole, whole.index(arrays["tokens"].tobytes())))
    elif damage == "objects":
        np.savez(kept, **{**arrays, "tokens": arrays["tokens"].astype(object)})
    elif damage == "token":
        np.savez(kept, **{**arrays, "tokens": arrays["tokens"] + np.uint16(imdb.VOCABULARY)})
    else:
        np.savez(kept, **{**arrays, "lengths": arrays["lengths"] + np.int32(1)})
    assert same(first, data.load(unread, cache))
    assert imdb.reads == 2
    assert kept.read_bytes()[-200:] == whole[-200:]


@pytest.mark.parametrize("obstacle", ["file", "read-only", "full"])
def test_a_cache_that_cannot_be_written_is_no_error(
    tmp_path: Path, unread: Found, monkeypatch: pytest.MonkeyPatch, obstacle: str
) -> None:
    """The data is read all the same, and nothing half written is left."""
    cache = tmp_path / "cache"
    if obstacle == "file":
        cache.touch()
    else:
        failing = "open" if obstacle == "read-only" else "replace"

        def refuse(*_: Any) -> None:
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(Path, failing, refuse)
    assert len(data.load(unread, cache).train.y) == 6
    assert cache.is_file() if obstacle == "file" else not list(cache.iterdir())


# -------------------------------------------------------------------------------- generated data

#: The same wherever they are generated: results from different environments can be compared.
DIGESTS = {
    "mnist": "393318a29a1d7358",
    "cifar10": "27e817b3d7c935d0",
    "imdb": "36d465d9ea03a579",
}


@pytest.fixture(scope="module")
def generated() -> dict[str, DataSet]:
    """All that is generated."""
    return {
        name: data.load(Found(name, "synthetic", "generated", (), synthetic.TRAIN_EXAMPLES[name]))
        for name in data.NAMES
    }


@pytest.mark.parametrize(
    ("name", "shape", "sizes", "classes"),
    [
        ("mnist", (28, 28, 1), (12_000, 3_000, 2_500), 10),
        ("cifar10", (32, 32, 3), (10_000, 2_000, 2_000), 10),
        ("imdb", (500,), (5_000, 2_500, 2_500), 2),
    ],
)
def test_generated_data_is_shaped_like_the_real_one(
    generated: dict[str, DataSet],
    name: str,
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
    classes: int,
) -> None:
    """Shapes, types, sizes as announced, and about as many examples of each class."""
    found = generated[name]
    assert (found.source, found.origin) == ("synthetic", "generated")
    for split, size in zip((found.train, found.validation, found.test), sizes, strict=True):
        assert split.x.shape == (size, *shape)
        assert split.x.dtype == (np.int32 if name == "imdb" else np.uint8)
        assert split.y.dtype == np.int32
        share = np.bincount(split.y, minlength=classes) / size * classes
        assert np.abs(share - 1).max() < 0.2
    assert len(found.train.y) == synthetic.TRAIN_EXAMPLES[name]
    assert found.validation_is_test == (name != "mnist") == (found.validation is found.test)


@pytest.mark.parametrize("name", data.NAMES)
def test_generated_data_is_the_same_everywhere(generated: dict[str, DataSet], name: str) -> None:
    """The digest is the one of every other machine, Python and NumPy."""
    assert generated[name].digest == DIGESTS[name]


def test_generated_texts_are_like_the_real_ones(generated: dict[str, DataSet]) -> None:
    """Padded in front alone, one start before a text that is not cut, all tokens in range."""
    x = generated["imdb"].train.x
    assert x.min() == imdb.PADDING
    assert imdb.FIRST_WORD < x.max() < imdb.VOCABULARY
    assert (x[:, -1] >= imdb.FIRST_WORD).all()
    padding = (x == imdb.PADDING).sum(axis=1)
    begin = np.where(padding > 0, padding, -1)
    starts = x == imdb.START
    assert (starts.sum(axis=1) <= 1).all()
    assert all(starts[row, at] for row, at in enumerate(begin) if at >= 0)
    assert not (np.diff((x == imdb.PADDING).astype(int), axis=1) > 0).any()
    assert (padding == 0).any()


def accuracy(train: tuple[Any, Any], test: tuple[Any, Any], rate: float) -> float:
    """Of a linear softmax classifier, trained by gradient descent."""
    (x, y), (test_x, test_y) = train, test
    weights = np.zeros((x.shape[1] + 1, y.max() + 1), np.float32)
    x, test_x = (np.pad(rows, ((0, 0), (0, 1)), constant_values=1) for rows in (x, test_x))
    rng = np.random.default_rng(4)
    for _ in range(8):
        for batch in np.array_split(rng.permutation(len(x)), len(x) // 100):
            scores = np.exp(x[batch] @ weights)
            scores /= scores.sum(axis=1, keepdims=True)
            scores[np.arange(len(batch)), y[batch]] -= 1
            weights -= rate / len(batch) * x[batch].T @ scores
    return float(np.mean((test_x @ weights).argmax(axis=1) == test_y))


def features(name: str, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pixels from 0 to 1, or how often each word is there."""
    if name != "imdb":
        return x.reshape(len(x), -1).astype(np.float32) / 255
    counts = [np.bincount(row, minlength=imdb.VOCABULARY)[imdb.FIRST_WORD :] for row in x]
    return np.sqrt(np.array(counts, np.float32)) / 3


@pytest.mark.parametrize(
    ("name", "rate", "least", "most"),
    [("mnist", 0.1, 0.7, 0.97), ("cifar10", 0.01, 0.17, 0.5), ("imdb", 0.1, 0.65, 0.95)],
)
def test_generated_data_can_be_learned(
    generated: dict[str, DataSet], name: str, rate: float, least: float, most: float
) -> None:
    """A linear classifier learns a part of it from few examples, and by far not all."""
    found = generated[name]
    train, test = (
        (features(name, split.x[:size]), split.y[:size])
        for split, size in ((found.train, 3_000), (found.test, 1_000))
    )
    assert least < accuracy(train, test, rate) < most


def test_every_drawing_is_another() -> None:
    """No two examples are alike: what is learned is the digit."""
    x, _ = digits(200, np.random.default_rng(5))
    assert len({image.tobytes() for image in x}) == 200


# ------------------------------------------------------------------------------------- real data


@pytest.fixture(scope="module")
def real() -> Callable[[str], Found]:
    """Finds real data, or skips the test."""

    def find(name: str) -> Found:
        for folder in filter(None, _REAL.split(os.pathsep)):
            found = data.find(name, Path(folder))
            if found.source == "real":
                return found
        pytest.skip(f"no real {name} here: name its folder in {data.VARIABLE}")

    return find


def test_real_mnist(real: Callable[[str], Found]) -> None:
    """The four files as they are known, or Keras' file: one digest for both."""
    found = data.load(real("mnist"))
    assert [split.x.shape for split in (found.train, found.validation, found.test)] == [
        (48_000, 28, 28, 1),
        (12_000, 28, 28, 1),
        (10_000, 28, 28, 1),
    ]
    assert found.train.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(np.append(found.train.y, found.validation.y))[1] == 6_742
    assert found.digest == "6f845c42ba6f5318"


def test_real_mnist_as_keras_has_it(real: Callable[[str], Found], tmp_path: Path) -> None:
    """Keras' file is held to the same checksums."""
    found = real("mnist")
    if len(found.paths) == 1:
        pytest.skip("it is Keras' file already")
    arrays = {
        part.key: np.frombuffer(
            files.content(path, part.size_bytes), np.uint8, offset=len(part.header)
        ).reshape(part.shape)
        for path, part in zip(found.paths, mnist.PARTS, strict=True)
    }
    np.savez(tmp_path / "mnist.npz", **arrays)
    assert data.load(data.find("mnist", tmp_path)).digest == "6f845c42ba6f5318"


def test_real_cifar(real: Callable[[str], Found]) -> None:
    """Five batches and one, in colours."""
    found = data.load(real("cifar10"))
    assert (found.train.x.shape, found.test.x.shape) == ((50_000, 32, 32, 3), (10_000, 32, 32, 3))


def test_real_imdb(real: Callable[[str], Found], tmp_path: Path) -> None:
    """All reviews of both parts, negative and positive ones by turns; the same when kept."""
    found = real("imdb")
    first, second = data.load(found, tmp_path), data.load(found, tmp_path)
    assert same(first, second)
    for split in (first.train, first.test):
        assert split.x.shape == (25_000, 500)
        assert split.y[:6].tolist() == [0, 1] * 3
        assert split.y.sum() == 12_500
        assert (split.x[:, -1] != imdb.PADDING).all()
    assert first.train.x.max() == imdb.VOCABULARY - 1
    # Frequencies: the first word is "the", one of eighteen or so.
    words = np.bincount(first.train.x.ravel())[imdb.FIRST_WORD :]
    assert 0.05 < words[0] / words.sum() < 0.07
