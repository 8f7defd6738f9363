"""Fourier transforms against their sums, without NumPy's own."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from fwbench.terms.presets import Shape
from fwbench.workloads import FFT, Operation
from fwbench.workloads.workload import Cost

BY_NAME = {of.name: of for of in FFT}


def shape(name: str, text: str) -> Shape:
    form = BY_NAME[name].form
    assert form is not None
    return form.read(text)


def dft(x: list[complex]) -> list[complex]:
    return [
        sum(v * cmath.exp(-2j * math.pi * i * k / len(x)) for i, v in enumerate(x))
        for k in range(len(x))
    ]


@pytest.mark.parametrize("text", ["1x2", "2x6", "3x7"])
def test_transforms_of_lines(text: str) -> None:
    """Even and odd numbers of points; of real numbers the half that is not its conjugate."""
    (x,) = BY_NAME["fft"].operands(shape("fft", text))
    assert np.iscomplexobj(x)
    np.testing.assert_allclose(BY_NAME["fft"].reference(x), [dft(row) for row in x.tolist()])
    (x,) = BY_NAME["rfft"].operands(shape("rfft", text))
    half = x.shape[1] // 2 + 1
    expected = [dft(row)[:half] for row in x.tolist()]
    np.testing.assert_allclose(BY_NAME["rfft"].reference(x), expected, atol=1e-12)


def test_transforms_of_images() -> None:
    """Along rows, then along columns, and not along the batch."""
    (x,) = BY_NAME["fft2"].operands(shape("fft2", "2x3x4"))
    for image, found in zip(x.tolist(), BY_NAME["fft2"].reference(x), strict=True):
        columns = zip(*map(dft, image), strict=True)
        expected = [*zip(*(dft([*column]) for column in columns), strict=True)]
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("name", "text", "cost"),
    [
        # 5 p log2 p for p points; a complex number is two elements, read and written.
        ("fft", "3x8", Cost(3 * 5 * 8 * 3, 96)),
        # Half of it; 8 real numbers become 5 complex ones.
        ("rfft", "3x8", Cost(3 * 5 * 4 * 3, 3 * (8 + 10))),
        ("fft2", "2x4x8", Cost(2 * 5 * 32 * 5, 256)),
    ],
)
def test_costs(name: str, text: str, cost: Cost) -> None:
    """Counted as by FFTW; the gradient is one more transform."""
    of, size = BY_NAME[name], shape(name, text)
    assert of.cost_of("forward", size) == cost
    assert of.cost_of("backward", size) == Cost(2 * cost.flops, 2 * cost.elements)


@pytest.mark.parametrize("of", FFT, ids=lambda of: str(of.name))
def test_transforms_have_the_dtypes_of_their_operands(of: Operation) -> None:
    """Real or complex, and none so narrow that there are no complex numbers of it."""
    size = of.smallest
    name = "complex64" if np.iscomplexobj(of.operands(size)[0]) else "float32"
    assert of.default_dtype == name
    assert (
        of.dtypes
        == {
            "complex64": ("complex64", "complex128"),
            "float32": ("float32", "float64"),
        }[name]
    )
