"""Work between replicas without a model.

Exchanges among all of them: all-reduce, its two halves, and broadcast. With parameter servers: the
null step, and sparse reads.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from fwbench.terms.manifest import Manifest
from fwbench.terms.presets import Sizes, sizes_of
from fwbench.workloads.workload import Workload

_SIZES = sizes_of("collectives")


@dataclass(frozen=True, eq=False)
class _BetweenReplicas(Workload):
    """Work that several replicas do together."""

    name: str
    sizes: Sizes

    representative = False
    on_request: ClassVar[bool] = True
    directions: ClassVar = ("forward",)
    shared: ClassVar[bool] = True
    needs_replicas: ClassVar[bool] = True

    @property
    def by_preset(self) -> Sizes:
        return self.sizes

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Executions of replicas; none of a framework without replicas in fwbench."""
        return manifest.gang_executions


@dataclass(frozen=True, eq=False)
class Collective(_BetweenReplicas):
    """An exchange between all replicas; its size is the elements of the whole array.

    Of an all-gather that is the result, of a reduce-scatter the source, as in nccl-tests.
    """

    #: How many times its size all replicas together send at least, by their number.
    sent: Callable[[int], float]
    #: What its size divided by its time is multiplied by to make the bus bandwidth, by the number
    #: of replicas (nccl-tests, doc/PERFORMANCE.md).
    bus: Callable[[int], float]
    #: Whether every replica has an equal part of the array.
    in_parts: bool = False
    #: Those in which its sums are exact in any order.
    dtypes: tuple[str, ...] = ("float32", "float64")

    family = "collectives"


_divisible = partial(Collective, sizes=_SIZES["divisible"], sent=lambda replicas: replicas - 1.0)
_half = partial(_divisible, bus=lambda replicas: (replicas - 1.0) / replicas, in_parts=True)

#: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms" (2009): a sum can be scattered, and
#: then gathered.
all_reduce = Collective(
    "all_reduce",
    _SIZES["all_reduce"],
    sent=lambda replicas: 2.0 * (replicas - 1),
    bus=lambda replicas: 2.0 * (replicas - 1) / replicas,
)

reduce_scatter = _half("reduce_scatter")
all_gather = _half("all_gather")

#: Each replica is the source in turn, as in the Intel MPI Benchmarks' Bcast: with a single source
#: its clock would show when the array has left, and not when the others have it.
broadcast = _divisible("broadcast", bus=lambda replicas: 1.0)

COLLECTIVES = (all_reduce, reduce_scatter, all_gather, broadcast)

#: Those in which each replica sends as many messages one after the other as it sends parts.
RINGS: Mapping[str, Collective] = {
    ring.name: ring for ring in (all_reduce, reduce_scatter, all_gather)
}

#: Into how many arrays the parameters are divided (Abadi et al., "TensorFlow: A System for
#: Large-Scale Machine Learning", OSDI 2016, section 6.2).
SHARDS = 16

#: How many rows a sparse read fetches, and how long they are.
ROWS = 32
COLUMNS = 64


@dataclass(frozen=True, eq=False)
class ServedStep(_BetweenReplicas):
    """A step between workers and parameter servers."""

    #: What its size must be a multiple of.
    divisor: int
    unit: str

    family = "serving"


class NullStep(ServedStep):
    """All parameters fetched, and an update of all sent."""


class SparseRead(ServedStep):
    """Some rows of a table fetched."""


#: Every worker fetches all parameters, and sends an update of all: what coordination takes alone.
#: Sizes are a number a shard, 1 MB, and on paper 100 MB and 1 GB.
null_step = NullStep(
    "null_step",
    Sizes((SHARDS, 250_000), paper=(SHARDS, 250_000, 25_000_000, 250_000_000)),
    SHARDS,
    "numbers",
)

#: Every worker fetches 32 rows of a table, others in every step. Tables have 64 columns, so sizes
#: are 16 KB, 1 MB, and on paper up to 1 GB. Of 32 rows every worker would read all, every time.
sparse_read = SparseRead(
    "sparse_read",
    Sizes((2 * ROWS, 4_096), paper=(2 * ROWS, 4_096, 409_600, 4_096_000)),
    ROWS,
    "rows",
)

SERVED = (null_step, sparse_read)
