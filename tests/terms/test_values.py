"""Networks and stragglers have one name each; what is none: tests/options/values.toml."""

import pytest

from fwbench.terms.replicas import Link, Straggler, link_of, network, straggler, straggler_of
from support.tables import tabled


@tabled
def test_a_network_has_one_name(text: str, name: str, link: tuple[float, ...] | None) -> None:
    """The same for all texts that mean it; the name is read as the same link."""
    assert network(text) == network(name) == name
    assert link_of(name) == (link and Link(*link))


def test_a_link_carries_bytes() -> None:
    assert Link.parse("100mbit").bytes_per_s == 12.5e6


@pytest.mark.parametrize(
    ("text", "name", "late"),
    [
        ("none", "none", None),
        ("1@20ms", "1@20ms", Straggler(1, 0.02)),
        (" 0@0.5S ", "0@500ms", Straggler(0, 0.5)),
    ],
)
def test_a_straggler_has_one_name(text: str, name: str, late: Straggler | None) -> None:
    assert straggler(text) == straggler(name) == name
    assert straggler_of(name) == late
