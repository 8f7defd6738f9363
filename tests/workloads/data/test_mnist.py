"""MNIST is checked and read in each of its formats, and never silently wrong."""

import gzip
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fwbench.errors import DataError
from fwbench.workloads import data
from fwbench.workloads.data import files, mnist
from support.data_files import Mnist, changed, same


def test_mnist_of_every_format_is_the_same(small_mnist: Mnist) -> None:
    """IDX files compressed or not, with either spelling of their names, and Keras' file."""
    data_sets = []
    for dot in "-.":
        for gz in (".gz", ""):
            where = small_mnist.write(dot, gz, folder=f"mnist{dot}{gz}")
            data_sets.append(data.load(data.find("mnist", where)))
    small_mnist.npz()
    data_sets.append(small_mnist.load())
    assert all(same(data_sets[0], other) for other in data_sets[1:])
    expected = small_mnist.arrays
    train = data_sets[0].train
    assert (len(train), len(data_sets[0].validation), len(data_sets[0].test)) == (8, 4, 5)
    assert (train.x.dtype, train.x.shape) == (np.uint8, (8, 28, 28, 1))
    assert np.array_equal(train.x[..., 0], expected["x_train"][:8])
    assert np.array_equal(data_sets[0].validation.y, expected["y_train"][8:])
    assert np.array_equal(data_sets[0].test.y, expected["y_test"])
    assert train.y.dtype == np.int32
    assert not data_sets[0].validation_is_test


@pytest.mark.parametrize(
    ("key", "damage", "message"),
    [
        ("x_train", lambda data: data[:-1], "should have .* bytes.*has .*cut off"),
        ("x_train", lambda data: data + b"\0", "and has more"),
        ("x_train", lambda data: data[:9], "has 9 bytes"),
        ("x_train", lambda data: b"", "has 0 bytes"),
        ("x_train", "train-labels", r"magic number 2049 \(labels\), expected 2051 \(images\)"),
        ("y_train", "train-images", r"magic number 2051 \(images\), expected 2049 \(labels\)"),
        ("x_train", "t10k-images", "claims the shape 5x28x28, expected 12x28x28.*test set's"),
        ("y_test", "train-labels", "claims the shape 12, expected 5"),
        ("x_train", lambda data: changed(data, 0), "magic number 16779267, expected 2051"),
        ("x_train", lambda data: changed(data, 11), "claims the shape 12x29x28"),
        ("x_train", lambda data: changed(data, 500), "MD5 .*Fashion-MNIST"),
        ("x_train", lambda data: data[:16] + data[16:][::-1], "MD5 .*Fashion-MNIST"),
        ("y_train", lambda data: data[:-1] + b"\x0a", "label 10, expected 0 to 9"),
        ("y_train", lambda data: data[:-1] + bytes([9 - data[-1]]), "MD5"),
    ],
)
def test_idx_files_that_are_not_mnist(
    small_mnist: Mnist, key: str, damage: Callable[[bytes], bytes] | str, message: str
) -> None:
    """Cut off, swapped for another file, damaged or another data set: refused with all of that."""
    part = next(part for part in mnist.PARTS if part.key == key)
    content = small_mnist.payloads
    damaged = content[damage] if isinstance(damage, str) else damage(content[part.name])
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
    """Problems that gzip finds are data errors that name the file."""
    path = small_mnist.write() / "train-images-idx3-ubyte.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=f"cannot read .*{path.name}: .*{message}.*get it again"):
        small_mnist.load()


def test_a_small_file_that_becomes_a_large_one(small_mnist: Mnist) -> None:
    """No more is read than the expected size, far less than the file decompresses to."""
    small_mnist.write(x_train=small_mnist.payloads["train-images"] + bytes(50_000_000))
    path = small_mnist.folder / "train-images-idx3-ubyte.gz"
    assert len(files.content(path, 100)) == 101
    with pytest.raises(DataError, match="has more"):
        small_mnist.load()


def test_a_folder_in_place_of_a_file(small_mnist: Mnist) -> None:
    path = small_mnist.write() / "train-images-idx3-ubyte.gz"
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=rf"cannot read .*{path.name}: .*may be read"):
        small_mnist.load()


def test_a_file_that_is_gone_when_it_is_read(small_mnist: Mnist) -> None:
    small_mnist.write()
    data_set = data.find("mnist", small_mnist.folder)
    data_set.paths[3].unlink()
    with pytest.raises(DataError, match=data_set.paths[3].name):
        data.load(data_set)


class _Trap:
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
        ({"x_train": np.zeros((12, 28, 28), np.int64)}, "is too large|claims to have|is int64"),
        ({"y_train": np.zeros(12, np.int8)}, "is int8 of shape"),
        ({"x_train": np.zeros((5, 28, 28), np.uint8)}, r"shape \(5, 28, 28\), expected"),
        ({"x_train": np.zeros((12, 28, 28), np.uint8)}, "MD5 .*Fashion-MNIST"),
        ({"y_train": np.full(12, 10, np.uint8)}, "label 10"),
        ({"x_train": np.zeros((1000, 28, 28), np.uint8)}, "claims to have 784,128 bytes"),
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
