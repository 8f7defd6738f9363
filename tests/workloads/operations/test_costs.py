"""Costs of operations, and terms of their elements, counted by hand at small sizes."""

from fwbench.workloads.workload import Cost
from support.operations import named, sized
from support.tables import tabled


@tabled
def test_costs(
    name: str, size: str | int, forward: tuple[float, ...], backward: tuple[float, ...] | None
) -> None:
    operation = named(name)
    at = sized(operation, size)
    assert operation.cost_of("forward", at) == Cost(*forward)
    assert operation.cost_of("backward", at) == (backward and Cost(*backward))


@tabled
def test_terms_are_what_an_element_adds_up(name: str, size: str | int, terms: int) -> None:
    """Sums of many terms say so, so that their rounding is allowed for."""
    operation = named(name)
    assert operation.terms(sized(operation, size)) == terms
