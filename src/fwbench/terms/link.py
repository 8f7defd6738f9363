"""What joins replicas: the memory of their machine, or links of a given rate and delay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from fwbench.errors import UsageError
from fwbench.terms.quantities import BITS_PER_S, SECONDS, quantity, written

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
        """What it carries in each direction."""
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
