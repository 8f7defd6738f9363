"""Networks of texts: recurrent language models (Zaremba et al.) and Transformers.

Encoders are those of BERT, decoders those of GPT-2; dropout is left out of them. A size has
``layers``, ``units`` and ``vocabulary``.
"""

from collections.abc import Mapping
from functools import partial

from fwbench.workloads.models.graph import of_size
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import (
    LSTM,
    Add,
    Attention,
    Dense,
    Embedding,
    Gelu,
    LayerNorm,
    Positions,
    Tokens,
)
from fwbench.workloads.models.sampling import SampledWords

#: Number of words that are drawn, as by the TensorFlow paper; fewer of a small vocabulary.
_SAMPLES = 512
_OF_VOCABULARY = 8


@of_size
def word_lm(size: Mapping[str, int], x: Value) -> Value:
    """A table of words, LSTMs, and a word for each place: a softmax over the whole vocabulary.

    With two LSTMs of 650 units and a vocabulary of 10,000 it is the medium one of Zaremba et al.
    2014 ("Recurrent neural network regularization"), without its dropout. With an LSTM of 512 units
    and a vocabulary of 40,000 it is the language model of the TensorFlow paper (Abadi et al. 2016,
    section 6.4), LSTM-512-512 of Jozefowicz et al. 2016. The outputs and cells of each text begin
    as zero.
    """
    return Dense(size["vocabulary"], relu=False)(_features(size, x))


@of_size
def word_lm_sampled(size: Mapping[str, int], x: Value) -> Value:
    """The same with a sampled softmax, which the TensorFlow paper compares with the full one.

    Its logits are those of the next word, which comes first, and of 512 words that were drawn, or
    of an eighth of a smaller vocabulary.
    """
    vocabulary = size["vocabulary"]
    samples = min(_SAMPLES, vocabulary // _OF_VOCABULARY)
    return SampledWords(vocabulary, samples)(_features(size, x), x)


def _features(size: Mapping[str, int], x: Value) -> Value:
    x = Embedding(size["vocabulary"], size["units"])(x)
    for _ in range(size["layers"]):
        x = LSTM(size["units"], sequences=True)(x)
    return Tokens()(x)


#: Units of an attention head, in all published sizes of both.
_HEAD = 64

#: A block's inner layer has this many times the units of its result.
_EXPANSION = 4

_linear = partial(Dense, relu=False)


@of_size
def gpt_small(size: Mapping[str, int], x: Value) -> Value:
    """GPT-2 (Radford et al. 2019): decoders with the normalization first.

    With 12 layers of 768 units, a vocabulary of 50,257 and 1,024 tokens these are 124,439,808
    parameters and those of the last layer, which does not share the table of the first.
    """
    x = Positions()(Embedding(size["vocabulary"], size["units"])(x))
    for _ in range(size["layers"]):
        x = Add()(x, _attention(LayerNorm()(x), size["units"], causal=True))
        x = Add()(x, _inner(LayerNorm()(x), size["units"]))
    return _linear(size["vocabulary"])(Tokens()(LayerNorm()(x)))


@of_size
def transformer_encoder(size: Mapping[str, int], x: Value) -> Value:
    """BERT (Devlin et al. 2019): encoders with the normalization last, and a word for each place.

    Each of the 12 encoders of 768 units has 7,087,872 parameters. Token types and the layer before
    the last one are left out.
    """
    x = LayerNorm()(Positions()(Embedding(size["vocabulary"], size["units"])(x)))
    for _ in range(size["layers"]):
        x = LayerNorm()(Add()(x, _attention(x, size["units"], causal=False)))
        x = LayerNorm()(Add()(x, _inner(x, size["units"])))
    return _linear(size["vocabulary"])(Tokens()(x))


def _attention(x: Value, units: int, *, causal: bool) -> Value:
    heads = max(1, units // _HEAD)
    return _linear(units)(Attention(heads, causal)(_linear(3 * units)(x)))


def _inner(x: Value, units: int) -> Value:
    return _linear(units)(Gelu()(_linear(_EXPANSION * units)(x)))
