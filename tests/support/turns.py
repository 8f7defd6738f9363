"""Whose turn it is where several processes share the tests: a ``serial`` test runs alone."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Turns:
    """Locks that the processes of one test session share.

    A process that waits to be alone keeps the entrance shut, so that the others cannot overtake it
    forever.

    Args:
        folder: one that all of these processes know.
    """

    def __init__(self, folder: Path) -> None:
        self._entrance = folder / "entrance.lock"
        self._room = (folder / "room.lock").open("w")
        # A lock is held until the last copy of its file is closed: what a test has forked may be
        # there when its process has died.
        os.register_at_fork(after_in_child=self._room.close)
        self._stays = False

    @contextmanager
    def take(self, *, alone: bool, stay: bool = False) -> Iterator[None]:
        """Run together with others, or alone.

        Args:
            stay: whether this process is alone in its next turn, too. It stays, then: each wait
                to be alone is as long as the test that another process is at.
        """
        if not self._stays:
            with self._entrance.open("w") as entrance:
                fcntl.flock(entrance, fcntl.LOCK_EX)
                fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        try:
            yield
        finally:
            self._stays = alone and stay
            if not self._stays:
                fcntl.flock(self._room, fcntl.LOCK_UN)
