"""Objective of a learner: a network, examples and labels, an optimiser. It names no framework."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.models import layers
from fwbench.workloads.models.graph import Graph, Network, trace
from fwbench.workloads.models.layer import Arrays, Shape

_WEIGHTS_SEED = 20
_CHECK_SEED = 22
_TIMED_SEED = 25
#: Draws differ between frameworks all the same; it makes the runs of each repeatable.
DROPOUT_SEED = 23

#: Steps of the stored trajectories; the first :data:`CHECKED_STEPS` are compared before timing.
TRAJECTORY_STEPS = 20
CHECKED_STEPS = 10

#: The most different examples in a batch of the check; larger batches repeat them.
CHECK_ROWS = 8

#: The fewest values of a channel that losses of fewer than eight examples are checked with. Errors
#: of results came back in them 300 times as large at most with 16 values or more, 600 times with
#: eight examples, but 2e7 times with 9, 1e8 with 4, and without bounds with 2 (three networks).
_FEWEST_IN_FLOAT64, _FEWEST_VALUES = 4, 16

#: The most different labels of tokens in the check. With more, hardly any label would occur in two
#: batches, and what a step learns would not show in the loss of the next one.
_CHECK_WORDS = 50

Batch = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba 2015), with epsilon added to sqrt(v) ("epsilon hat" in the paper).

    Attributes:
        learning_rate: alpha.
        beta_1: decay of the first moment.
        beta_2: decay of the second moment.
        epsilon: added to the square root of the second moment before its bias is corrected.
    """

    learning_rate: float = 1e-3
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 1e-7


@dataclass(frozen=True)
class RMSprop:
    """RMSprop (Tieleman and Hinton 2012), with epsilon inside the square root.

    Attributes:
        rho: decay of the mean square.
        epsilon: added to the mean square before its root is taken.
    """

    learning_rate: float = 1e-4
    rho: float = 0.9
    epsilon: float = 1e-7


@dataclass(frozen=True)
class SGD:
    """Gradient descent with momentum: ``v = momentum * v + gradient``, ``w -= learning_rate * v``.

    Attributes:
        momentum: share of the velocity that stays.
    """

    learning_rate: float = 1e-2
    momentum: float = 0.9


Optimizer = Adam | RMSprop | SGD


@dataclass(frozen=True, eq=False)
class Objective:
    """A network with what it is trained by.

    Args:
        name: letters, digits and underscores; of a training loop the first part of its case ids.
        network: from an example to logits; the loss is the mean softmax cross-entropy of a batch.
        shape: of one example: (height, width, channels), or (length,) for tokens.
        loss_growth: what the loss at each of the checked steps may be off by, relative to the loss,
            in parts of what is allowed of a dtype; None where every step may be off by that, and
            :data:`CHECKED_STEPS` are checked.
        weights: the parameters of each node of the graph that it begins with; None where they are
            drawn.
    """

    name: str
    network: Network
    shape: Shape
    classes: int
    optimizer: Optimizer
    loss_growth: tuple[float, ...] | None = None
    weights: Sequence[Arrays] | None = field(default=None, kw_only=True)

    def loss_scales(self, expected: Sequence[float]) -> NDArray[np.float64]:
        """Tolerance of each of the first losses, as a factor of the dtype's."""
        losses = np.asarray(expected, dtype=np.float64)
        if self.loss_growth is None:
            return np.ones_like(losses)
        return losses * self.loss_growth[: losses.size]

    @property
    def checked_steps(self) -> int:
        """Number of losses that are compared before anything is timed."""
        return CHECKED_STEPS if self.loss_growth is None else len(self.loss_growth)

    @cached_property
    def graph(self) -> Graph:
        """Graph of the network."""
        return trace(self.network, self.shape)

    @property
    def vocabulary(self) -> int | None:
        """Number of tokens; None for images."""
        first = self.graph.nodes[0].layer
        return first.vocabulary if isinstance(first, layers.Embedding) else None

    @property
    def unit(self) -> str:
        """Unit of an example, for rates: images, or tokens."""
        return "images" if self.vocabulary is None else "tokens"

    @property
    def units_per_example(self) -> int:
        """An image, or the tokens of a text."""
        return 1 if self.vocabulary is None else self.shape[0]

    @property
    def labels_shape(self) -> Shape:
        """Shape of an example's labels: () of one, (length,) of one for each token."""
        by_token = any(isinstance(node.layer, layers.Tokens) for node in self.graph.nodes)
        return self.shape if by_token else ()

    @property
    def labels_per_example(self) -> int:
        """One, or one for each token where the network answers for each."""
        return math.prod(self.labels_shape)

    def initial(self) -> list[Arrays]:
        """The initial parameters of each node of the graph: the same numbers in every process."""
        if self.weights is not None:
            return [[*arrays] for arrays in self.weights]
        return self.graph.initial(_WEIGHTS_SEED)

    @property
    def parameters(self) -> int:
        """Number of trained parameters."""
        return self.graph.parameters

    def check_batches(self, batch: int, steps: int) -> list[Batch]:
        """Batches for the check, with the losses of :func:`check_rows` different examples.

        A batch repeats its examples, so mean loss and gradient do not depend on its size: one
        stored trajectory serves every batch size that has as many different examples, and the
        code that is checked is the code that is timed, shapes included. They are repeated in a
        random order: no part of a batch has each as often, so a part has another loss.

        Args:
            steps: how many batches; the first ones are the same however many there are.

        Returns:
            (examples, labels) of each step: float32 images from 0 to 1 or int32 tokens, and int32
            labels, those of an example one after the other.
        """
        rows = check_rows(batch)
        batches, rng = self._checked(rows)
        # The order is drawn after all examples, so that these do not depend on the batch size.
        repeated = rng.permutation(np.tile(np.arange(rows), batch // rows))
        return [(x[repeated], y[repeated].ravel()) for x, y in batches[:steps]]

    def timed_batches(self, batch: int, steps: int) -> list[Batch]:
        """Batches to be timed on: of different examples, as users have them."""
        rng = np.random.default_rng([_TIMED_SEED, batch])
        drawn = (self._drawn(rng, batch) for _ in range(steps))
        return [(examples, labels.ravel()) for examples, labels in drawn]

    def other_batch(self, batch: int, seed: int) -> Batch:
        """A batch of different examples by a seed."""
        examples, labels = self._drawn(np.random.default_rng([_TIMED_SEED, batch, seed]), batch)
        return examples, labels.ravel()

    def check_shards(self, batch: int, steps: int, replicas: int, rank: int) -> list[Batch]:
        """A replica's shares of the batches of :meth:`check_batches`.

        Equal examples are one after the other before a batch is cut, so that shares differ: a
        replica that learns from its own alone has other losses. The mean of all losses is the same.

        Args:
            replicas: that share each batch evenly.
            rank: of the replica, from 0.
        """
        rows = check_rows(batch)
        batches, _ = self._checked(rows)
        share = slice(rank * batch // replicas, (rank + 1) * batch // replicas)
        repeated = np.repeat(np.arange(rows), batch // rows)[share]
        return [(x[repeated], y[repeated].ravel()) for x, y in batches[:steps]]

    def shards(self, batch: int, steps: int, replicas: int) -> list[tuple[Batch, ...]]:
        """By step, the shares of all replicas, as :meth:`check_shards` cuts them."""
        if replicas == 1:
            return [(whole,) for whole in self.check_batches(batch, steps)]
        of_ranks = (self.check_shards(batch, steps, replicas, rank) for rank in range(replicas))
        return [*zip(*of_ranks, strict=True)]

    def reduced(self, batch: int, replicas: int) -> tuple[int, int]:
        """The smallest batch with the same mean losses in the check, and the shares it is cut into.

        Repeated examples change no mean, neither of losses nor of channels, as long as each share
        has them in the same proportions. Where nothing is normalized by batch, one share will do.
        """
        replicas = replicas if self.normalized else 1
        return math.lcm(check_rows(batch), replicas), replicas

    @property
    def recurrent_terms(self) -> int:
        """Terms that recurrent layers add up for a result, from the first step to the last."""
        nodes = [n for n in self.graph.nodes if isinstance(n.layer, layers.Recurrent)]
        return sum(2 * node.output[-1] * node.shapes[0][0] for node in nodes)

    @property
    def normalized(self) -> set[int]:
        """Values that an example has of each channel, by layer that normalizes by batch."""
        nodes = self.graph.nodes
        normalizing = [node for node in nodes if isinstance(node.layer, layers.BatchNorm)]
        return {math.prod(node.output[:-1]) for node in normalizing}

    def _checked(self, rows: int) -> tuple[list[Batch], np.random.Generator]:
        """The different examples of every batch of the check, and what has drawn them."""
        rng = np.random.default_rng([_CHECK_SEED, rows])
        return [self._drawn(rng, rows) for _ in range(TRAJECTORY_STEPS)], rng

    def _drawn(self, rng: np.random.Generator, rows: int) -> Batch:
        """Examples, and labels ``(rows, labels_per_example)``."""
        labels = min(self.classes, _CHECK_WORDS) if self.labels_shape else self.classes
        x: NDArray[Any]
        if self.vocabulary is None:
            x = rng.random((rows, *self.shape), dtype=np.float32)
        else:
            x = rng.integers(1, self.vocabulary, (rows, *self.shape), dtype=np.int32)
        y = rng.integers(0, labels, (rows, self.labels_per_example), dtype=np.int32)
        return x, y * (self.classes // labels)

    def split_gap(self, batch: int, replicas: int) -> str | None:
        """Why replicas cannot share a batch, so that it can be checked; None if they can."""
        if batch % replicas:
            return f"a batch of {batch} cannot be shared evenly by {replicas} replicas"
        if check_rows(batch) == 1:
            return (
                f"the check of an odd batch of {batch} has one example, and cannot tell whether "
                "replicas exchange anything: choose an even one"
            )
        return None

    def rounding_gap(self, batch: int, replicas: int, dtype: str) -> str | None:
        """Why rounding decides on the losses of the check; None if it does not.

        Args:
            replicas: that normalize by their own shares of a batch.
        """
        fewest = _FEWEST_IN_FLOAT64 if dtype == "float64" else _FEWEST_VALUES
        rows = max(1, check_rows(batch) // replicas)
        values = rows * min(self.normalized, default=fewest)
        if rows == CHECK_ROWS or values >= fewest:
            return None
        return (
            f"{self.name} normalizes some channels by {values} different values in the check of a "
            f"batch of {batch}{f' for {replicas} replicas' * (replicas > 1)}, and with fewer than "
            f"{fewest} rounding decides on losses in {dtype}: choose a multiple of {CHECK_ROWS}, "
            "larger images or fewer replicas"
        )


@dataclass(frozen=True, eq=False)
class Classifier(Objective):
    """A trained network, and what it is asked about."""

    #: Images and labels that it has not learned from; the check's batches are the first.
    test: Batch = field(kw_only=True)
    #: Images that it has learned from: what narrow integers are scaled by.
    calibration: NDArray[Any] = field(kw_only=True)

    def check_batches(self, batch: int, steps: int) -> list[Batch]:
        """Batches of different examples, one after the other; from the first again at the end."""
        examples, labels = self.test
        rows = np.arange(batch * steps).reshape(steps, batch) % len(labels)
        return [(examples[batch_rows], labels[batch_rows]) for batch_rows in rows]

    timed_batches = check_batches

    def other_batch(self, batch: int, seed: int) -> Batch:
        """A batch of examples by a seed."""
        examples, labels = self.test
        rows = np.random.default_rng([batch, seed]).integers(len(labels), size=batch)
        return examples[rows], labels[rows]


def check_rows(batch: int) -> int:
    """Number of different examples in a batch of the check: 8, 4, 2 or 1."""
    return math.gcd(batch, CHECK_ROWS)
