"""Backward: the forward pass and the gradient, which is compared with central differences."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import precision, verify
from fwbench.cases.forward import Forward, listed
from fwbench.cases.inputs import OPERAND_CACHE, in_dtype, is_inexact, widest
from fwbench.errors import DeclarationError, WrongGradient
from fwbench.frameworks.contract import Array, BoundCall
from fwbench.records.facts import CaseFacts

Arrays = Sequence[NDArray[Any]]

#: Seed of the cotangent; the seed of other operands is added to it.
_COTANGENT_SEED = 1


class Backward(Forward):
    """The forward pass and the gradient by floating-point and complex inputs."""

    def _bound(self) -> BoundCall:
        operands = super()._drawn(0)
        chosen = self.operation.variables
        # A layout may make one input of several: it names no operand then, and all are variables.
        self.variables = [
            i for i, x in enumerate(operands) if is_inexact(x) and (chosen is None or i in chosen)
        ]
        self._forms = self._result_forms()
        cotangents = [
            self._placed.place(x) if is_inexact(x) else None
            for x in self._cotangents(_COTANGENT_SEED)
        ]
        self._differentiated = [x is not None for x in cotangents]
        if not any(self._differentiated):
            raise DeclarationError(
                f"the reference of {self.operation.name} returns no floating-point numbers, so "
                "there is no gradient; declare differentiable=False"
            )
        self.cotangent = tuple(cotangents) if len(cotangents) > 1 else cotangents[0]
        return self.framework.backward(
            self.implementation, self.inputs, self.variables, self.cotangent, self.cell.execution
        )

    def _result_forms(self) -> list[tuple[tuple[int, ...], np.dtype[Any]]]:
        return [(x.shape, x.dtype) for x in self._reference(self._placed.check())]

    def _cotangents(self, seed: int) -> list[NDArray[Any]]:
        """Starts of the gradients of the results, in the framework's layout.

        Whole numbers, which have no gradient, have zeros.
        """

        def draw() -> list[NDArray[Any]]:
            rng = np.random.default_rng(seed)
            return [_cotangent(shape, dtype, rng) for shape, dtype in self._forms]

        numbers = OPERAND_CACHE.arrays(("cotangents", seed, *self._forms), draw)
        return self.layout.place_results([in_dtype(x, self.dtype) for x in numbers])

    def _drawn(self, seed: int) -> list[NDArray[Any]]:
        """With the cotangents behind them."""
        cotangents = self._cotangents(_COTANGENT_SEED + seed)
        return [*super()._drawn(seed), *filter(is_inexact, cotangents)]

    def _data(self, operands: Sequence[NDArray[Any]]) -> list[int]:
        """And the cotangents: gradients of linear work depend on nothing else."""
        return [*super()._data(operands), *range(len(self.inputs), len(operands))]

    def arrays(self, result: Any) -> Sequence[Array]:
        """The results of the forward pass, and one gradient for each variable.

        Raises:
            WrongGradient: it is something else.
        """
        match result:
            case [value, [*gradients]]:
                verify.gradient_count(gradients, self.variables)
                return [*super().arrays(value), *gradients]
        raise WrongGradient(
            f"backward's call returned a {type(result).__name__}, and not the result with the "
            "gradients; return (result, [gradient, ...]), so that the forward pass cannot be left "
            "out"
        )

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        inputs = self._checked(on_host)
        split = len(on_host) - len(self.variables)
        results, gradients = on_host[:split], on_host[split:]
        deviation = self._compare_results(results, self._reference(inputs))
        error = self._compare_gradients(gradients, results, inputs)
        self._check_digits(gradients)
        return self._facts(deviation, error)

    def _compare_gradients(self, gradients: Arrays, results: Arrays, inputs: Arrays) -> float:
        """The largest error of a gradient, whose reference has the signs of the results."""
        operation = self.operation
        numbers = [*map(widest, inputs)]
        values, cotangents = numbers[: len(self.inputs)], numbers[len(self.inputs) :]
        placed = iter(cotangents)
        every = [
            next(placed) if differentiated else np.zeros_like(result)
            for differentiated, result in zip(self._differentiated, results, strict=True)
        ]
        restored = self.layout.restore_results(results)
        conjugated = np.asarray if self.framework.conjugates else np.conj
        return gradient(
            self._by_operand([*map(conjugated, gradients)], values),
            lambda *operands: self._aligned(
                listed(operation.reference(*operands, *self.parameters)), restored
            ),
            self.layout.restore(values),
            [*map(conjugated, self.layout.restore_results(every))],
            self.allowed,
            operation.along,
            self._kept_slopes,
        )

    def _aligned(self, expected: Arrays, results: Arrays) -> Arrays:
        aligned = self.operation.aligned
        return expected if aligned is None else aligned(expected, results)

    def _kept_slopes(
        self, position: int, compute: Callable[[], Sequence[float]]
    ) -> Sequence[float]:
        """The slopes along an operand, which take six references: other executions have them, too.

        Where signs are free they are those of these results alone.
        """
        if self.operation.aligned is not None:
            return compute()
        key = self._key(f"slopes {position}", len(self._placed.digests))
        (slopes,) = OPERAND_CACHE.arrays(key, lambda: [np.array(compute())])
        return [*map(float, slopes)]

    def _by_operand(self, gradients: Arrays, values: Arrays) -> dict[int, NDArray[Any]]:
        """The gradients by the positions of the operands in the definition, and in its layout."""
        every = list(values)
        for position, (value, gradient) in enumerate(
            zip(map(values.__getitem__, self.variables), gradients, strict=True)
        ):
            verify.gradient_shape(position, gradient, value)
            every[self.variables[position]] = gradient
        restored = self.layout.restore(every)
        positions = self.variables if len(restored) == len(every) else range(len(restored))
        return {position: restored[position] for position in positions}

    def _check_digits(self, gradients: Sequence[NDArray[Any]]) -> None:
        """A difference is off by more than float32 is; digits tell what it cannot."""
        if self.dtype != "float64":
            return
        for position, gradient in zip(self.variables, gradients, strict=True):
            if precision.is_float32(gradient):
                raise WrongGradient(
                    f"the gradient of input {position} has no more digits than float32 has, and "
                    "the case is in float64: it was computed in float32"
                )


def _cotangent(
    shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
) -> NDArray[Any]:
    if not np.issubdtype(dtype, np.inexact):
        return np.zeros(shape, dtype)
    numbers = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        numbers = numbers + 1j * rng.standard_normal(shape)
    return np.asarray(numbers)


#: Random directions along which gradients are compared.
_DIRECTIONS = 3

#: With this seed no two of the first four elements are moved alike in all of them, whichever of
#: three inputs they are of: of an input of at most four, errors that cancel in one direction show
#: in another.
_SEED = 302

#: Step of the central difference, and what it is off by at most, for references of order one.
_STEP = 1e-5
_ERROR = 1e-8

#: Makes of a random direction the one along which a gradient is compared.
Along = Callable[[NDArray[Any]], NDArray[Any]]

#: ``keep(position, compute)``: slopes along an input, as computed now or before.
Keep = Callable[[int, Callable[[], Sequence[float]]], Sequence[float]]


def gradient(
    gradients: Mapping[int, NDArray[Any]],
    reference: Callable[..., Arrays],
    inputs: Arrays,
    cotangents: Arrays,
    allowed: float,
    along: Along = lambda direction: direction,
    keep: Keep = lambda _, compute: compute(),
) -> float:
    """Compare gradients with directional central differences of the reference in float64.

    One input is moved at a time, every element by the same step in a random direction, so that an
    error names its input. The error is relative to the gradient's norm, which is what the
    derivative in a random direction is of the order of. There are three directions: along a single
    one, MXNet's gradient of SELU, which is wrong, can look right. A complex number is two real
    ones, as in :attr:`fwbench.Framework.conjugates`.

    Args:
        gradients: the framework's gradients, by the position of the input; of complex inputs what
            grows fastest along it.
        cotangents: what the gradients of the results were set to.
        keep: of the slopes of the reference; by default they are computed.

    Returns:
        The largest relative error.

    Raises:
        WrongGradient: a shape is not its input's, or one is off by more than allowed.
    """
    largest = 0.0
    for position, actual in gradients.items():
        operand = inputs[position]
        verify.gradient_shape(position, actual, operand)
        values = _wide(actual)
        norm = float(np.linalg.norm(values))
        slopes = keep(position, partial(_slopes, reference, inputs, position, cotangents, along))
        for direction, expected in zip(directions(position, operand, along), slopes, strict=True):
            slope = _product(values, direction)
            largest = max(largest, _checked_error(position, slope, expected, norm, allowed))
    return largest


def _checked_error(
    position: int, slope: float, expected: float, norm: float, allowed: float
) -> float:
    """The error of a slope of a gradient, relative to its norm, or to the slope if that is more."""
    error = abs(slope - expected) / (max(abs(expected), norm) or 1.0)
    if not error <= allowed + _ERROR:
        raise WrongGradient(
            f"the gradient of input {position} is wrong: along a random direction it is "
            f"{slope:.9g}, the central difference of the NumPy reference {expected:.9g}; "
            f"relative error {error:.3g}, {allowed:.3g} is allowed"
        )
    return error


def directions(position: int, like: NDArray[Any], along: Along) -> Iterator[NDArray[Any]]:
    """The directions in which an input is moved, the same each time."""
    rng = np.random.default_rng((_SEED, position))
    for _ in range(_DIRECTIONS):
        real = _signs(like.shape, rng)
        yield along(real + 1j * _signs(like.shape, rng) if np.iscomplexobj(like) else real)


def _signs(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[Any]:
    count = math.prod(shape)
    drawn = np.frombuffer(rng.bytes((count + 7) // 8), np.uint8)
    return (2.0 * np.unpackbits(drawn, count=count) - 1.0).reshape(shape)


def _slopes(
    reference: Callable[..., Arrays],
    inputs: Arrays,
    position: int,
    cotangents: Arrays,
    along: Along,
) -> list[float]:
    """The slopes of the results, weighted by the cotangents, along :func:`directions`."""
    operand = inputs[position]
    slopes = []
    for direction in directions(position, operand, along):
        ahead, behind = (
            reference(*inputs[:position], operand + step * direction, *inputs[position + 1 :])
            for step in (_STEP, -_STEP)
        )
        differences = [
            _product(cotangent, _wide(after) - _wide(before))
            for cotangent, after, before in zip(cotangents, ahead, behind, strict=True)
        ]
        slopes.append(sum(differences) / (2 * _STEP))
    return slopes


def _product(left: NDArray[Any], right: NDArray[Any]) -> float:
    """The scalar product of two arrays as vectors of real numbers."""
    conjugated = np.conj(left) if np.iscomplexobj(left) else left
    # Without a BLAS, whose threads would still wait actively when the case is timed.
    return float(np.einsum("i,i->", np.ravel(conjugated), np.ravel(right)).real)


def _wide(numbers: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(numbers, dtype=np.result_type(numbers, np.float64))
