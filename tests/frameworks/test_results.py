"""Results of plain functions: what in them is waited for, and what is not."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from operator import methodcaller
from types import ModuleType
from typing import Any

import pytest

from fwbench.frameworks import results as results_module
from fwbench.frameworks.results import AwaitedArrays, AwaitedResults
from fwbench.terms.names import GROUP


class Later:
    """An array of a framework that computes asynchronously."""

    def __init__(self) -> None:
        self.exists = False

    def block_until_ready(self) -> None:
        """Wait for it."""
        self.exists = True


class Tree:
    """A container that only its framework can take apart."""

    def __init__(self, *children: Any) -> None:
        self.children = children


@dataclass
class Fields:
    """A container that anybody can take apart."""

    name: str
    value: Any


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> AwaitedResults:
    """Results of a process that has imported something in the place of JAX."""
    jax: Any = ModuleType("jax")
    jax.Array = Later
    jax.tree_util = ModuleType("jax.tree_util")
    jax.tree_util.tree_leaves = lambda x: [*x.children] if isinstance(x, Tree) else [x]
    monkeypatch.setitem(sys.modules, "jax", jax)
    made = AwaitedResults()
    made.look()
    return made


@pytest.mark.parametrize(
    "holding",
    [
        lambda x: x,
        lambda x: (1, x),
        lambda x: [[x]],
        lambda x: {"a": 1, "b": x},
        lambda x: Fields("a", x),
        lambda x: Tree(None, x),
        lambda x: {"all": [Fields("a", (Tree(x),))]},
    ],
    ids=["itself", "tuple", "lists", "dict", "dataclass", "pytree", "nested"],
)
def test_arrays_are_waited_for_wherever_they_are(
    results: AwaitedResults, holding: Callable[[Any], Any]
) -> None:
    first, second = Later(), Later()
    assert results.are_pending(holding(first))
    assert not first.exists
    for array in (first, second):
        results.wait(holding(array))
        assert array.exists


@pytest.mark.parametrize("value", [None, 1, "text", (), [1, {}], Fields("a", 1), Fields, object()])
def test_nothing_else_is(results: AwaitedResults, value: Any) -> None:
    assert not results.are_pending(value)
    results.wait(value)


def test_nothing_is_imported_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even an adapter's module, where its framework is not there."""
    for name in ("jax", "mxnet", "tensorflow", "torch"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = {*sys.modules}
    made = AwaitedResults()
    made.look()
    assert not made.are_pending([1.0])
    assert {*sys.modules} == before


def test_an_adapter_may_be_a_single_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is in no package that could say how its results are waited for."""
    single: Any = ModuleType("single")
    single.awaited = lambda: AwaitedArrays(Later, methodcaller("block_until_ready"))
    monkeypatch.setitem(sys.modules, "single", single)
    point = EntryPoint("single", "single:Single", GROUP)
    monkeypatch.setattr(results_module, "_points", lambda: {"single": point})
    made = AwaitedResults()
    made.look()
    assert made.are_pending(Later())
