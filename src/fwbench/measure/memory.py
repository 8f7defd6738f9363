"""The memory of a case: what its process held before, and at most."""

from __future__ import annotations

from fwbench.measure.resources import peak_memory_bytes, reset_peak_memory


class PeakMemory:
    """The resident memory of this process while a case is measured.

    What is made for verification does not count, nor what is kept of it for other cases:
    :meth:`pause` before it, :meth:`resume` after.

    Attributes:
        before_bytes: when this was made; None where the system does not tell.
        peak_bytes: the largest since then, pauses apart; None likewise.
    """

    def __init__(self) -> None:
        self._known = reset_peak_memory()
        self.before_bytes = peak_memory_bytes() if self._known else None
        self.peak_bytes = self.before_bytes
        self._uncounted_bytes = 0

    def pause(self) -> None:
        """Note the largest so far."""
        if self._known:
            peak_bytes = (peak_memory_bytes() or 0) - self._uncounted_bytes
            self.peak_bytes = max(self.peak_bytes or 0, peak_bytes)

    def restart(self) -> int | None:
        """Forget what was largest so far; returns what is held now, None if that is not known."""
        self.resume()
        self.peak_bytes = peak_memory_bytes() if self._known else None
        return self.peak_bytes

    def resume(self, kept_bytes: int = 0) -> None:
        """Look for a new one from here on.

        Args:
            kept_bytes: how much more the process holds since the pause that does not count.
        """
        self._uncounted_bytes += kept_bytes
        if self._known:
            reset_peak_memory()
