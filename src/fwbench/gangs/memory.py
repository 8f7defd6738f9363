"""What a gang takes of the machine's memory, before it is started."""

from __future__ import annotations

import psutil

from fwbench.errors import TooLargeToVerify
from fwbench.gangs.places import Composition
from fwbench.records.units import gibibytes

#: The share of free memory that a gang may take.
_AT_MOST = 0.9


def refuse_too_large(composition: Composition, arrays_bytes: float) -> None:
    """Refuse a gang that the machine's memory does not hold.

    Args:
        composition: of the gang; each role takes what this process has of its own, too.
        arrays_bytes: the arrays that a role has at once.

    Raises:
        TooLargeToVerify: it takes more than nine tenths of what is free.
    """
    own = psutil.Process().memory_info()
    role_bytes = own.rss - getattr(own, "shared", 0) + arrays_bytes
    needed = len(composition.places) * role_bytes
    most = _AT_MOST * psutil.virtual_memory().available
    if needed > most:
        raise TooLargeToVerify(
            f"{composition.replicas} replicas take about {gibibytes(int(needed))} of memory, and "
            f"90 % of what is free are {gibibytes(int(most))}: ask for fewer --fw-replicas or a "
            "smaller --fw-size"
        )
