"""Data sets are found wherever they may lie, or generated."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fwbench.errors import DataError, UsageError
from fwbench.workloads import data
from fwbench.workloads.data import Found, files, imdb, mnist, synthetic
from support import programs
from support.data_files import Mnist, same, tar_gz, write_tree
from support.tables import tabled


def test_data_that_is_nowhere_is_generated() -> None:
    """Without any data, find says synthetic and how many examples there will be."""
    for name in data.NAMES:
        data_set = data.find(name, None)
        assert (data_set.source, data_set.origin, data_set.paths) == ("synthetic", "generated", ())
        assert data_set.train_examples == synthetic.TRAIN_EXAMPLES[name]


def test_an_unknown_data_set_is_refused() -> None:
    """A name that is not known is met with those that are."""
    with pytest.raises(
        UsageError, match=r"unknown data set 'mnits'.*mnist, cifar10, imdb, text.*mean"
    ):
        data.find("mnits", None)


@pytest.mark.parametrize("kind", ["missing", "file"])
@pytest.mark.parametrize("where", ["option", "variable"])
def test_a_folder_that_is_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, kind: str
) -> None:
    """The message has the option or variable that named a missing folder, or a file."""
    named = tmp_path / "named"
    if kind == "file":
        named.touch()
    else:
        monkeypatch.setenv(data.VARIABLE, os.pathsep.join([str(tmp_path), str(named)]))
    option = named if where == "option" else None
    monkeypatch.setenv(data.VARIABLE, os.pathsep.join([str(tmp_path), str(named)]))
    who = "--fw-data" if where == "option" else f"variable {data.VARIABLE}"
    what = "is not a directory" if kind == "file" else "does not exist"
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

    def folder_of_data(folder: Path | None) -> Path:
        return data.find("mnist", folder).paths[0].parent

    assert folder_of_data(option) == option
    assert folder_of_data(None) == first
    shutil.rmtree(first)
    first.mkdir()
    assert folder_of_data(None) == second
    monkeypatch.delenv(data.VARIABLE)
    assert folder_of_data(None) == keras


@pytest.mark.parametrize("leads_to", ["nowhere", "mnist.npz", "/dev/zero"])
def test_a_file_that_cannot_be_read_is_not_replaced(tmp_path: Path, leads_to: str) -> None:
    """A broken link, one in a circle or a device does not mean that there is no data."""
    (tmp_path / "mnist.npz").symlink_to(leads_to)
    with pytest.raises(DataError, match=r"mnist\.npz is a broken link, a pipe or a device"):
        data.find("mnist", tmp_path)


@tabled
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


@tabled
def test_a_form_that_is_not_read_is_an_error_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, file: str, message: str
) -> None:
    """It is named, with what to get: nobody trains on generated data beside the real one."""
    path = tmp_path / "datasets" / file
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(DataError, match=f"{re.escape(str(path))} .*{message}"):
        data.find(name, tmp_path / "datasets")
    other = "imdb" if name == "mnist" else "mnist"
    assert data.find(other, tmp_path / "datasets").source == "synthetic"
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    assert data.find(name, None).source == "synthetic", "a cache is passed over"


def test_a_complete_set_beside_a_part_of_one(small_mnist: Mnist) -> None:
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
    with pytest.raises(DataError, match=r"cannot read .*Permission denied"):
        data.find("imdb", forbidden)
    monkeypatch.setenv("KERAS_HOME", str(forbidden))
    assert data.find("imdb", None).source == "synthetic"


def test_the_origin_has_no_folders_of_the_user(
    tmp_path: Path, small_mnist: Mnist, reviews: dict[str, bytes]
) -> None:
    small_mnist.write(gz="")
    assert data.find("mnist", tmp_path).origin.startswith("train-images-idx3-ubyte, train-labels")
    tar_gz(tmp_path / "cifar-10-binary.tar.gz", [])
    assert data.find("cifar10", tmp_path).origin == "cifar-10-binary.tar.gz"
    write_tree(tmp_path / "imdb" / "aclImdb", reviews)
    for folder in (tmp_path, tmp_path / "imdb", tmp_path / "imdb" / "aclImdb"):
        assert data.find("imdb", folder).origin == "aclImdb"


def test_importing_is_cheap() -> None:
    code = "import sys, fwbench.workloads.data; print(*sys.modules)"
    loaded = set(programs.output("-c", code).split())
    assert not loaded & {"tensorflow", "keras", "mxnet", "torch", "jax", "scipy", "pandas"}


def test_real_mnist(real: Callable[[str], Found]) -> None:
    """The four files as they are known, or Keras' file: one digest for both."""
    data_set = data.load(real("mnist"))
    assert [split.x.shape for split in (data_set.train, data_set.validation, data_set.test)] == [
        (48_000, 28, 28, 1),
        (12_000, 28, 28, 1),
        (10_000, 28, 28, 1),
    ]
    assert data_set.train.y[:5].tolist() == [5, 0, 4, 1, 9]
    assert np.bincount(np.append(data_set.train.y, data_set.validation.y))[1] == 6_742
    assert data_set.digest == "6f845c42ba6f5318"


def test_real_mnist_as_keras_has_it(real: Callable[[str], Found], tmp_path: Path) -> None:
    data_set = real("mnist")
    if len(data_set.paths) == 1:
        pytest.skip("it is Keras' file already")
    arrays = {
        part.key: np.frombuffer(
            files.content(path, part.size_bytes), np.uint8, offset=len(part.header)
        ).reshape(part.shape)
        for path, part in zip(data_set.paths, mnist.PARTS, strict=True)
    }
    np.savez(tmp_path / "mnist.npz", **arrays)
    assert data.load(data.find("mnist", tmp_path)).digest == "6f845c42ba6f5318"


def test_real_cifar(real: Callable[[str], Found]) -> None:
    data_set = data.load(real("cifar10"))
    assert (data_set.train.x.shape, data_set.test.x.shape) == (
        (50_000, 32, 32, 3),
        (10_000, 32, 32, 3),
    )


def test_real_imdb(real: Callable[[str], Found], tmp_path: Path) -> None:
    """All reviews of both parts, negative and positive ones by turns; the same when kept."""
    data_set = real("imdb")
    first, second = data.load(data_set, tmp_path), data.load(data_set, tmp_path)
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
