"""The values of the toggles of replicas: how they agree, their network, and a straggler."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

from fwbench.errors import UsageError

#: The strategy of replicas that agree by an all-reduce among themselves.
ALLREDUCE = "allreduce"

#: The strategies of parameter servers.
WITH_SERVERS = ("ps_sync", "ps_async")

#: Strategies in which workers do not wait for each other: they compute gradients from other weights
#: than one worker would, so their work differs from one worker's.
ASYNCHRONOUS = ("ps_async",)

#: The default network: replicas on one machine.
LOOPBACK = "loopback"

#: The network in records of machines that a file of places lists, or MPI or Ray knows.
REAL = "real"

#: The value of the toggle ``straggler`` if no replica is late.
NO_STRAGGLER = "none"

_LEAST_BITS_PER_S, _MOST_BITS_PER_S = 100_000, 100 * 10**9
_LONGEST_LINK_DELAY_S = 1.0
_LONGEST_STRAGGLER_DELAY_S = 10.0

_BITS_PER_S: Mapping[str, int] = {"gbit": 10**9, "mbit": 10**6, "kbit": 10**3}
_SECONDS: Mapping[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-z]+)")


def _read(text: str, units: Mapping[str, float]) -> float | None:
    """A number with one of these units (the factor of each); None for any other text."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        return None
    return float(match[1]) * units[match[2]]


def _written(value: float, units: Mapping[str, float]) -> str:
    """A quantity in the largest unit of which it is at least 1, or else in the smallest."""
    by_size = sorted(units.items(), key=lambda unit: -unit[1])
    name, factor = next((unit for unit in by_size if value >= unit[1]), by_size[-1])
    return f"{value / factor:.12g}{name}"


@dataclass(frozen=True)
class Link:
    """The link of one machine to a switch."""

    #: In each direction.
    rate_bits_per_s: int
    #: From one machine to another, in addition to the transmission.
    delay_s: float = 0.0

    @classmethod
    def parse(cls, text: str) -> Self:
        """The link that a text stands for: ``100mbit``, or ``1gbit+0.5ms`` with a delay.

        Raises:
            UsageError: the text is something else, or out of range.
        """
        rate_text, plus, delay_text = text.partition("+")
        rate = _read(rate_text, _BITS_PER_S)
        delay_s = _read(delay_text, _SECONDS) if plus else 0.0
        if rate is None or delay_s is None:
            raise UsageError(
                f"network {text!r} is neither {LOOPBACK} nor a rate; give 100mbit, or 1gbit+0.5ms "
                f"for a rate and a delay (units: {', '.join((*_BITS_PER_S, *_SECONDS))})"
            )
        if not _LEAST_BITS_PER_S <= rate <= _MOST_BITS_PER_S:
            raise UsageError(
                f"network {text!r}: its rate is not between "
                f"{_written(_LEAST_BITS_PER_S, _BITS_PER_S)} and "
                f"{_written(_MOST_BITS_PER_S, _BITS_PER_S)}; give 100mbit, for instance"
            )
        if plus and not 0.0 < delay_s <= _LONGEST_LINK_DELAY_S:
            raise UsageError(
                f"network {text!r}: its delay is not between 0 and "
                f"{_written(_LONGEST_LINK_DELAY_S, _SECONDS)}; give 0.5ms, for instance, or leave "
                f"out +{delay_text}"
            )
        return cls(round(rate), delay_s)

    def __str__(self) -> str:
        """The shortest text that :meth:`parse` reads as this."""
        rate = _written(self.rate_bits_per_s, _BITS_PER_S)
        return f"{rate}+{_written(self.delay_s, _SECONDS)}" if self.delay_s else rate

    @property
    def bytes_per_s(self) -> float:
        """The rate in each direction."""
        return self.rate_bits_per_s / 8


def link_of(name: str) -> Link | None:
    """The link of each replica in a network; None for replicas joined by memory."""
    return None if name == LOOPBACK else Link.parse(name)


@dataclass(frozen=True)
class Straggler:
    """A replica that is late in every step."""

    #: Its number, from 0.
    rank: int
    #: How long it sleeps at the beginning of each step.
    delay_s: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """The straggler that a text stands for: ``1@20ms``.

        Raises:
            UsageError: the text is something else, or out of range.
        """
        rank, _, delay = text.partition("@")
        delay_s = _read(delay, _SECONDS)
        if not rank.isdecimal() or not 0.0 < (delay_s or 0.0) <= _LONGEST_STRAGGLER_DELAY_S:
            raise UsageError(
                f"straggler {text!r} is neither {NO_STRAGGLER} nor a worker and a time of at most "
                f"{_written(_LONGEST_STRAGGLER_DELAY_S, _SECONDS)}; give 1@20ms for 20 ms in each "
                "step of worker 1"
            )
        return cls(int(rank), delay_s or 0.0)

    def __str__(self) -> str:
        """The shortest text that :meth:`parse` reads as this."""
        return f"{self.rank}@{_written(self.delay_s, _SECONDS)}"


def straggler_of(name: str) -> Straggler | None:
    """The replica that is late; None if none is."""
    return None if name == NO_STRAGGLER else Straggler.parse(name)


def _canonical(default: str, parse: Callable[[str], object], text: str) -> str:
    """The value in case ids: the same for all texts that mean the same."""
    given = text.strip().lower()
    return given if given == default else str(parse(given))


network = partial(_canonical, LOOPBACK, Link.parse)
straggler = partial(_canonical, NO_STRAGGLER, Straggler.parse)


class ValueFormat(NamedTuple):
    """A format of toggles' values that are neither names nor whole numbers."""

    #: The value that a text stands for; raises a UsageError for any other text.
    read: Callable[[str], str]
    #: For messages.
    examples: str
    metavar: str


VALUE_FORMATS: Mapping[str, ValueFormat] = {
    "network": ValueFormat(network, f"{LOOPBACK}|100mbit|1gbit+0.5ms", "NAMES"),
    "straggler": ValueFormat(straggler, f"{NO_STRAGGLER}|1@20ms", "RANKS"),
}
