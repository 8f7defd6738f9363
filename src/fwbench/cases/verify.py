"""Comparison of results with their references: tolerances, relative errors, losses, counts."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.errors import (
    DeclarationError,
    NotACopy,
    VerificationError,
    WrongGradient,
    WrongResult,
    WrongTraining,
)
from fwbench.records.units import count
from fwbench.terms.names import FLOAT8, INT8
from fwbench.workloads.objective import Objective

#: What one rounded operation may be off by: 16 units in the last place of float32 and a little
#: more than was seen of all frameworks for the others. float64 leaves room for the constants that
#: frameworks add to denominators (MXNet's L2Normalization adds 1e-10 to the sum of squares).
#: Work on float8 has exact factors, and results in bfloat16.
TOLERANCES = {
    "float64": 1e-10,
    "float32": 2e-6,
    "float16": 2e-2,
    **dict.fromkeys(("bfloat16", FLOAT8), 4e-2),
}

#: Machine epsilon of the accumulator: low-precision sums are accumulated in float32.
_ACCUMULATOR_EPSILON = {"float64": 2.0**-52}
_FLOAT32_EPSILON = 2.0**-23

#: What the first losses of a training loop may be off by, in nats; in narrow dtypes no more than
#: that. Seen of all frameworks, executions and workloads: 3e-6 (float32), 5e-12 (float64), 2.6e-2
#: (bfloat16). TF32 moves those of LeNet by 1.8e-5 within three steps, another place of Adam's
#: epsilon by 3e-4 or more, lazy updates where dense ones were asked for by 2e-4.
LOSS_TOLERANCES = {"float64": 1e-8, "float32": 1e-5, "float16": 5e-2, "bfloat16": 5e-2}

#: How many of them: rounding adds up from step to step. With a batch of two that of MLP was 1.7e-5
#: in the seventh.
_FIRST_LOSSES = 4

#: The same of later ones, and of deeper networks, in parts of which their objectives say how losses
#: grow apart.
NETWORK_LOSS_TOLERANCES = {**LOSS_TOLERANCES, "float32": 5e-5}

#: How many times an emulation's deviation by rounding is allowed in mixed precision.
ROUNDING = 4.0

#: What a logit may be off by, relative to the larger of itself and their root mean square; in
#: narrow dtypes no more than that. Seen in int8 were 0.16 at most; 8 bits of the weights alone make
#: 0.03, 4 bits 0.4, 3 bits 1.8. Recurrent layers pass errors on from step to step: states that are
#: off by 4e-6 make 3e-5 in 16 steps, TF32 in one layer 1e-3. So their sums add what they do alone.
LOGIT_TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1, INT8: 0.3}


def tolerance(dtype: str, terms: int, factor: float = 1.0) -> float:
    """The largest relative error that is still the same work.

    Args:
        terms: how many terms an element adds up; errors of random sign grow with the square root.

    Raises:
        DeclarationError: a dtype without a tolerance.
    """
    if dtype not in TOLERANCES:
        raise DeclarationError(f"cannot verify {dtype}: known are {', '.join(TOLERANCES)}")
    return factor * (TOLERANCES[dtype] + _of_sums(dtype, terms))


def logit_tolerance(dtype: str, recurrent_terms: int) -> float:
    """The largest error of a logit of a network, by the terms that its recurrent layers add up."""
    return LOGIT_TOLERANCES[dtype] + _of_sums(dtype, recurrent_terms)


def _of_sums(dtype: str, terms: int) -> float:
    return 8 * _ACCUMULATOR_EPSILON.get(dtype, _FLOAT32_EPSILON) * math.sqrt(terms)


class Deviation(NamedTuple):
    """Deviation of a result from its reference."""

    #: Relative error of the worst element.
    largest: float
    #: Root mean square of the relative errors.
    rms: float
    #: Index of the worst element, in the order of the elements.
    worst: int = 0
    #: Number of elements that are off by more than allowed.
    beyond: int = 0


def compare(
    actual: NDArray[Any], reference: NDArray[Any], allowed: float, by: str = "NumPy reference"
) -> Deviation:
    """Compare a result with the reference.

    Args:
        reference: the same in float64, or in complex128; integers must be equal.

    Raises:
        WrongResult: the shapes differ, or an element is off by more than allowed.
    """
    reference, actual = np.asarray(reference), np.asarray(actual)
    # A framework may return a scalar as a vector of one element (MXNet has no other way).
    if actual.size == reference.size == 1:
        actual = actual.reshape(reference.shape)
    check_shape(actual, reference.shape, by)
    if np.array_equal(actual, reference):  # as of copies, and where there are no elements
        return Deviation(0.0, 0.0)
    errors = relative(actual, reference, allowed)
    if not errors.largest <= allowed:
        worst = np.unravel_index(errors.worst, reference.shape)
        place = [int(i) for i in worst] if reference.ndim else "the only element"
        raise WrongResult(
            f"the result is wrong: largest relative error {errors.largest:.3g} at {place}, where "
            f"it is {1 * actual[worst]:.9g} and the {by} {1 * reference[worst]:.9g}; "
            f"{allowed:.3g} is allowed. {errors.beyond} of {reference.size} elements are off by "
            "more"
        )
    return errors


def check_shape(
    actual: NDArray[Any], expected: tuple[int, ...], by: str = "NumPy reference"
) -> None:
    """Check that a result has the shape of its reference.

    Raises:
        WrongResult: it has another one.
    """
    if actual.shape != expected:
        raise WrongResult(
            f"the result has the shape {actual.shape}, the {by} {expected}; "
            "the implementation computes something else"
        )


def gradient_count(gradients: Sequence[Any], variables: Sequence[int]) -> None:
    """Check that there is one gradient for each input that is differentiated by.

    Raises:
        WrongGradient: there are more or fewer.
    """
    if len(gradients) != len(variables):
        raise WrongGradient(
            f"returned {count(len(gradients), 'gradient')}, for {count(len(variables), 'input')}"
        )


def gradient_shape(position: int, actual: NDArray[Any], operand: NDArray[Any]) -> None:
    """Check that a gradient has the shape of the input that it was differentiated by.

    Raises:
        WrongGradient: it has another one.
    """
    if actual.shape != operand.shape:
        raise WrongGradient(
            f"the gradient of input {position} has the shape {actual.shape}, "
            f"the input {operand.shape}"
        )


@contextmanager
def within(context: str) -> Iterator[None]:
    """Say of a failed verification what was verified.

    Raises:
        VerificationError: of the same kind, with the clause before its message.
    """
    try:
        yield
    except VerificationError as error:
        if error.is_whole:
            raise
        raise type(error)(f"{context}: {error}") from None


def placed(actual: NDArray[Any], expected: NDArray[Any], dtype: str) -> None:
    """Check that an input arrived on the device as it was sent, up to the rounding of its dtype.

    Raises:
        WrongResult: it changed on the way.
    """
    if np.array_equal(actual, expected):  # nearly always, and far sooner known than the errors
        return
    if np.issubdtype(expected.dtype, np.floating):
        compare(actual, expected, TOLERANCES[dtype])
    else:
        raise WrongResult("an input changed on its way to the device; fix the framework's creator")


def copied(before: NDArray[Any], after: NDArray[Any]) -> None:
    """Check that an array stayed as it was when its source was changed.

    Raises:
        NotACopy: it changed.
    """
    if not np.array_equal(before, after):
        raise NotACopy(
            "the created array changed with its source: it shares memory with it, so nothing was "
            "copied; use the framework's copying constructor"
        )


def placement(actual: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Check that the layers of a network are on its device, or divided among its devices.

    Args:
        actual: how many trained numbers are on each, by the framework's account.
        expected: how many must be.

    Raises:
        WrongTraining: there are others.
    """
    if actual != expected:
        there, wanted = (
            ", ".join(f"{number} on {name}" for name, number in sorted(on.items()))
            for on in (actual, expected)
        )
        raise WrongTraining(
            f"the layers are not where they were asked for: of the parameters {there or 'none'} "
            f"are on a device, and {wanted} must be"
        )


def parameters(actual: int, expected: int) -> None:
    """Check that a model has as many parameters as it should have.

    Raises:
        WrongTraining: the numbers differ.
    """
    if actual != expected:
        raise WrongTraining(
            f"the model trains {actual} parameters, and its description has {expected}: it is "
            "another model; fix the framework's layers"
        )


def loss_tolerances(
    training: Objective, expected: Sequence[float], dtype: str, *, rounding: Any = None
) -> NDArray[np.float64]:
    """Tolerance of each of the first losses of a training, in nats.

    Args:
        training: a loop, or a network whose losses grow apart as its objective says.
        rounding: deviation of each loss by the dtype's rounding, where that is known.

    Raises:
        DeclarationError: a dtype without a tolerance.
    """
    if dtype not in LOSS_TOLERANCES:
        raise DeclarationError(f"cannot verify {dtype}: known are {', '.join(LOSS_TOLERANCES)}")
    allowed: NDArray[np.float64]
    allowed = NETWORK_LOSS_TOLERANCES[dtype] * training.loss_scales(expected)
    if training.loss_growth is None:
        allowed[:_FIRST_LOSSES] = LOSS_TOLERANCES[dtype]
    if rounding is None:
        return allowed
    wide = loss_tolerances(training, expected, "float32")
    return np.minimum(allowed, wide + ROUNDING * rounding[: len(expected)])


def losses(
    actual: NDArray[Any],
    expected: Sequence[float],
    allowed: Sequence[float] | NDArray[np.float64],
    reference: str = "the float64 reference",
) -> tuple[float, float]:
    """Compare the first losses of a training with the reference's.

    Args:
        actual: one for each step.
        expected: the same in float64.
        allowed: what each may be off by, as :func:`loss_tolerances` has it; one for all.

    Returns:
        The deviation of the step that comes closest to what is allowed, and what is; in nats.

    Raises:
        WrongTraining: one is off by more.
    """
    allowed = np.broadcast_to(np.asarray(allowed), len(expected))
    deviations = np.abs(np.asarray(actual, dtype=np.float64) - np.asarray(expected))
    deviations[~np.isfinite(deviations)] = np.inf
    worst = int(np.argmax(deviations / allowed))
    if not deviations[worst] <= allowed[worst]:
        first = int(np.argmax(deviations > allowed))
        raise WrongTraining(
            f"this is not the same training: at step {first + 1} the loss is {actual[first]:.9g}, "
            f"and {reference} has {expected[first]:.9g}; {allowed[first]:.3g} is "
            f"allowed, and the largest deviation in {count(len(expected), 'step')} is "
            f"{deviations.max():.3g}. Weights, order of batches, loss, optimiser or random numbers "
            "differ"
        )
    return float(deviations[worst]), float(allowed[worst])


#: Arrays are compared in blocks of this many elements: what is made of a block stays in a cache.
_BLOCK = 2**15

#: Numbers beyond this or its reciprocal are not squared as they are.
_SQUARED_AT_LEAST = 1e-100


def relative(actual: NDArray[Any], reference: NDArray[Any], allowed: float) -> Deviation:
    """The relative errors of an array; infinite where no error is allowed and there is one.

    Args:
        reference: what it should be: numbers of the same shape, at least one.
    """
    actual, reference = actual.reshape(-1), reference.reshape(-1)
    least = _least_scale(reference)
    largest, worst, squares, beyond = -1.0, 0, 0.0, 0
    for start in range(0, reference.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        errors = _block_errors(actual[block], reference[block], least)
        place = int(np.argmax(errors))
        if errors[place] > largest:
            largest, worst = float(errors[place]), start + place
        squares += _sum_of_squares(errors)
        beyond += int(np.count_nonzero(errors > allowed))
    return Deviation(largest, math.sqrt(squares / reference.size), worst, beyond)


def _block_errors(
    actual: NDArray[Any], reference: NDArray[Any], least: float
) -> NDArray[np.float64]:
    """The relative errors of a block; ``least`` is what they are at least relative to."""
    exact = all(np.issubdtype(array.dtype, np.integer) for array in (actual, reference))
    if exact:  # float64 could not tell large ones apart
        return np.where(actual == reference, 0.0, np.inf)
    wide = np.result_type(actual, reference, np.float64)
    actual = actual.astype(wide, copy=False)
    reference = reference.astype(wide, copy=False)
    with np.errstate(all="ignore"):  # infinities are judged below
        errors: NDArray[np.float64] = np.abs(actual - reference)
        errors /= np.maximum(np.abs(reference), least)
    if not np.all(np.isfinite(errors)):
        # Infinities and NaNs are right where the reference has them too, and wrong elsewhere.
        errors[~np.isfinite(errors)] = np.inf
        errors[(actual == reference) | (np.isnan(actual) & np.isnan(reference))] = 0.0
    return errors


def _least_scale(reference: NDArray[Any]) -> float:
    """Smallest scale of errors: the root mean square of the reference, or 1 of zeros.

    Only finite numbers count.
    """
    sizes = np.abs(reference).astype(np.float64, copy=False)
    largest = float(np.max(sizes, initial=0.0))
    if not np.isfinite(largest):
        sizes = sizes[np.isfinite(sizes)]
        largest = float(np.max(sizes, initial=0.0))
    return _rms(sizes, largest) if largest else 1.0


def _rms(sizes: NDArray[Any], largest: float) -> float:
    """The root mean square of sizes, of which the largest is not 0."""
    # Divided before they are squared where something would overflow or vanish.
    unit = 1.0 if _SQUARED_AT_LEAST < largest < 1 / _SQUARED_AT_LEAST else largest
    shares = sizes if unit == 1.0 else sizes / unit
    return unit * math.sqrt(_sum_of_squares(shares) / shares.size)


def _sum_of_squares(numbers: NDArray[Any]) -> float:
    # Without a BLAS, whose threads would still wait actively when the case is timed.
    return float(np.einsum("i,i->", numbers, numbers))
