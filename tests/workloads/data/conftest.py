"""Fixtures of the tests of data sets."""

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import pytest

from fwbench.workloads import data
from fwbench.workloads.data import imdb, mnist
from support.data_files import REVIEWS, Mnist, idx


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


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Three reviews of each class, in an order of its own."""
    monkeypatch.setattr(imdb, "CLASS_EXAMPLES", 3)
    return dict(REVIEWS)
