"""What replicas do together without any model: an all-reduce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fwbench.manifest import Manifest
from fwbench.presets import Size, Sizes
from fwbench.workloads.workload import Workload, first

#: The messages of DeepBench's all-reduce (baidu-research/DeepBench,
#: code/kernels/all_reduce_problems.h), in float32 numbers.
_DEEPBENCH = (100_000, 3_097_600, 4_194_304, 6_553_600, 16_777_217, 38_360_000, 64_500_000)


@dataclass(frozen=True, eq=False)
class Collective(Workload):
    """An exchange between all replicas; its size is the elements that each of them has.

    Args:
        name: the first part of every case id.
        sizes: by preset.
        dtypes: those in which its sums are exact whatever the order.
    """

    name: str
    sizes: Sizes
    dtypes: tuple[str, ...] = ("float32", "float64")
    family: str = "collectives"
    representative: bool = False

    on_request: ClassVar[bool] = True
    directions: ClassVar = ("forward",)
    shared: ClassVar[bool] = True
    needs_replicas: ClassVar[bool] = True
    toggle_gaps: ClassVar = {
        ("strategy", "ps_async"): "an exchange is between workers that wait for each other, and "
        "those of ps_async do not"
    }

    @property
    def by_preset(self) -> Sizes:
        """The numbers of elements."""
        return self.sizes

    def share_gap(self, size: Size, replicas: int) -> str | None:
        """One replica has nobody to exchange anything with."""
        if replicas > 1:
            return None
        return f"{self.name} is between replicas, and this is a single one"

    def executions(self, manifest: Manifest) -> tuple[str, ...]:
        """Those of replicas; none of a framework whose replicas fwbench has not built."""
        return manifest.gang_executions

    def gap(
        self, manifest: Manifest, device: str, execution: str, direction: str, dtype: str
    ) -> str | None:
        """No such device, or no such dtype."""
        return first(
            {
                f"{manifest.name} sees no {device}": not manifest.has(device),
                f"{self.name} has no {dtype}": dtype not in self.dtypes,
                f"{manifest.name} has no {dtype}": dtype not in manifest.dtypes,
            }
        ) or manifest.gap(self.name, execution, direction, dtype, device)


all_reduce = Collective(
    "all_reduce",
    Sizes(
        (1, 16_384, 262_144),
        paper=_DEEPBENCH,
        deepbench=_DEEPBENCH,
        full=(1, 1_024, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216),
    ),
)

COLLECTIVES = (all_reduce,)
