"""A cheat: the honest framework with one thing changed, as a row of a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from fwbench import workloads
from fwbench.errors import FwbenchError, WrongResult
from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.learner import Job, Learner
from fwbench.workloads.photos import PhotoJob, PhotoLoader
from fwbench.workloads.workload import Workload
from fwbench_extras.cheats.honest import Compute, Honest, HonestLearner, HonestPhotos

#: Binds the work to its inputs: ``bind(compute, inputs)`` returns the call that is timed. For
#: ``backward``, ``compute`` is :class:`~fwbench_extras.cheats.honest.Backward` and the last input
#: is the cotangent.
Bind = Callable[[Compute, Sequence[Any]], BoundCall]

#: Creates an array from a source, with a dtype.
Create = Callable[[Any, str], Any]


@dataclass(frozen=True, kw_only=True)
class Cheat:
    """The honest framework with one thing changed.

    Attributes:
        name: of the framework.
        fakes: a sentence.
        mistake: the mistake of published benchmarks that it stands for.
        caught_by: the error in which fwbench's case of it ends; None if it gets a number.
        why: the check that catches it; or why none can, and how it can still be noticed.
        bind: of the work; for cheats that return another result, or at another time.
        create: of arrays; for cheats with other inputs.
        wait: waits until all work is done; None where calls return when it is.
        learn: makes the learner; for cheats that train.
        loads: loads photos; for cheats that load them.
        base: the class of the framework; for cheats that change more.
        workload: shows the cheat.
        size: of the workload.
        dtype: of the workload.
        directions: in which it cheats; none if it does so before any work is bound.
    """

    name: str
    fakes: str
    mistake: str
    why: str
    caught_by: type[FwbenchError] | None = WrongResult
    bind: Bind = lambda compute, inputs: partial(compute, *inputs)
    create: Create = np.array
    wait: Callable[[], Any] | None = None
    learn: Callable[[Job], Learner] = HonestLearner
    loads: type[HonestPhotos] = HonestPhotos
    base: type[CheatingFramework] | None = None
    workload: Workload = workloads.gemm
    size: int = 64
    dtype: str = "float32"
    directions: tuple[str, ...] = ("forward", "backward")

    def framework(self) -> CheatingFramework:
        """Make the framework that cheats."""
        base = self.base or CheatingFramework
        return type(self.name, (base,), {"name": self.name, "cheat": self})()


class CheatingFramework(Honest):
    """The honest framework, but for the methods that a cheat replaces."""

    cheat: ClassVar[Cheat]

    def bound(self, compute: Compute, inputs: Sequence[Any]) -> BoundCall:
        """The call that is timed, bound by the cheat."""
        return self.cheat.bind(compute, inputs)

    def creator(self, device: str, dtype: str) -> Callable[[Any], Any]:
        """Creates arrays as the cheat does."""
        return lambda source: self.cheat.create(source, dtype)

    def waiter(self, device: str) -> Callable[[], Any] | None:
        """The cheat's way to wait."""
        return self.cheat.wait

    def address(self, array: Any) -> int | None:
        """The address of an array that is there; None for one that is yet to be computed."""
        return super().address(array) if isinstance(array, np.ndarray | np.generic) else None

    def learner(self, job: Job) -> Learner:
        """The cheat's learner."""
        return self.cheat.learn(job)

    def photo_loader(self, job: PhotoJob) -> PhotoLoader:
        """The cheat's loader of photos."""
        return PhotoLoader(self.cheat.loads(job).batches, "Pillow")


def leaves(result: Any) -> list[Any]:
    """The arrays that a call returned, in their order.

    Args:
        result: an array, or lists and tuples of arrays.
    """
    if isinstance(result, list | tuple):
        return [leaf for part in result for leaf in leaves(part)]
    return [result]


def map_arrays(change: Callable[[Any], Any], result: Any) -> Any:
    """A call's result with every array of it changed.

    Args:
        result: an array, or lists and tuples of arrays.
    """
    if isinstance(result, list | tuple):
        return type(result)(map_arrays(change, part) for part in result)
    return change(np.asarray(result))


def changed(change: Callable[[Any], Any]) -> Bind:
    """Bind work whose arrays are changed before they are returned."""
    return lambda compute, inputs: lambda: map_arrays(change, compute(*inputs))
