"""MXNet's operators of ``mx.np``, for arrays and symbols of ``mx.nd`` and ``mx.sym``.

They are operators like others; only the classes of arrays differ, and an array is one or the other
by a call that shares its memory. So they need no switch of the whole process (``npx.set_np``),
which would change how all others see shapes. Not everything in ``mx.np`` is an operator: the names
in ``mx.np.fallback`` are NumPy's functions, which compute on the host, cannot be hybridized, and
would measure NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwbench.frameworks.table import Call


class NumPyCall(Call):
    """An operator of ``mx.np``: the path is below ``np``.

    Args:
        path: ``linalg.solve`` for ``mx.np.linalg.solve``.
        keywords: arguments that every call is given.
    """

    def __init__(self, path: str, **keywords: Any) -> None:
        super().__init__(f"np.{path}", **keywords)

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        """The operator, for the arrays of ``mx.nd`` or the symbols of ``mx.sym``.

        Raises:
            AttributeError: the namespace does not have it.
        """
        return of_numpy(super().__call__(namespace))


def of_numpy(operator: Callable[..., Any]) -> Callable[..., Any]:
    """An operator of ``mx.np`` for the arrays of ``mx.nd`` or the symbols of ``mx.sym``.

    Args:
        operator: for the arrays of ``mx.np`` or the symbols of ``mx.sym.np``.
    """

    def call(*operands: Any) -> Any:
        results = operator(*(operand.as_np_ndarray() for operand in operands))
        if isinstance(results, list | tuple):
            return [result.as_nd_ndarray() for result in results]
        return results.as_nd_ndarray()

    return call
