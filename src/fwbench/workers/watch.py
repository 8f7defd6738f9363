"""What a room that waits for processes tells whoever shows it to people."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Somebody who shows that one waits."""

    def tick(self, doing: str) -> None:
        """Called several times a second while one waits.

        Args:
            doing: what is waited for; empty for a case.
        """

    def clear(self) -> None:
        """Called when one does not wait any more, and somebody else may write."""


class Unwatched:
    """Nobody does."""

    def tick(self, doing: str) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing."""
