"""Substitutes for the data sets, generated: drawn digits, textures, reviews, and a text.

They have the shapes of the real ones, are smaller, and can be learned, neither at once nor never.
They are the same wherever they are generated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.data.dataset import Split, Splits
from fwbench.workloads.data.synthetic.digits import digits
from fwbench.workloads.data.synthetic.sentiments import sentiments
from fwbench.workloads.data.synthetic.sequences import sequences
from fwbench.workloads.data.synthetic.textures import textures

_Draw = Callable[[int, np.random.Generator], tuple[NDArray[Any], NDArray[np.int32]]]

#: For each data set what draws its examples, from which seed.
_DRAW: dict[str, tuple[_Draw, int]] = {
    "mnist": (digits, 30),
    "cifar10": (textures, 31),
    "imdb": (sentiments, 32),
    "text": (sequences, 33),
}

#: Examples to train, to validate and to test with; none to validate where the real data has none.
_SIZES = {
    "mnist": (12_000, 3_000, 2_500),
    "cifar10": (10_000, 0, 2_000),
    "imdb": (5_000, 0, 2_500),
    "text": (8_000, 500, 500),
}

TRAIN_EXAMPLES = {name: train for name, (train, _, _) in _SIZES.items()}


def generate(name: str) -> Splits:
    """The substitute for a data set, within a few seconds.

    Args:
        name: ``mnist``, ``cifar10``, ``imdb`` or ``text``.
    """
    draw, seed = _DRAW[name]
    sizes = _SIZES[name]
    x, y = draw(sum(sizes), np.random.default_rng(seed))
    at = np.cumsum(sizes[:-1])
    train, validation, test = map(Split, np.split(x, at), np.split(y, at))
    return train, validation if sizes[1] else None, test
