"""Softmax and losses, of rows of numbers for each class."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.terms.presets import Shape, sizes_of
from fwbench.workloads.operation import Operation, family
from fwbench.workloads.operations.vectors import normal, numbers
from fwbench.workloads.workload import Counts

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


# A maximum, a difference, an exponential, a sum and a quotient (or difference) for each. The
# gradient reads y and g and writes dx, by a product, a sum, a difference, a product.
_ROWS = Counts("nc", "nc", "2nc", sums="4nc", flops="5nc")

#: A distribution over the classes for each row.
_softmax = partial(
    Operation,
    inputs=normal(numbers),
    sizes=_SIZES["rows"],
    cost=_ROWS.forward,
    backward_cost=_ROWS.backward,
    terms=lambda size: size["c"],
)


def _loss(
    name: str,
    loss: Callable[[Array, Array], Array],
    inputs: Callable[[Shape, np.random.Generator], tuple[Array, ...]],
    *,
    flops: int,
    total: Callable[[Array], Any] = np.mean,
) -> Operation:
    """The mean, or the sum, of a loss; the targets have no gradient.

    They are one for each row, or for each element. The gradient reads numbers, targets and g, and
    writes as many numbers: 3 operations each.
    """
    labels = inputs is _labelled
    reads = "nc+n" if labels else "2nc"
    counts = Counts(reads, "1", f"{reads}+nc", sums="3nc", flops=f"{flops}nc")
    return Operation(
        name=name,
        inputs=inputs,
        reference=lambda x, targets: total(loss(x, targets)),
        sizes=_SIZES["rows"],
        cost=counts.forward,
        backward_cost=counts.backward,
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


# A softmax, and three products and their sum for each place of the path at each time. The gradient
# is the recursion backward in time, and a difference of shares: x, labels, g, and dx.
_CTC = Counts("ntc+nl", "n", "2ntc+nl", sums="12ntl+6nt+2ntc", flops="5ntc+12ntl+6nt")

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
        cost=_CTC.forward,
        backward_cost=_CTC.backward,
        parameters=lambda size: (size["n"], size["t"], size["l"]),
        terms=lambda size: size["t"] * size["l"],
        # Steps add up logarithms of 100 to 200, whose last digit is 8e-6 to 2e-5 in float32. Seen:
        # 1.6 (PyTorch and MXNet, of 12 draws).
        tolerance=4.0,
    ),
)
