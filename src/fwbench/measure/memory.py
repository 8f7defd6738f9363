"""The memory of a case: what its process, and its GPU, held before, and at most."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

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


#: What the first case of this process found in use on each of its GPUs, in bytes.
FOUND_FIRST: dict[str, int] = {}


class DeviceMemory:
    """The memory of a GPU that a framework has in use while a case is bound.

    Args:
        peak_bytes: the most in use since just now, as :meth:`fwbench.Framework.watch_memory` has
            it; so its first answer is what is in use before the case.
        found_first: what the first case of this process found, by device; it is added to.
            By default what this process knows.

    Attributes:
        before_bytes: before the case; None where the framework does not tell.
        left_bytes: what earlier cases of this process have left of that; None likewise.
    """

    def __init__(
        self,
        device: str,
        peak_bytes: Callable[[], int | None],
        found_first: MutableMapping[str, int] | None = None,
    ) -> None:
        self._peak_bytes = peak_bytes
        self.before_bytes = peak_bytes()
        self.left_bytes = None
        if self.before_bytes is not None:
            known = FOUND_FIRST if found_first is None else found_first
            first_bytes = known.setdefault(device, self.before_bytes)
            self.left_bytes = max(0, self.before_bytes - first_bytes)

    @property
    def peak_bytes(self) -> int | None:
        """The most in use since the case began."""
        return self._peak_bytes()
