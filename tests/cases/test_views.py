"""Whether a result is a view is measured: of inputs, of the cotangent, in both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation


def measured(case: Any) -> dict[str, Any]:
    """What the record of a case says after it has been measured."""
    case.measure()
    facts: dict[str, Any] = case.benchmark.extra_info["fwbench"]
    return facts


@pytest.mark.parametrize(
    ("value", "addressable", "view"),
    [
        (lambda x: x, True, True),
        (lambda x: x.reshape(2, 2), True, True),
        (np.copy, True, False),
        (lambda x: x, False, None),
    ],
    ids=["the input itself", "a view of it", "a copy", "cannot be told"],
)
def test_a_view_is_told_from_a_copy(
    value: Callable[..., Any], addressable: bool, view: bool | None
) -> None:
    """The record says whether the result is a view of an input, where that can be told."""
    of = operation(value, reference=value)
    facts = measured(case_of(cell(of), FakeFramework(addressable=addressable)))
    assert facts["result_is_view"] is view


@pytest.mark.parametrize(
    ("value", "gradient", "addressable", "view"),
    [
        (lambda x: 2.0 * x, lambda g, x: [2.0 * g], True, False),
        (lambda x: x, lambda g, x: [g.copy()], True, True),
        (lambda x: x.copy(), lambda g, x: [g], True, True),
        (lambda x: x.copy(), lambda g, x: [g[::-1][::-1]], True, True),
        (lambda x: x.copy(), lambda g, x: [g.copy()], False, None),
    ],
    ids=["copies", "result", "gradient", "view of the cotangent", "cannot be told"],
)
def test_a_view_is_told_from_a_copy_in_backward(
    value: Callable[..., Any], gradient: Callable[..., Any], addressable: bool, view: bool | None
) -> None:
    """The result and every gradient are compared with the inputs and the cotangent."""
    of = operation(value, gradient, reference=value)
    framework = FakeFramework(addressable=addressable)
    facts = measured(case_of(cell(of, direction="backward"), framework))
    assert facts["result_is_view"] is view


def test_a_view_from_the_second_call_on_is_a_view() -> None:
    """What was timed counts: one call that copies makes no copies of the others."""
    copies = iter([True])
    of = operation(lambda x: x.copy() if next(copies, False) else x, reference=np.copy)
    assert measured(case_of(cell(of), FakeFramework()))["result_is_view"] is True
