"""Softmax and losses, of rows of numbers for each class."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import normal, numbers
from fwbench.workloads.workload import Cost

Array = NDArray[Any]

_SIZES = sizes_of("losses")


def _labelled(size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """With the class of each row."""
    return *normal(numbers)(size, rng), rng.integers(0, size["c"], size["n"])


def _decided(size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """With the answer, 0 or 1, to each of them."""
    (x,) = normal(numbers)(size, rng)
    return x, rng.integers(0, 2, x.shape).astype(float)


def _targeted(size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """With targets at a distance that is neither 0 nor 1, where a Huber loss has its bends."""
    (x,) = normal(numbers)(size, rng)
    distance = rng.choice((0.55, 1.6), x.shape) + rng.uniform(-0.4, 0.4, x.shape)
    return x, x + np.copysign(distance, rng.standard_normal(x.shape))


def _log_softmax(x: Array) -> Array:
    shifted = x - x.max(1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))


def _cross_entropies(x: Array, labels: Array) -> Array:
    return -np.asarray(_log_softmax(x)[np.arange(len(x)), labels])


def _huber(x: Array, y: Array) -> Array:
    """Half the square up to a distance of 1, from there on a line."""
    distance = np.abs(x - y)
    return np.where(distance < 1.0, 0.5 * distance**2, distance - 0.5)


def _elements(size: Shape) -> int:
    return size["n"] * size["c"]


#: A distribution over the classes for each row.
_softmax = partial(
    Operation,
    inputs=normal(numbers),
    sizes=_SIZES["rows"],
    # A maximum, a difference, an exponential, a sum and a quotient (or difference) for each.
    cost=lambda size: Cost(5.0 * _elements(size), 2.0 * _elements(size)),
    # The gradient reads y and g and writes dx, by a product, a sum, a difference, a product.
    backward_cost=lambda size: Cost(9.0 * _elements(size), 5.0 * _elements(size)),
    terms=lambda size: size["c"],
)


def _targets(labels: bool, size: Shape) -> int:
    """Number of targets: one for each row, or for each element."""
    return size["n"] if labels else _elements(size)


def _loss_cost(flops: int, labels: bool, size: Shape) -> Cost:
    """Reads numbers and targets, and writes one number."""
    elements = _elements(size)
    return Cost(float(flops * elements), elements + _targets(labels, size) + 1.0)


def _loss_backward_cost(flops: int, labels: bool, size: Shape) -> Cost:
    """The gradient reads numbers, targets and g, and writes as many numbers: 3 operations each."""
    elements = _elements(size)
    forward = _loss_cost(flops, labels, size)
    return Cost(forward.flops + 3.0 * elements, 2.0 * forward.elements + elements)


def _loss(
    name: str,
    loss: Callable[[Array, Array], Array],
    inputs: Callable[[Shape, np.random.Generator], tuple[Array, ...]],
    *,
    flops: int,
    total: Callable[[Array], Any] = np.mean,
) -> Operation:
    """The mean, or the sum, of a loss; the targets have no gradient."""
    labels = inputs is _labelled
    return Operation(
        name=name,
        inputs=inputs,
        reference=lambda x, targets: total(loss(x, targets)),
        sizes=_SIZES["rows"],
        cost=partial(_loss_cost, flops, labels),
        backward_cost=partial(_loss_backward_cost, flops, labels),
        variables=(0,),
        terms=_elements,
        average=total is np.mean and not labels,
    )


def _spoken(size: Shape, rng: np.random.Generator) -> tuple[Array, ...]:
    """Numbers for each class at each time, and labels other than the blank, which is 0."""
    x = rng.standard_normal((size["n"], size["t"], size["c"]))
    return x, rng.integers(1, size["c"], (size["n"], size["l"]))


def _ctc(x: Array, labels: Array, *_: int) -> Array:
    """The forward recursion of Graves et al. 2006 (eqs. 6 to 8), over logarithms.

    A path goes through the labels with blanks before, between and after them; from one time to the
    next it stays, goes one on, or leaves out a blank between two labels that differ.
    """
    path = np.zeros((len(x), 2 * labels.shape[1] + 1), int)
    path[:, 1::2] = labels
    skips = np.zeros(path.shape, bool)
    skips[:, 3::2] = labels[:, 1:] != labels[:, :-1]
    classes = _log_softmax(x.reshape(-1, x.shape[-1])).reshape(x.shape)
    likely = np.take_along_axis(classes, path[:, None], axis=2)
    alpha = np.where(np.arange(path.shape[1]) < 2, likely[:, 0], -np.inf)  # noqa: PLR2004
    for now in range(1, x.shape[1]):
        previous = np.pad(alpha, [(0, 0), (1, 0)], constant_values=-np.inf)[:, :-1]
        two = np.pad(alpha, [(0, 0), (2, 0)], constant_values=-np.inf)[:, :-2]
        skipping = np.where(skips, two, -np.inf)
        alpha = np.logaddexp(np.logaddexp(alpha, previous), skipping) + likely[:, now]
    return -np.logaddexp(alpha[:, -1], alpha[:, -2])


def _ctc_cost(size: Shape) -> Cost:
    """A softmax, and three products and their sum for each place of the path at each time."""
    n, numbers = size["n"], size["n"] * size["t"] * size["c"]
    places = n * size["t"] * (2 * size["l"] + 1)
    return Cost(5.0 * numbers + 6.0 * places, numbers + n * size["l"] + float(n))


def _ctc_backward_cost(size: Shape) -> Cost:
    """The recursion backward in time, and a difference of shares: x, labels, g, and dx."""
    n, numbers = size["n"], size["n"] * size["t"] * size["c"]
    places = n * size["t"] * (2 * size["l"] + 1)
    forward = _ctc_cost(size)
    flops = forward.flops + 6.0 * places + 2.0 * numbers
    return Cost(flops, 2.0 * forward.elements + numbers)


LOSSES = family(
    "losses",
    # The last step of attention and of classifiers; and the loss that most networks minimise.
    ("softmax", "cross_entropy"),
    _softmax("softmax", reference=lambda x: np.exp(_log_softmax(x))),
    _softmax("log_softmax", reference=_log_softmax),
    _loss("cross_entropy", _cross_entropies, _labelled, flops=5),
    # As MXNet's own operator has it, over the batch.
    _loss("cross_entropy_sum", _cross_entropies, _labelled, flops=5, total=np.sum),
    _loss(
        "binary_cross_entropy",
        lambda x, answers: np.asarray(np.logaddexp(0.0, x) - x * answers),
        _decided,
        flops=6,
    ),
    _loss("mse", lambda x, y: (x - y) ** 2, _targeted, flops=3),
    _loss("huber", _huber, _targeted, flops=5),
    # A loss for each sequence; implementations get their lengths, of numbers and of labels.
    Operation(
        name="ctc_loss",
        inputs=_spoken,
        reference=_ctc,
        sizes=_SIZES["speech"],
        cost=_ctc_cost,
        backward_cost=_ctc_backward_cost,
        parameters=lambda size: (size["n"], size["t"], size["l"]),
        terms=lambda size: size["t"] * size["l"],
        # Steps add up logarithms of 100 to 200, whose last digit is 8e-6 to 2e-5 in float32. Seen:
        # 1.6 (PyTorch and MXNet, of 12 draws).
        tolerance=4.0,
    ),
)
