"""Transformers: encoders as in BERT, decoders as in GPT-2; dropout is left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from fwbench.workloads.models.graph import Network
from fwbench.workloads.models.layer import Value
from fwbench.workloads.models.layers import (
    Add,
    Attention,
    Dense,
    Embedding,
    Gelu,
    LayerNorm,
    Positions,
    Tokens,
)

#: Units of an attention head, in all published sizes of both.
_HEAD = 64

#: A block's inner layer has so many times the units of its result.
_EXPANSION = 4

_linear = partial(Dense, relu=False)


def gpt_small(size: Mapping[str, int]) -> Network:
    """GPT-2 (Radford et al. 2019): decoders with the normalization first.

    With 12 layers of 768 units, a vocabulary of 50,257 and 1,024 tokens these are 124,439,808
    parameters and those of the last layer, which does not share the table of the first.

    Args:
        size: ``layers``, ``units``, ``vocabulary``.
    """
    return partial(_gpt, size)


def transformer_encoder(size: Mapping[str, int]) -> Network:
    """BERT (Devlin et al. 2019): encoders with the normalization last, and a word for each place.

    Each of the 12 encoders of 768 units has 7,087,872 parameters. Token types and the layer before
    the last one are left out.

    Args:
        size: ``layers``, ``units``, ``vocabulary``.
    """
    return partial(_encoder, size)


def _gpt(size: Mapping[str, int], x: Value) -> Value:
    x = Positions()(Embedding(size["vocabulary"], size["units"])(x))
    for _ in range(size["layers"]):
        x = Add()(x, _attention(LayerNorm()(x), size["units"], causal=True))
        x = Add()(x, _inner(LayerNorm()(x), size["units"]))
    return _linear(size["vocabulary"])(Tokens()(LayerNorm()(x)))


def _encoder(size: Mapping[str, int], x: Value) -> Value:
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
