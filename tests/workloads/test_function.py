"""Functions without a reference: names, inputs, sizes, and what cannot be declared."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import fwbench
from fwbench.errors import DeclarationError, UsageError
from fwbench.terms.presets import Sizes
from fwbench.workloads import relu
from fwbench.workloads.function import Function, check_names
from fwbench.workloads.input import Input
from support.fakes import manifest


def halve(x: Any, out: Any = None) -> Any:
    return np.multiply(0.5, x, out=out)


def _declared(f: Any = halve, **changes: Any) -> Function:
    return fwbench.function(f, **{"inputs": Input("batch"), "sizes": (4, 8), **changes})


def test_a_function_is_an_operation_with_itself_as_the_reference() -> None:
    declared = _declared()
    assert (declared.name, declared.reference, declared.directions) == (
        "halve",
        halve,
        ("forward",),
    )
    assert declared.implementations["numpy"](np) is halve
    assert _declared(partial(halve, out=None)).name == "halve"
    assert _declared(framework="torch").implementations.keys() == {"torch"}
    assert [*_declared({"torch": halve, "numpy": abs}).implementations] == ["torch", "numpy"]


def test_executions_other_than_the_plain_one_are_asked_for() -> None:
    """Nobody has said that a compiler understands the function."""
    known = manifest()
    assert _declared().executions(known) == ("eager",)
    assert [*_declared().executions_to_name(known)] == [*known.executions]
    assert "no reference" in _declared().zeros_gap


def _yielded(size: int, rng: np.random.Generator) -> Iterator[Any]:
    yield rng.standard_normal(size)
    yield rng.integers(3, size=size)


@pytest.mark.parametrize(
    ("inputs", "shapes"),
    [
        (Input("batch", 2), [(4, 2)]),
        ((Input("batch"), np.ones(3)), [(4,), (3,)]),
        (lambda size, rng: rng.standard_normal(size), [(4,)]),
        (lambda size, rng: [np.ones(size), np.zeros(2)], [(4,), (2,)]),
        (_yielded, [(4,), (4,)]),
    ],
)
def test_inputs_are_declared_drawn_or_yielded(inputs: Any, shapes: list[Any]) -> None:
    declared = _declared(inputs=inputs)
    operands = declared.operands(4)
    assert [x.shape for x in operands] == shapes
    changed = declared.changed_operands(4, 1, operands)
    assert [x.shape for x in changed] == shapes
    assert not all(map(np.array_equal, operands, changed))


def test_arrays_have_their_own_size_and_dtype() -> None:
    declared = _declared(inputs=[np.ones((2, 3)), np.ones(4)], sizes=None)
    assert (declared.by_preset.quick, declared.dtypes) == ((6,), ("float64",))
    assert _declared(inputs=(), sizes=None).by_preset.quick == (1,)
    numbers = _declared(inputs=np.arange(4), sizes=None)
    assert numbers.default_dtype == "float32"
    (changed,) = numbers.changed_operands(4, 1, numbers.operands(4))
    assert changed.tolist() == [3, 0, 1, 2]
    assert _declared(sizes=7).by_preset == Sizes((7,))


@pytest.mark.parametrize(("changes", "positions"), [("out", (1,)), (["x", 1], (0, 1)), (0, (0,))])
def test_changed_arguments_are_named_or_numbered(changes: Any, positions: Any) -> None:
    assert _declared(changes=changes).updates == positions


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"f": 3}, "was given 3, which cannot be called; give a function"),
        ({"f": {}}, r"was given \{\}, which cannot be called"),
        ({"f": {"numpy": halve, "torch": "g"}}, "was given 'g', which cannot be called"),
        ({"f": {"numpy": halve}, "framework": "torch"}, "and framework='torch' too; leave it out"),
        ({"f": relu}, "relu is an operation or a function of fwbench's already"),
        ({"f": lambda x: x}, 'has no name .* name="normalise"'),
        ({"name": "a-b"}, "named 'a-b'.* use letters, digits and underscores"),
        ({"sizes": None}, r"halve has no sizes; .* sizes=\(1_000, 1_000_000\)"),
        ({"sizes": (0,)}, "positive whole numbers"),
        ({"inputs": np.ones(3)}, r"are arrays, and sizes= is given too; leave it out"),
        ({"inputs": [3.0]}, "has a float; give an Input or a NumPy array .* functools.partial"),
        ({"changes": "y"}, "declared to change 'y'; its arguments are: x, out"),
        ({"f": max, "changes": "y"}, "its arguments are: not known; give positions"),
        ({"compare": 0.1}, "compare= of halve is 0.1; give a callable of two results"),
        ({"tolerence": 2.0}, "does not know 'tolerence'; what else it takes .* tolerance"),
    ],
)
def test_what_cannot_be_declared(given: dict[str, Any], said: str) -> None:
    """Each refusal is one sentence, and says what to do."""
    with pytest.raises(DeclarationError, match=said) as caught:
        _declared(**given)
    assert "\n" not in str(caught.value)


def test_names_are_those_of_one_function() -> None:
    known: dict[str, Function] = {}
    first = _declared()
    check_names([first, relu], known)
    check_names([first], known)
    with pytest.raises(UsageError, match=r'name of another function here.*name="my_halve"'):
        check_names([_declared()], known)
    with pytest.raises(UsageError, match="name of a workload of fwbench's"):
        check_names([_declared(name="relu")], known)
