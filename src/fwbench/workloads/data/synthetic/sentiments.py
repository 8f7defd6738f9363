"""Texts with a sentiment in place of IMDB: tokens (n, 500) of int32, and 0 or 1 as labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.data.imdb import FIRST_WORD, LENGTH, PADDING, START, VOCABULARY
from fwbench.workloads.data.synthetic.portable import labels, uniform

#: Words of each sentiment: neither the most frequent ones nor the rarest.
_SENTIMENTS = 2
_SENTIMENT_WORDS = 40
_FREQUENT, _RARE = 100, 2_000

#: The share of words that are planted, and of those the share that agrees with the label: different
#: from text to text.
_PLANTED = 0.1
_AGREEING = (0.5, 0.95)

#: Lengths, the shorter ones more often. Longer ones are cut.
_LENGTHS = (40, 690)


def sentiments(
    examples: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Words by Zipf's law, with words of both sentiments among them, most of them the label's.

    Args:
        examples: how many.
        rng: where the differences between them come from.

    Returns:
        Tokens, padded in front, and labels.
    """
    y = labels(examples, _SENTIMENTS, rng)
    x = _words(examples, rng)
    planted = rng.random(x.shape, dtype=np.float32) < _PLANTED
    agreeing = rng.random(x.shape, dtype=np.float32) < uniform(rng, *_AGREEING, examples, 1)
    sentiment = np.where(agreeing, y[:, None], 1 - y[:, None])
    choice = (uniform(rng, 0.0, _SENTIMENT_WORDS, *x.shape)).astype(np.int32)
    words = rng.permutation(np.arange(FIRST_WORD + _FREQUENT, FIRST_WORD + _RARE, dtype=np.int32))
    words = words[: _SENTIMENTS * _SENTIMENT_WORDS].reshape(_SENTIMENTS, _SENTIMENT_WORDS)
    x = np.where(planted, words[sentiment, choice], x)
    return _padded(x, rng), y


def _words(examples: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """A word's frequency is the reciprocal of its rank, roughly, which is its token."""
    sums = np.cumsum(1 / (np.arange(VOCABULARY - FIRST_WORD, dtype=np.float64) + 3))
    ranks = np.searchsorted(sums / sums[-1], rng.random((examples, LENGTH), dtype=np.float32))
    return (ranks + FIRST_WORD).astype(np.int32)


def _padded(x: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.int32]:
    """Texts of any length: start and padding in front of those that are shorter."""
    shortest, longest = _LENGTHS
    share = rng.random((len(x), 1), dtype=np.float32)
    begin = LENGTH - (shortest + share * share * (longest - shortest)).astype(np.int64)
    place = np.arange(LENGTH)
    return np.where(place >= begin, x, np.where(place == begin - 1, START, PADDING)).astype(
        np.int32
    )
