"""Rates and times as people write them: ``100mbit``, ``0.5ms``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from fwbench.errors import UsageError

BITS_PER_S: Mapping[str, int] = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3}
SECONDS: Mapping[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)")


def quantity(text: str, units: Mapping[str, float]) -> float | None:
    """A number with one of these units; None for any other text.

    Args:
        text: as it was given.
        units: the factor of each.
    """
    found = _QUANTITY.fullmatch(text)
    if found is None or found[2] not in units:
        return None
    return float(found[1]) * units[found[2]]


def written(value: float, units: Mapping[str, float]) -> str:
    """A quantity in the largest unit of which it is at least 1, or else in the smallest.

    Args:
        value: in the unit whose factor is 1.
        units: the factor of each.
    """
    by_size = sorted(units.items(), key=lambda unit: -unit[1])
    name, factor = next((unit for unit in by_size if value >= unit[1]), by_size[-1])
    return f"{value / factor:.12g}{name}"


#: By an all-reduce among themselves.
ALLREDUCE = "allreduce"

#: By servers that have the parameters.
WITH_SERVERS = ("ps_sync", "ps_async")

#: Those in which workers do not wait for each other: they compute gradients from other weights than
#: one worker would, so their work equals nobody's.
ASYNCHRONOUS = ("ps_async",)


#: The network of replicas on one machine when nothing else is asked for.
LOOPBACK = "loopback"

#: What records call whatever lies between machines that a file of places names, or MPI knows.
REAL = "real"

_LEAST_BITS_PER_S, _MOST_BITS_PER_S = 100_000, 100 * 10**9
_LONGEST_DELAY_S = 1.0


@dataclass(frozen=True)
class Link:
    """The link of one machine to a switch.

    Attributes:
        rate_bits_per_s: what it carries in each direction.
        delay_s: how long everything takes from one machine to another, in addition.
    """

    rate_bits_per_s: int
    delay_s: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """The link that a text stands for: ``100mbit``, or ``1gbit+0.5ms`` with a delay.

        Raises:
            UsageError: the text is something else, or out of range.
        """
        rate_text, plus, delay_text = text.partition("+")
        rate = quantity(rate_text, BITS_PER_S)
        delay_s = quantity(delay_text, SECONDS) if plus else 0.0
        if rate is None or delay_s is None:
            raise UsageError(
                f"network {text!r} is neither {LOOPBACK} nor a rate; give 100mbit, or 1gbit+0.5ms "
                f"for a rate and a delay (units: {', '.join((*BITS_PER_S, *SECONDS))})"
            )
        if not _LEAST_BITS_PER_S <= rate <= _MOST_BITS_PER_S:
            raise UsageError(
                f"network {text!r}: its rate is not between "
                f"{written(_LEAST_BITS_PER_S, BITS_PER_S)} and "
                f"{written(_MOST_BITS_PER_S, BITS_PER_S)}; give 100mbit, for instance"
            )
        if plus and not 0.0 < delay_s <= _LONGEST_DELAY_S:
            raise UsageError(
                f"network {text!r}: its delay is not between 0 and "
                f"{written(_LONGEST_DELAY_S, SECONDS)}; give 0.5ms, for instance, or leave out "
                f"+{delay_text}"
            )
        return cls(round(rate), delay_s)

    def __str__(self) -> str:
        """The shortest text that :meth:`parse` reads as this."""
        rate = written(self.rate_bits_per_s, BITS_PER_S)
        return f"{rate}+{written(self.delay_s, SECONDS)}" if self.delay_s else rate

    @property
    def bytes_per_s(self) -> float:
        """Rate in each direction."""
        return self.rate_bits_per_s / 8


def network(text: str) -> str:
    """The name of a network as case ids have it: one name for whatever text stands for the same.

    Raises:
        UsageError: the text is not a network's.
    """
    given = text.strip().lower()
    return given if given == LOOPBACK else str(Link.parse(given))


def link_of(name: str) -> Link | None:
    """The link of each replica in a network; None where memory joins them.

    Args:
        name: of the network, as :func:`network` returned it.
    """
    return None if name == LOOPBACK else Link.parse(name)


#: The value of the toggle where no replica is late.
NO_STRAGGLER = "none"

_LONGEST_S = 10.0


@dataclass(frozen=True)
class Straggler:
    """Which replica is late.

    Attributes:
        rank: its number, from 0.
        delay_s: how long it sleeps at the beginning of each step.
    """

    rank: int
    delay_s: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """The straggler that a text stands for: ``1@20ms``.

        Raises:
            UsageError: the text is something else, or out of range.
        """
        rank, _, delay = text.partition("@")
        delay_s = quantity(delay, SECONDS)
        if not rank.isdecimal() or delay_s is None or not 0.0 < delay_s <= _LONGEST_S:
            raise UsageError(
                f"straggler {text!r} is neither {NO_STRAGGLER} nor a worker and a time of at most "
                f"{written(_LONGEST_S, SECONDS)}; give 1@20ms for 20 ms in each step of worker 1"
            )
        return cls(int(rank), delay_s)

    def __str__(self) -> str:
        """The shortest text that :meth:`parse` reads as this."""
        return f"{self.rank}@{written(self.delay_s, SECONDS)}"


def straggler(text: str) -> str:
    """The straggler as case ids have it.

    Raises:
        UsageError: the text is not a straggler's.
    """
    given = text.strip().lower()
    return given if given == NO_STRAGGLER else str(Straggler.parse(given))


def straggler_of(name: str) -> Straggler | None:
    """Who is late; None for nobody.

    Args:
        name: as :func:`straggler` returned it.
    """
    return None if name == NO_STRAGGLER else Straggler.parse(name)


class ValueFormat(NamedTuple):
    """A form of values.

    Attributes:
        read: the value that a text stands for; raises a UsageError for any other text.
        examples: for messages.
    """

    read: Callable[[str], str]
    examples: str


VALUE_FORMATS: Mapping[str, ValueFormat] = {
    "network": ValueFormat(network, f"{LOOPBACK}|100mbit|1gbit+0.5ms"),
    "straggler": ValueFormat(straggler, f"{NO_STRAGGLER}|1@20ms"),
}
