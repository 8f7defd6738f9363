"""Units of what is recorded, and quantities for people to read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_HUNDRED = 99.95  # what rounds to 100
_FOUR = 999.95

_NEXT_UNIT = 1000

#: Shorter times are not given in whole seconds.
_SHORT_S = 9.5


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, and its plural if that is not an s: ``1 case``, ``2,000 cases``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def time(seconds: float, digits: int = 3) -> str:
    """Significant digits in the largest unit that leaves something before the point."""
    if seconds == 0:
        return "0 s"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        # What would be 1000 of the next unit is 1 of this.
        if float(_at_least(digits, 1e3 * factor * seconds)) >= _NEXT_UNIT:
            return f"{_at_least(digits, max(1.0, factor * seconds))} {unit}"
    return f"{_at_least(digits, seconds * 1e9)} ns"


def signed(seconds: float) -> str:
    """A difference of times with its sign: ``+1.2 us``."""
    return f"{'-' if seconds < 0 else '+'}{time(abs(seconds))}"


def _at_least(digits: int, number: float) -> str:
    """At least these significant digits, never with an exponent."""
    whole = 10 ** (digits - 1) - 0.05  # what rounds to as many digits before the point
    return f"{number:.0f}" if number >= whole else f"{number:.{digits}g}"


def duration(seconds: float) -> str:
    """A waiting time in its two largest units: ``1 h 5 min``, ``4 min 12 s``, ``0.1 s``."""
    if seconds < _SHORT_S:
        return f"{seconds:.2g} s"
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [(hours, "h"), (minutes, "min"), (rest_s, "s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{number} {unit}" for number, unit in parts[:2] if number)


def times(ratio: float) -> str:
    """A ratio of times with three digits, never with an exponent: ``1.25x``, ``1,234x``."""
    return f"{ratio:,.0f}x" if ratio >= _HUNDRED else f"{ratio:.3g}x"


def four_digits(number: float) -> str:
    """At least four significant digits, never with an exponent: ``37.25``, ``712,300``."""
    return f"{number:,.0f}" if number >= _FOUR else f"{number:.4g}"


def gibibytes(size_bytes: float) -> str:
    """Memory with two digits behind the point: ``1.50 GiB``."""
    return f"{size_bytes / 2**30:.2f} GiB"


def kibibytes(size_bytes: float) -> str:
    """The size of a file in whole KiB: ``237 KiB``."""
    return f"{size_bytes / 2**10:,.0f} KiB"


def mebibytes(size_bytes: float) -> str:
    """Memory in whole MiB: ``1,536 MiB``."""
    return f"{size_bytes / 2**20:,.0f} MiB"


def amount(size_bytes: float) -> str:
    """Memory of any size, in the largest unit that it has one of: ``1.5 MiB``, ``640 B``."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{_at_least(3, size_bytes / factor)} {unit}"
    return f"{size_bytes:.0f} B"


def percent(share: float) -> str:
    """A share as a percentage with two digits behind the point: ``98.25%``."""
    return f"{share:.2%}"


@dataclass(frozen=True)
class Unit:
    """Unit of a recorded quantity."""

    #: As the documentation shows it; empty for names, switches and the like.
    name: str
    #: The quantity for people to read.
    show: Callable[[Any], str] = str
    #: The smallest size that a quantity other than 0 can have.
    least: float = 0.0
    #: The largest size that it can have.
    most: float = 1e30

    def can_be(self, quantity: float) -> bool:
        """True if there can be such a quantity; never of NaN, and never of an infinite one."""
        return quantity == 0 or self.least <= abs(quantity) <= self.most

    @property
    def bounds(self) -> str:
        """Limits of a quantity, in words."""
        start = f"from {self.least:g} " if self.least else ""
        return f"{start}up to {self.most:g} {self.name}".rstrip()


# What is beyond these was not measured, but is damage: a time shorter than any clock can tell, or
# more seconds than even a --benchmark-timer that counts instructions has.
NONE = Unit("")
SECONDS = Unit("s", time, least=1e-12, most=1e15)
BYTES = Unit("bytes", gibibytes, most=1e18)
SHARE = Unit("share", percent, most=1e9)
COUNT = Unit("count", "{:,}".format, most=1e18)
CPUS = Unit("CPUs", "{:.2f}".format, most=1e6)
NATS = Unit("nats", "{:.2g}".format, most=1e39)  # float32 has such losses
FLOPS = Unit("floating-point operations", four_digits, most=1e21)
PER_SECOND = Unit("1/s", "{:,.0f}".format, most=1e21)
HERTZ = Unit("Hz", lambda clock_hz: f"{clock_hz / 1e6:,.0f} MHz", most=1e12)
JOULES = Unit("J", "{:.3g} J".format, most=1e15)
WATTS = Unit("W", "{:,.0f} W".format, most=1e6)
CELSIUS = Unit("degrees Celsius", "{:.0f} degrees Celsius".format, most=1e4)

#: All of them, as the documentation lists them.
ALL = (
    *(SECONDS, BYTES, SHARE, COUNT, CPUS, NATS, FLOPS, PER_SECOND),
    *(HERTZ, JOULES, WATTS, CELSIUS),
)
