"""Fourier transforms against their sums, without NumPy's own."""

import cmath
import math

import numpy as np
import pytest

from fwbench.workloads import FFT, Operation
from support.operations import computed, for_each


def dft(x: list[complex]) -> list[complex]:
    return [
        sum(v * cmath.exp(-2j * math.pi * i * k / len(x)) for i, v in enumerate(x))
        for k in range(len(x))
    ]


@pytest.mark.parametrize("text", ["1x2", "2x6", "3x7"])
def test_transforms_of_lines(text: str) -> None:
    """Even and odd numbers of points; of real numbers the half that is not its conjugate."""
    (x,), result = computed("fft", text)
    assert np.iscomplexobj(x)
    np.testing.assert_allclose(result, [dft(row) for row in x.tolist()])
    (x,), result = computed("rfft", text)
    half = x.shape[1] // 2 + 1
    expected = [dft(row)[:half] for row in x.tolist()]
    np.testing.assert_allclose(result, expected, atol=1e-12)


def test_transforms_of_images() -> None:
    """Along rows, then along columns, and not along the batch."""
    (x,), result = computed("fft2", "2x3x4")
    for image, transformed in zip(x.tolist(), result, strict=True):
        columns = zip(*map(dft, image), strict=True)
        expected = [*zip(*(dft([*column]) for column in columns), strict=True)]
        np.testing.assert_allclose(transformed, expected)


@for_each(FFT)
def test_transforms_have_the_dtypes_of_their_operands(operation: Operation) -> None:
    """Real or complex, and none so narrow that there are no complex numbers of it."""
    size = operation.smallest
    name = "complex64" if np.iscomplexobj(operation.operands(size)[0]) else "float32"
    assert operation.default_dtype == name
    wider = {"complex64": "complex128", "float32": "float64"}[name]
    assert operation.dtypes == (name, wider)
