"""A text without a meaning: tokens (n, 35) of int32, and the token that follows on each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.data.text import FIRST_WORD, LENGTH, VOCABULARY

#: How often a word is followed by one of its own followers, and how many of those it has.
_FOLLOWED = 0.6
_FOLLOWERS = 3


def sequences(
    examples: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Words by Zipf's law, many of which are followed by a word that often follows on them.

    Args:
        examples: how many sequences.
        rng: where the differences between them come from.

    Returns:
        Tokens and labels.
    """
    followers = _words((VOCABULARY, _FOLLOWERS), rng)
    tokens = _words((examples, LENGTH + 1), rng)
    followed = rng.random(tokens.shape, dtype=np.float32) < _FOLLOWED
    choice = rng.integers(0, _FOLLOWERS, tokens.shape)
    for place in range(1, LENGTH + 1):
        following = followers[tokens[:, place - 1], choice[:, place]]
        tokens[:, place] = np.where(followed[:, place], following, tokens[:, place])
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def _words(shape: tuple[int, int], rng: np.random.Generator) -> NDArray[np.int32]:
    """A word's frequency is the reciprocal of its rank, roughly, which is its token."""
    sums = np.cumsum(1 / (np.arange(VOCABULARY - FIRST_WORD, dtype=np.float64) + 3))
    ranks = np.searchsorted(sums / sums[-1], rng.random(shape, dtype=np.float32))
    return (ranks + FIRST_WORD).astype(np.int32)
