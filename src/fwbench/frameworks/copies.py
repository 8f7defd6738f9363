"""Copies between the host and a GPU: what a framework's adapter needs to have for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from fwbench.workloads import COPIES

#: Where an array lies that is in memory of the host which the GPU can copy by itself.
PINNED = "cpu, pinned"


class Copies(ABC):
    """A framework's own calls that copy arrays between the host and one GPU.

    Attributes:
        to_device: the call that copies an array of the host's to the GPU; nothing but the
            framework's own, because it is timed.
        to_host: the call that copies one of the GPU's to the host.
    """

    to_device: Callable[[Any], Any]
    to_host: Callable[[Any], Any]

    @abstractmethod
    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """An array of the framework's in the memory of the host that copies begin in."""

    @abstractmethod
    def place(self, array: Any) -> str:
        """Where an array lies: ``cpu``, :data:`PINNED`, or ``gpu:N``."""


class Copying:
    """The part of an adapter that copies between the host and GPUs, where it has one."""

    def copier(self, device: str, *, pinned: bool) -> Copies:
        """The framework's own calls that copy arrays.

        Args:
            pinned: whether the memory of the host is page-locked; a framework that does not offer
                that says so in its ``toggle_gaps``.
        """
        raise NotImplementedError("copies between host and GPU are not written")

    @classmethod
    def written_copies(cls) -> tuple[str, ...]:
        """The names of the operations that :meth:`copier` is there for."""
        return () if cls.copier is Copying.copier else tuple(one.name for one in COPIES)
