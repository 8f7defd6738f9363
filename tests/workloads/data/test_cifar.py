"""CIFAR-10 is checked and read in each of its formats, and never silently wrong."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fwbench.errors import DataError
from fwbench.workloads import data
from fwbench.workloads.data import cifar
from support.data_files import changed, same, tar_gz, write_tree


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The six files of a small CIFAR-10: 20 images each, two of every class."""
    monkeypatch.setattr(cifar, "FILE_EXAMPLES", 20)
    rng = np.random.default_rng(2)
    contents = {}
    for name in (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"):
        labels = rng.permutation(20).astype(np.uint8)[:, None] % 10
        pixels = rng.integers(0, 256, (20, 3072), np.uint8)
        contents[name] = np.concatenate([labels, pixels], axis=1).tobytes()
    return contents


def cifar_archive(folder: Path, contents: dict[str, bytes]) -> Path:
    members = [(f"cifar-10-batches-bin/{name}", content) for name, content in contents.items()]
    more = [("cifar-10-batches-bin/readme.html", b"<html>"), ("../test_batch.bin", b"evil")]
    return tar_gz(folder / "cifar-10-binary.tar.gz", [*more, *reversed(members)])


def test_cifar_of_every_format_is_the_same(tmp_path: Path, batches: dict[str, bytes]) -> None:
    """The folder, its files alone and the archive in any order; test is the validation part."""
    folders = [tmp_path / name for name in "abc"]
    write_tree(folders[0] / "cifar-10-batches-bin", batches)
    write_tree(folders[1] / "cifar10", batches)
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
    """The missing file is named; nothing is generated for an empty folder, either."""
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
        (lambda data: data[:-1], "should have 61,460 bytes, 20 records of 3073, and has"),
        (lambda data: b"", "and has 0"),
        (lambda data: changed(data, 0, 10 - data[0]), "label 10, expected 0 to 9"),
        (lambda data: changed(data, 0, (data[0] == 9) * -2 + 1), "images of class"),
    ],
)
def test_damaged_cifar_files(
    tmp_path: Path, batches: dict[str, bytes], damage: Callable[[bytes], bytes], message: str
) -> None:
    """A wrong size, label or balance of classes is found, in the folder and in the archive."""
    batches["data_batch_3.bin"] = damage(batches["data_batch_3.bin"])
    folders = [tmp_path / "folder", tmp_path / "archive"]
    write_tree(folders[0], batches)
    cifar_archive(folders[1], batches)
    for folder in folders:
        with pytest.raises(DataError, match=message):
            data.load(data.find("cifar10", folder))


def test_too_large_cifar_files(tmp_path: Path, batches: dict[str, bytes]) -> None:
    batches["data_batch_3.bin"] += b"\0"
    write_tree(tmp_path, batches)
    with pytest.raises(DataError, match="and has more"):
        data.load(data.find("cifar10", tmp_path))
    cifar_archive(tmp_path / "archive", batches)
    with pytest.raises(DataError, match="claims to have 61,461 bytes, expected at most 61,460"):
        data.load(data.find("cifar10", tmp_path / "archive"))


def test_a_cifar_archive_without_a_batch(tmp_path: Path, batches: dict[str, bytes]) -> None:
    del batches["test_batch.bin"]
    cifar_archive(tmp_path, batches)
    with pytest.raises(DataError, match=r"has no file cifar-10-batches-bin/test_batch\.bin"):
        data.load(data.find("cifar10", tmp_path))
