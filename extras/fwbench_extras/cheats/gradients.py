"""Liars about gradients: another one, a part of them, or without the forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, cast

import numpy as np

from fwbench.errors import FwbenchError, WrongGradient, WrongResult
from fwbench.frameworks.contract import BoundCall
from fwbench.testing.fake import Differentiable
from fwbench.workloads.operation import Implementation
from fwbench_extras.cheats.honest import Compute
from fwbench_extras.cheats.liar import Liar

_SLOPE = "the gradient's slope along a random direction is not the central difference"


class _Backward(Liar):
    """A liar that is honest forward."""

    caught_by: ClassVar[type[FwbenchError] | None] = WrongGradient
    why = _SLOPE
    directions: ClassVar = ("backward",)


class GradientsAlone(_Backward):
    """Returns the gradients without the result, and so need not compute it."""

    mistake = "a compiler that leaves out the forward product: its result is not asked for"
    why = "the result is to be returned beside the gradients"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The second of two things."""
        return lambda: compute(*inputs)[1]


class ForwardOnce(_Backward):
    """Computes the result when it is bound, and the gradients in every call."""

    mistake = "activations that are kept from one call to the next"
    caught_by = WrongResult
    why = "the call on changed inputs has the right gradients beside the old result"

    def backward(
        self,
        implementation: Implementation,
        inputs: Sequence[Any],
        variables: Sequence[int],
        cotangent: Any,
        execution: str,
    ) -> BoundCall:
        """An operation whose value is known, with its gradient."""
        honest = cast("Differentiable", implementation(np))
        value = honest(*inputs)
        known = Differentiable(lambda *_: value, honest.gradient)
        return super().backward(lambda np: known, inputs, variables, cotangent, execution)


class WrongSign(_Backward):
    """Returns the gradient of the negative."""

    mistake = "ascent for descent"

    def gradients(self, gradients: list[Any]) -> list[Any]:
        """Each with the other sign."""
        return [-gradient for gradient in gradients]


class MeanForSum(_Backward):
    """Divides gradients by the number of rows."""

    mistake = "a loss reduced by its mean in one framework and by its sum in the other"

    def gradients(self, gradients: list[Any]) -> list[Any]:
        """Each as if the result had been averaged over its rows."""
        return [gradient / len(gradient) for gradient in gradients]


class DetachedInput(_Backward):
    """Returns zeros for the gradient of the last input, and saves that product."""

    mistake = "an input that does not require a gradient, or was detached"

    def gradients(self, gradients: list[Any]) -> list[Any]:
        """The gradients, the last one replaced by zeros."""
        return [*gradients[:-1], np.zeros_like(gradients[-1])]


class SwappedGradients(_Backward):
    """Returns the gradients in the order of the inputs turned round."""

    mistake = "gradients that are matched with parameters by their place in a list"

    def gradients(self, gradients: list[Any]) -> list[Any]:
        """The gradients in the order turned round."""
        return gradients[::-1]


class AccumulatedGradient(_Backward):
    """Adds every gradient to those of the calls before."""

    mistake = "gradients that are not set to zero between steps"
    why = "the last timed call's gradient is many times that of the first"

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """With sums that begin here."""
        self._sums: list[Any] = []
        return super().bound(compute, inputs)

    def gradients(self, gradients: list[Any]) -> list[Any]:
        """The sums of the gradients of all calls so far."""
        before = self._sums or [0.0] * len(gradients)
        self._sums = [sum_ + gradient for sum_, gradient in zip(before, gradients, strict=True)]
        return self._sums


LIARS = (
    GradientsAlone,
    ForwardOnce,
    WrongSign,
    MeanForSum,
    DetachedInput,
    SwappedGradients,
    AccumulatedGradient,
)
