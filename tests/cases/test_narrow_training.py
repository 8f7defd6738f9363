"""Products in TF32 where float32 was asked for show in the first losses of a training.

TF32 keeps 10 bits of mantissa of both factors of a product, and adds up in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fwbench.cases.verify import LOSS_TOLERANCES
from fwbench.errors import WrongTraining
from fwbench.frameworks.learner import Job
from fwbench.workloads import cifar_cnn, lenet
from fwbench.workloads.models import gradients, layers, reference
from fwbench.workloads.training import check_rows
from support.fake_learner import Trainer, case

#: Bits of mantissa behind the first.
TF32, FLOAT32 = 10, 23

CONVOLUTIONS = (layers.Conv,)
PRODUCTS = (layers.Conv, layers.Dense)


def rounded(values: NDArray[Any], bits: int) -> NDArray[Any]:
    """Numbers with so many bits of mantissa behind the first."""
    mantissa, exponent = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, bits + 1)), exponent - bits - 1))


def narrow(forward: Callable[..., Any], bits: int, layer: Any, parameters: Any, x: Any) -> Any:
    """A layer whose products, forward and backward, have factors of so many bits."""
    kernel, *bias = parameters
    result, back = forward(layer, [rounded(kernel, bits), *bias], rounded(x, bits))

    def backward(gradient: NDArray[Any]) -> Any:
        of_inputs, (of_kernel, *_) = back(rounded(gradient, bits))
        _, (_, *of_bias) = back(gradient)  # a sum, and no product
        return of_inputs, [of_kernel, *of_bias]

    return result, backward


def as_computed(job: Job) -> Sequence[float]:
    """The first losses, computed anew: stored are those in float64."""
    return reference.losses(job.training, check_rows(job.batch), job.training.checked_steps)


@pytest.fixture
def products(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let layers of some kinds compute with so many bits."""
    kinds, bits = request.param
    for kind in kinds:
        of_kind = gradients._FORWARD[kind]
        monkeypatch.setitem(gradients._FORWARD, kind, partial(narrow, of_kind, bits))


@pytest.mark.parametrize(
    "of",
    [lenet.step, pytest.param(cifar_cnn.step, marks=pytest.mark.nightly)],
    ids=lambda of: str(of.name),
)
@pytest.mark.parametrize(
    ("products", "is_right"),
    [((PRODUCTS, FLOAT32), True), ((PRODUCTS, TF32), False), ((CONVOLUTIONS, TF32), False)],
    ids=["float32", "TF32", "convolutions in TF32"],
    indirect=["products"],
)
@pytest.mark.parametrize("disabled", [True, False], ids=["untimed", "timed"])
@pytest.mark.usefixtures("load", "products")
def test_a_training_in_tf32_is_refused(of: Any, is_right: bool, disabled: bool) -> None:
    """By its first three losses, as where nothing is timed, and by those of a timed case."""
    framework = Trainer(check_losses=as_computed)
    one = case(framework, of, disabled=disabled)
    if is_right:
        one.measure()
    else:
        with pytest.raises(WrongTraining, match=f"{LOSS_TOLERANCES['float32']:g} is allowed"):
            one.measure()
