"""Folders that one process owns for as long as it lives.

The owner holds a lock on the folder itself, which the kernel takes back when the process ends,
however it ends. Unlike a number of a process in a file, it cannot be that of another process by
now, of another container, or of a time before the clock was set.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self


class Owned:
    """A folder that this process owns until it is released, or the process ends.

    Args:
        descriptor: of the folder, locked.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Leave the folder to others."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        """Own the folder within a block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Release it."""
        self.release()


def take(folder: Path) -> Owned | None:
    """Own a folder; None if another process does, or if it is not a folder that can be owned.

    A link to a folder cannot, and neither can any folder of some network file systems.
    """
    import fcntl  # Windows, where reports are read, has none

    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last owner may have removed it, and somebody else made another one, meanwhile.
        is_there = os.path.samestat(os.fstat(descriptor), os.lstat(folder))
    except OSError:
        is_there = False
    if not is_there:
        os.close(descriptor)
        return None
    return Owned(descriptor)
