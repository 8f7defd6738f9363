"""Training steps as one writes them by hand, a file a framework, with nothing of fwbench.

Each file has a function ``step``, which builds a network with given weights and returns a call that
trains it on one batch and waits for the loss. It is imported where the framework is measured, and
nowhere else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from numpy.typing import NDArray

#: Of the stages of ResNet-50: how many blocks, and the filters of their 3 x 3 convolutions.
STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))

CLASSES = 1000

#: Units of an attention head.
HEAD = 64


@dataclass(frozen=True)
class Task:
    """A training to time.

    Attributes:
        network: ``resnet50`` or ``gpt_small``.
        size: what the network depends on, by name, as in fwbench's sizes.
        weights: the initial ones, layer by layer, with channels last.
        channels_first: the same with channels, and the outputs of layers, first.
        examples: of the batch: images with channels last, or tokens.
        labels: of the examples, one after the other.
        learning_rate: of gradient descent.
        momentum: share of the velocity that stays.
        execution: fwbench's name for how the framework runs it.
    """

    network: str
    size: Mapping[str, int]
    weights: Sequence[NDArray[Any]]
    channels_first: Sequence[NDArray[Any]]
    examples: NDArray[Any]
    labels: NDArray[Any]
    learning_rate: float
    momentum: float
    execution: str


def step(framework: str, task: Task) -> Callable[[], float]:
    """A training step that returns the loss before its update.

    Args:
        framework: its name.
        task: what to train.
    """
    written = importlib.import_module(f"{__name__}.{framework}")
    return cast("Callable[[], float]", written.step(task))
