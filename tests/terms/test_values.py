"""Networks and stragglers are read from texts, and one name stands for each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fwbench.errors import UsageError
from fwbench.terms.replicas import Link, Straggler, link_of, network, straggler, straggler_of


@pytest.mark.parametrize(
    ("text", "name", "link"),
    [
        ("loopback", "loopback", None),
        ("100mbit", "100mbit", Link(100_000_000)),
        (" 0.1GBit ", "100mbit", Link(100_000_000)),
        ("1gbit+0.5ms", "1gbit+500us", Link(1_000_000_000, 0.0005)),
        ("2500mbit+20ms", "2.5gbit+20ms", Link(2_500_000_000, 0.02)),
    ],
)
def test_a_network_has_one_name(text: str, name: str, link: Link | None) -> None:
    """The same for all texts that mean it; the name is read as the same link."""
    assert network(text) == network(name) == name
    assert link_of(name) == link


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


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (network, "0mbit", "network '0mbit': its rate is not between 100kbit and 100gbit"),
        (network, "1000gbit", "its rate is not between"),
        (network, "100", "neither loopback nor a rate; give 100mbit, or 1gbit.0.5ms"),
        (network, "-1mbit", "neither loopback nor a rate"),
        (network, "1e3mbit", "neither loopback nor a rate"),
        (network, "1gbit+", "neither loopback nor a rate"),
        (network, "1gbit+5", "neither loopback nor a rate"),
        (network, "", "neither loopback nor a rate"),
        (network, "1gbit+0ms", "its delay is not between 0 and 1s; .* leave out .0ms"),
        (network, "1gbit+2s", "its delay is not between 0 and 1s"),
        (straggler, "1", "neither none nor a worker and a time of at most 10s; give 1@20ms"),
        (straggler, "x@20ms", "neither none nor a worker"),
        (straggler, "1@20", "neither none nor a worker"),
        (straggler, "1@0ms", "neither none nor a worker"),
        (straggler, "1@11s", "neither none nor a worker"),
    ],
)
def test_other_texts_are_refused(read: Callable[[str], str], text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(text)
