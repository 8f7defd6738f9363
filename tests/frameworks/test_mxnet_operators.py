"""Operators of mx.np, for the arrays of mx.nd: against stand-ins, without MXNet."""

from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.frameworks.mxnet.kernels import NumPyCall, of_numpy


class Classic:
    """An array of mx.nd, or a symbol of mx.sym."""

    def __init__(self, value: float) -> None:
        self.value = value

    def as_np_ndarray(self) -> "Modern":
        return Modern(self.value)


class Modern(Classic):
    def as_nd_ndarray(self) -> Classic:
        return Classic(self.value)


def scaled(array: Modern, by: float = 2.0) -> Modern:
    """An operator, which refuses classic arrays as MXNet's do."""
    assert type(array) is Modern
    return Modern(by * array.value)


NAMESPACE = SimpleNamespace(np=SimpleNamespace(linalg=SimpleNamespace(scaled=scaled)))


def test_arrays_are_converted_there_and_back() -> None:
    """The operator gets those of mx.np with its keywords, the caller those of mx.nd."""
    call = NumPyCall("linalg.scaled", by=3.0)(NAMESPACE)
    result = call(Classic(5.0))
    assert type(result) is Classic
    assert result.value == 15.0


@pytest.mark.parametrize("kind", [list, tuple])
def test_several_results_are_converted(kind: Any) -> None:
    call = of_numpy(lambda x, y: kind([scaled(x), scaled(y)]))
    results = call(Classic(1.0), Classic(2.0))
    assert [(type(result), result.value) for result in results] == [(Classic, 2.0), (Classic, 4.0)]


def test_a_path_leads_below_np() -> None:
    """A version of MXNet without the operator has a gap that names the path."""
    assert NumPyCall("linalg.scaled").path == "np.linalg.scaled"
    assert NumPyCall("linalg.scaled").is_in(NAMESPACE)
    assert not NumPyCall("linalg.turned").is_in(NAMESPACE)
