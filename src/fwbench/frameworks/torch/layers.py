"""The layers of a network as modules of PyTorch's."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from fwbench.frameworks.learner import Job, averages_kept
from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph, Recomputed
from fwbench.workloads.models.layer import Layer, Shape
from fwbench.workloads.models.sampling import LOWEST, SampledWords

#: What normalizes a batch: of vectors, and of images.
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


class Network(nn.Module):  # type: ignore[misc]
    """A network of modules."""

    def __init__(self, graph: Graph, job: Job) -> None:
        super().__init__()
        self._graph = graph
        self.layers = nn.ModuleList(
            _MODULES[type(node.layer)](node.layer, node.shapes[0], job) for node in graph.nodes
        )
        self._functions = [*self.layers]  # a ModuleList looks a module up by its name, each time
        norms = [module for module in self.layers if isinstance(module, BATCH_NORMS)]
        self._recomputed = _recomputed(norms) if job.recompute else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logits of a batch."""
        recomputed = self._recomputed if self.training else None
        return cast("torch.Tensor", self._graph.evaluate(self._functions, x, recomputed))


def _recomputed(norms: Sequence[nn.Module]) -> Recomputed:
    """By ``torch.utils.checkpoint``."""

    def contexts() -> tuple[AbstractContextManager[None], ...]:
        """Contexts of the forward pass, and of the one in the backward pass."""
        return nullcontext(), averages_kept(norms, momentum=0.0)

    return lambda run: partial(checkpoint, run, use_reentrant=False, context_fn=contexts)


class _Conv(nn.Conv2d):  # type: ignore[misc]
    """A convolution, then ReLU where asked for."""

    def __init__(self, layer: layers.Conv, channels: int) -> None:
        (above, _below), (left, _right) = layer.zeros
        super().__init__(
            channels,
            layer.filters,
            layer.kernel_size,
            layer.stride,
            "same" if layer.same else (above, left),
            bias=layer.bias,
        )
        self._relu = layer.relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) to (batch, filters, height, width)."""
        result = super().forward(x)
        return result.relu() if self._relu else result


class _Dense(nn.Linear):  # type: ignore[misc]
    """A fully connected layer, then ReLU where asked for."""

    def __init__(self, layer: layers.Dense, inputs: int) -> None:
        super().__init__(inputs, layer.units)
        self._relu = layer.relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, ..., inputs) to (batch, ..., units)."""
        result = super().forward(x)
        return result.relu() if self._relu else result


class _GlobalAveragePool(nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, channels, height, width) to (batch, channels)."""
        return x.mean((2, 3))


class _Add(nn.Module):  # type: ignore[misc]
    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        """Tensors of one shape to one of that shape."""
        return sum(others, x)


class _Concat(nn.Module):  # type: ignore[misc]
    """Images or vectors whose channels are one after the other."""

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """(batch, channels, ...) each to (batch, all channels, ...)."""
        return torch.cat(inputs, 1)


class _Recurrent(nn.Module):  # type: ignore[misc]
    """A recurrent layer of which the last output is the result, or each."""

    def __init__(self, layer: layers.Recurrent, inputs: int) -> None:
        super().__init__()
        self.cells = getattr(nn, type(layer).__name__)(inputs, layer.units, batch_first=True)
        self._sequences = layer.sequences
        if isinstance(layer, layers.LSTM):
            # PyTorch has two biases, whose sum counts: training both would double the step.
            self.cells.bias_hh_l0.requires_grad_(requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, inputs) to (batch, units), or (batch, length, units)."""
        outputs, _ = self.cells(x)
        return cast("torch.Tensor", outputs if self._sequences else outputs[:, -1])


class _Positions(nn.Module):  # type: ignore[misc]
    """A learned vector for each place of a sequence."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, units), and of the same shape."""
        return x + self.table


class _Attention(nn.Module):  # type: ignore[misc]
    """Scaled dot products of several heads."""

    def __init__(self, heads: int, *, causal: bool) -> None:
        super().__init__()
        self._heads = heads
        self._causal = causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, 3 units) to (batch, length, units)."""
        operands = x.unflatten(-1, (3, self._heads, -1)).permute(2, 0, 3, 1, 4)
        result = nn.functional.scaled_dot_product_attention(*operands, is_causal=self._causal)
        return result.transpose(1, 2).flatten(2)


class _SampledWords(nn.Module):  # type: ignore[misc]
    """Logits of the next word and of words that were drawn."""

    def __init__(self, layer: SampledWords, units: int) -> None:
        super().__init__()
        self.kernel = nn.Parameter(torch.zeros(layer.vocabulary, units))
        self.bias = nn.Parameter(torch.zeros(layer.vocabulary))
        words, log_expected = map(torch.from_numpy, layer.drawn)
        self.register_buffer("_words", words.long(), persistent=False)
        self.register_buffer("_log_expected", log_expected, persistent=False)

    def forward(self, x: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """(batch * length, units) and (batch, length) to (batch * length, 1 + samples)."""
        rows, offsets = nn.functional.embedding, self.bias - self._log_expected
        right, words = tokens.roll(-1, 1).flatten().long(), self._words
        of_right = (x * rows(right, self.kernel)).sum(1) + offsets[right]
        of_words = nn.functional.linear(x, rows(words, self.kernel), offsets[words])
        hits = right[:, None] == words
        return torch.cat([of_right[:, None], of_words.masked_fill(hits, LOWEST)], 1)


def _batch_norm(layer: layers.BatchNorm, before: Shape, _: Job) -> nn.Module:
    of_vectors, of_images = BATCH_NORMS
    # PyTorch's momentum is the share of the new value.
    return (of_vectors if len(before) == 1 else of_images)(
        before[-1], layer.epsilon, 1.0 - layer.momentum
    )


_MODULES: dict[type[Layer], Callable[[Any, Shape, Job], nn.Module]] = {
    layers.Conv: lambda layer, before, _: _Conv(layer, before[-1]),
    layers.AveragePool: lambda layer, _, __: nn.AvgPool2d(layer.size, layer.step, layer.padding),
    layers.MaxPool: lambda layer, _, __: nn.MaxPool2d(layer.size, layer.step, layer.padding),
    layers.GlobalAveragePool: lambda _, __, ___: _GlobalAveragePool(),
    layers.Flatten: lambda _, __, ___: nn.Flatten(),
    layers.Dense: lambda layer, before, _: _Dense(layer, before[-1]),
    layers.Relu: lambda _, __, ___: nn.ReLU(),
    layers.Dropout: lambda layer, _, __: nn.Dropout(layer.rate),
    layers.BatchNorm: _batch_norm,
    layers.Add: lambda _, __, ___: _Add(),
    layers.Concat: lambda _, __, ___: _Concat(),
    layers.Embedding: lambda layer, _, job: nn.Embedding(
        layer.vocabulary, layer.units, sparse=job.sparse
    ),
    layers.LSTM: lambda layer, before, _: _Recurrent(layer, before[-1]),
    layers.GRU: lambda layer, before, _: _Recurrent(layer, before[-1]),
    layers.Positions: lambda _, before, __: _Positions(before),
    layers.LayerNorm: lambda layer, before, _: nn.LayerNorm(before[-1], layer.epsilon),
    layers.Gelu: lambda _, __, ___: nn.GELU(approximate="tanh"),
    layers.Attention: lambda layer, _, __: _Attention(layer.heads, causal=layer.causal),
    layers.Tokens: lambda _, __, ___: nn.Flatten(0, 1),
    SampledWords: lambda layer, before, _: _SampledWords(layer, before[-1]),
}
