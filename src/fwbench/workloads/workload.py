"""Common base of workloads: operations, training loops, and parts of them."""

import math
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from fwbench.terms.manifest import Manifest
from fwbench.terms.names import DEFAULT_DTYPE
from fwbench.terms.presets import Form, Schedule, Shape, Size, Sizes


@dataclass(frozen=True)
class Cost:
    """The least work that any implementation of a workload must do.

    Attributes:
        flops: arithmetic operations; each elementary function counts as one.
        elements: array elements read and written, every operand once. What verification finds to
            be booleans or whole numbers counts at its own width in the record.
        other_bytes: bytes moved in addition to those elements, for sources that are not arrays.
    """

    flops: float
    elements: float
    other_bytes: float = 0.0

    def bytes_moved(self, itemsize_bytes: int) -> float:
        """Bytes moved when an element of the case's dtype takes ``itemsize_bytes``."""
        return self.elements * itemsize_bytes + self.other_bytes


def _count(terms: str, size: Shape) -> float:
    """The value of a sum of products: ``2kd+k`` are twice k times d, and k more."""
    count = 0
    for term in filter(None, terms.split("+")):
        names = term.lstrip("0123456789")
        factor = int(term.removesuffix(names) or 1)
        count += factor * math.prod(size[name] for name in names)
    return float(count)


class Counts(NamedTuple):
    """Elements that an operation moves and computes: sums of products of a size's numbers."""

    #: Elements, indices among them; of a table no more than is picked.
    reads: str
    #: Elements of the result.
    writes: str
    #: Elements of the gradients, and what else they take of the operands; that by a table is
    #: written all over. Empty where there is none.
    gradients: str = ""
    #: FLOPs of the gradients: of a table they add up where an element is picked twice.
    sums: str = ""
    #: Of the forward pass.
    flops: str = ""

    def forward(self, size: Shape) -> Cost:
        """Read the operands, write the result."""
        return Cost(_count(self.flops, size), _count(f"{self.reads}+{self.writes}", size))

    def backward(self, size: Shape) -> Cost:
        """Forward; then read the gradient of the result, and write those of the operands."""
        forward = self.forward(size)
        return Cost(
            forward.flops + _count(self.sums, size),
            forward.elements + _count(f"{self.writes}+{self.gradients}", size),
        )


class Workload(ABC):
    """Work to be measured. It names no framework.

    Attributes:
        name: the first part of every case id.
        family: what it is listed and selected with; empty for work without one.
        representative: whether a session without options measures it.
        on_request: whether only a session has it that asks for its family or names tests.
        directions: the directions that make sense; None for those that are asked for.
        shared: whether replicas can share it.
        needs_replicas: whether there is nothing to do for one of them alone.
        cold: whether its first call is a figure of its own, so that no case may run before it in
            its process.
    """

    name: str
    family: str = ""
    representative: bool = True
    on_request: ClassVar[bool] = False
    directions: ClassVar[tuple[str, ...] | None] = None
    shared: ClassVar[bool] = False
    needs_replicas: ClassVar[bool] = False
    cold: ClassVar[bool] = False

    @property
    @abstractmethod
    def by_preset(self) -> Sizes:
        """The sizes for each of the presets."""

    @property
    def smallest(self) -> Size:
        """The size at which to verify when nothing is timed."""
        quick = self.by_preset.quick
        return min((size for size in quick if isinstance(size, int)), default=quick[0])

    @property
    def form(self) -> Form | None:
        """Format of its shapes; None where a size is a whole number."""
        return None

    def size_of(self, size: int | str) -> Size | None:
        """The size that a number or a shape's text asks for; None for sizes of another kind."""
        if self.form is None:
            return size if isinstance(size, int) else None
        return self.form.shape(str(size))

    @property
    def default_dtype(self) -> str:
        """The dtype of its cases where none is asked for."""
        return DEFAULT_DTYPE

    @property
    def toggles(self) -> frozenset[str]:
        """The toggles that make a difference here, in addition to those of a whole process."""
        return frozenset()

    @property
    def data(self) -> str | None:
        """The name of the data set that it needs; None if it needs none."""
        return None

    def schedule(self, preset: str | None) -> Schedule | None:
        """Schedule with a preset, or with given sizes (None); None for other work than loops."""
        return None

    def missing(self, preset: str | None) -> str | None:
        """Why a preset leaves this workload out; None if it does not."""
        return None

    def grown(self, size: Size, replicas: int) -> Size:
        """The size at which each of several replicas does what one does at ``size``."""
        return size

    def cost_of(self, direction: str, size: Size) -> Cost | None:
        """Cost of ``direction`` at ``size``; None where it is not declared.

        Args:
            direction: ``forward`` or ``backward``.
        """
        return None

    def number_of(self, size: Size) -> int:
        """Amount of work of this size in one number; of a shape, the elements moved at least."""
        if isinstance(size, int):
            return size
        cost = self.cost_of("forward", size)
        return math.prod(size.values()) if cost is None else int(cost.elements)

    @abstractmethod
    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Executions of a framework."""

    def executions_to_name(self, manifest: Manifest) -> Collection[str]:
        """Executions that make a cell if they are named: of others it is a gap."""
        return self.executions(manifest)
