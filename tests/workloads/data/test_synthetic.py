"""Generated data is like the real, the same everywhere, and can be learned."""

from typing import Any

import numpy as np
import pytest

from fwbench.workloads import data
from fwbench.workloads.data import DataSet, Found, imdb, synthetic
from fwbench.workloads.data.synthetic import digits
from support.tables import tabled

#: The same wherever they are generated: results from different environments can be compared.
DIGESTS = {
    "mnist": "393318a29a1d7358",
    "cifar10": "27e817b3d7c935d0",
    "imdb": "36d465d9ea03a579",
    "text": "eae68cfe3ea86010",
}


@pytest.fixture(scope="module")
def generated() -> dict[str, DataSet]:
    return {
        name: data.load(Found(name, "synthetic", "generated", (), synthetic.TRAIN_EXAMPLES[name]))
        for name in data.NAMES
    }


@tabled
def test_generated_data_is_shaped_like_the_real_one(
    generated: dict[str, DataSet],
    name: str,
    shape: tuple[int, ...],
    sizes: tuple[int, ...],
    classes: int,
) -> None:
    """Shapes, types, sizes as announced, and about as many examples of each class.

    Of the labels of a text, each is the token that follows.
    """
    result = generated[name]
    assert (result.source, result.origin) == ("synthetic", "generated")
    for split, size in zip((result.train, result.validation, result.test), sizes, strict=True):
        assert split.x.shape == (size, *shape)
        assert split.x.dtype == (np.int32 if name in ("imdb", "text") else np.uint8)
        assert split.y.dtype == np.int32
        if classes:
            share = np.bincount(split.y, minlength=classes) / size * classes
            assert np.abs(share - 1).max() < 0.2
        else:
            assert np.array_equal(split.y[:, :-1], split.x[:, 1:])
    assert len(result.train.y) == synthetic.TRAIN_EXAMPLES[name]
    has_validation = name in ("mnist", "text")
    assert result.validation_is_test != has_validation == (result.validation is not result.test)


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
    """The accuracy of a linear softmax classifier, trained by gradient descent."""
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
    result = generated[name]
    train, test = (
        (features(name, split.x[:size]), split.y[:size])
        for split, size in ((result.train, 3_000), (result.test, 1_000))
    )
    assert least < accuracy(train, test, rate) < most


def test_every_drawing_is_another() -> None:
    """No two examples are alike: what is learned is the digit."""
    x, _ = digits(200, np.random.default_rng(5))
    assert len({image.tobytes() for image in x}) == 200
