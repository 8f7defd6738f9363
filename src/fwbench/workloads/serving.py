"""Work of workers with parameter servers without a model: the null step, and sparse reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fwbench.manifest import Manifest
from fwbench.presets import Sizes
from fwbench.terms.replicas import ALLREDUCE
from fwbench.workloads.workload import Workload

#: Into how many arrays the parameters are divided (Abadi et al., "TensorFlow: A System for
#: Large-Scale Machine Learning", OSDI 2016, section 6.2).
SHARDS = 16

#: How many rows a sparse read fetches, and how long they are.
ROWS = 32
COLUMNS = 64


@dataclass(frozen=True, eq=False)
class ServedStep(Workload):
    """A step between workers and parameter servers.

    Args:
        name: the first part of every case id.
        sizes: by preset.
        divisor: what its size must be a multiple of.
        unit: what its size counts, in the plural.
    """

    name: str
    sizes: Sizes
    divisor: int
    unit: str
    family: str = "serving"
    representative: bool = False

    on_request: ClassVar[bool] = True
    directions: ClassVar = ("forward",)
    shared: ClassVar[bool] = True
    needs_replicas: ClassVar[bool] = True
    toggle_gaps: ClassVar = {
        ("strategy", ALLREDUCE): "null steps and sparse reads are between workers and parameter "
        "servers: add --fw-strategy ps_sync --fw-servers 1"
    }

    @property
    def by_preset(self) -> Sizes:
        """The sizes."""
        return self.sizes

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Executions of replicas; none of a framework without replicas in fwbench."""
        return manifest.gang_executions


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
