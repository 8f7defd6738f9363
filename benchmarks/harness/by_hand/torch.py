"""In PyTorch: modules, and the five lines of a step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn
from torch.nn import functional

from by_hand import CLASSES, HEAD, STAGES, Task


def _normalized(inputs: int, filters: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    convolution = nn.Conv2d(inputs, filters, kernel, stride, kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(filters)]


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, inputs: int, filters: int, stride: int) -> None:
        super().__init__()
        wide = 4 * filters
        widens = _normalized(inputs, wide, 1, stride) if inputs != wide else []
        self.shortcut = nn.Sequential(*widens)
        self.body = nn.Sequential(
            *(*_normalized(inputs, filters, 1), nn.ReLU()),
            *(*_normalized(filters, filters, 3, stride), nn.ReLU()),
            *_normalized(filters, wide, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.shortcut(x))


def _resnet50(size: Mapping[str, int]) -> nn.Module:
    inputs = 64 // size["divisor"]
    layers = [*_normalized(3, inputs, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    for stage, (blocks, filters) in enumerate(STAGES):
        narrow = filters // size["divisor"]
        for block in range(blocks):
            layers.append(_Residual(inputs, narrow, 2 if stage and not block else 1))
            inputs = 4 * narrow
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


class _Decoder(nn.Module):  # type: ignore[misc]
    def __init__(self, units: int) -> None:
        super().__init__()
        self.heads = max(1, units // HEAD)
        self.before_attention = nn.LayerNorm(units)
        self.operands = nn.Linear(units, 3 * units)
        self.joined = nn.Linear(units, units)
        self.before_inner = nn.LayerNorm(units)
        self.wide = nn.Linear(units, 4 * units)
        self.narrow = nn.Linear(4 * units, units)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, units = x.shape
        operands = self.operands(self.before_attention(x))
        q, k, v = operands.view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(attended.transpose(1, 2).reshape(batch, length, units))
        inner = functional.gelu(self.wide(self.before_inner(x)), approximate="tanh")
        return x + self.narrow(inner)


class _Gpt(nn.Module):  # type: ignore[misc]
    def __init__(self, size: Mapping[str, int]) -> None:
        super().__init__()
        units = size["units"]
        self.words = nn.Embedding(size["vocabulary"], units)
        self.places = nn.Embedding(size["length"], units)
        self.decoders = nn.Sequential(*(_Decoder(units) for _ in range(size["layers"])))
        self.normalized = nn.LayerNorm(units)
        self.answers = nn.Linear(units, size["vocabulary"])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.decoders(self.words(tokens) + self.places.weight)
        return self.answers(self.normalized(x)).flatten(0, 1)


_NETWORKS = {"resnet50": _resnet50, "gpt_small": _Gpt}


def step(task: Task) -> Callable[[], float]:
    """A step of the network, eagerly.

    Args:
        task: what to train.
    """
    model = _NETWORKS[task.network](task.size)
    with torch.no_grad():
        for parameter, array in zip(model.parameters(), task.channels_first, strict=True):
            parameter.copy_(torch.tensor(array))
    examples = torch.tensor(task.examples)
    if task.network == "resnet50":
        examples = examples.permute(0, 3, 1, 2).contiguous()
    labels = torch.tensor(task.labels).long()
    optimizer = torch.optim.SGD(model.parameters(), task.learning_rate, momentum=task.momentum)
    loss_of = nn.CrossEntropyLoss()

    def train() -> float:
        optimizer.zero_grad()
        loss = loss_of(model(examples), labels)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return train
