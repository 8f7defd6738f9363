"""Toggles: switches beside the execution that may change speed. A module of its own for options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fwbench.errors import UsageError, unknown


@dataclass(frozen=True)
class Toggle:
    """One switch.

    Attributes:
        name: as ``--fw-toggle`` takes it.
        values: what it can be; None for whole numbers.
        default: what it is when it is not asked for; empty for what the framework does by itself.
        process: whether it must be set before a framework is imported. The framework's file reads
            it from the environment (:func:`variable`); others are the workload's.
        meaning: in a few words.
    """

    name: str
    values: tuple[str, ...] | None
    default: str
    meaning: str
    process: bool = False

    def parse(self, text: str) -> str:
        """A value.

        Raises:
            UsageError: it has no such value.
        """
        if self.values is None:
            if not text.isdecimal() or int(text) > _AT_MOST:
                raise UsageError(
                    f"toggle {self.name}: {text!r} is not a whole number from 0 to {_AT_MOST} "
                    f"({self.meaning})"
                )
            return str(int(text))
        if text not in self.values:
            raise unknown(f"value of the toggle {self.name}", text, self.values)
        return text


#: More is a slip of the finger that would bring the machine down.
_AT_MOST = 256

_ON_OFF = ("off", "on")

#: Every toggle, in the order in which ids show them.
TOGGLES: Mapping[str, Toggle] = {
    toggle.name: toggle
    for toggle in (
        Toggle("workers", None, "0", "processes that load data; TensorFlow: threads"),
        Toggle("sparse", _ON_OFF, "off", "gradients of embeddings hold only rows that occurred"),
        Toggle("decay", _ON_OFF, "off", "the learning rate falls to 0.9 of itself each 10 epochs"),
        Toggle("onednn", _ON_OFF, "", "oneDNN computes on the CPU", process=True),
    )
}

Values = Mapping[str, tuple[str, ...]]


def parse(text: str) -> tuple[str, tuple[str, ...]]:
    """``"workers=0,2"`` as ``("workers", ("0", "2"))``.

    Raises:
        UsageError: no value, an unknown toggle, or a value that it has not.
    """
    name, equals, values = text.partition("=")
    name = name.strip()
    if name not in TOGGLES:
        raise unknown("toggle", name, TOGGLES)
    if not equals or not values.strip():
        toggle = TOGGLES[name]
        known = "a whole number" if toggle.values is None else "|".join(toggle.values)
        raise UsageError(f"toggle {name!r} has no value; give {name}={known} ({toggle.meaning})")
    parts = tuple(TOGGLES[name].parse(part.strip()) for part in values.split(","))
    return name, tuple(dict.fromkeys(parts))


def variable(name: str) -> str:
    """The environment variable by which a worker's framework learns of a toggle."""
    return f"FWBENCH_{name.upper()}"
