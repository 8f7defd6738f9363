"""What values of toggles look like that are neither names nor whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from fwbench.terms.link import LOOPBACK, network
from fwbench.terms.straggler import NOBODY, straggler


class Form(NamedTuple):
    """A form of values.

    Attributes:
        read: the value that a text stands for; raises a UsageError for any other text.
        examples: for messages.
    """

    read: Callable[[str], str]
    examples: str


FORMS: Mapping[str, Form] = {
    "network": Form(network, f"{LOOPBACK}|100mbit|1gbit+0.5ms"),
    "straggler": Form(straggler, f"{NOBODY}|1@20ms"),
}
