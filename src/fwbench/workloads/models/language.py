"""Recurrent language models, which tell the next word: as Zaremba et al. have them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fwbench.workloads.models.graph import Network
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import LSTM, Dense, Embedding, Tokens
from fwbench.workloads.models.sampling import SampledWords

#: So many words are drawn, as by the TensorFlow paper; fewer of a small vocabulary.
_SAMPLES = 512
_OF_VOCABULARY = 8


def word_lm(size: Mapping[str, int]) -> Network:
    """A table of words, LSTMs, and a word for each place: a softmax over the whole vocabulary.

    With two LSTMs of 650 units and a vocabulary of 10,000 it is the medium one of Zaremba et al.
    2014 ("Recurrent neural network regularization"), without its dropout. With an LSTM of 512 units
    and a vocabulary of 40,000 it is the language model of the TensorFlow paper (Abadi et al. 2016,
    section 6.4), LSTM-512-512 of Jozefowicz et al. 2016. The outputs and cells of each text begin
    as zero.

    Args:
        size: ``layers``, ``units``, ``vocabulary``.
    """
    return partial(_word_lm, size)


def word_lm_sampled(size: Mapping[str, int]) -> Network:
    """The same with a sampled softmax, which the TensorFlow paper compares with the full one.

    Its logits are those of the next word, which comes first, and of 512 words that were drawn, or
    of an eighth of a smaller vocabulary.

    Args:
        size: ``layers``, ``units``, ``vocabulary``.
    """
    return partial(_word_lm_sampled, size)


def _word_lm(size: Mapping[str, int], x: Value) -> Value:
    return Dense(size["vocabulary"], relu=False)(_features(size, x))


def _word_lm_sampled(size: Mapping[str, int], x: Value) -> Value:
    vocabulary = size["vocabulary"]
    samples = min(_SAMPLES, vocabulary // _OF_VOCABULARY)
    return SampledWords(vocabulary, samples)(_features(size, x), x)


def _features(size: Mapping[str, int], x: Value) -> Value:
    x = Embedding(size["vocabulary"], size["units"])(x)
    for _ in range(size["layers"]):
        x = LSTM(size["units"], sequences=True)(x)
    return Tokens()(x)
