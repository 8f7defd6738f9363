"""NumPy: the reference, and the yardstick for one thread without a framework."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import threadpoolctl

from fwbench.frameworks.contract import BoundCall, HostFramework
from fwbench.frameworks.member import Member, Place
from fwbench.frameworks.numpy.operations import OPERATIONS
from fwbench.frameworks.table import capabilities_of, gaps_of, toggle_gaps_of
from fwbench.frameworks.variables import variables_of
from fwbench.workloads.operation import Implementation

_NO_SERVERS = "NumPy has no parameter servers; its ring shows what the wire allows an all-reduce"


class NumPy(HostFramework):
    """NumPy on the CPU. Ufuncs take one thread; products take the BLAS's."""

    name = "numpy"
    version = np.__version__
    namespace = np
    capabilities = capabilities_of(
        __package__, strategies={"allreduce": "", "ps_sync": _NO_SERVERS, "ps_async": _NO_SERVERS}
    )
    variables = variables_of("numpy", "openblas", "mkl", "openmp")
    operations = OPERATIONS
    gaps = gaps_of(__package__)
    toggle_gaps = toggle_gaps_of(__package__)

    def set_threads(self, threads: int) -> None:
        """Limit the threads of NumPy's BLAS."""
        threadpoolctl.threadpool_limits(threads, user_api="blas")

    def threads(self) -> int | None:
        """The threads of NumPy's BLAS."""
        pools = threadpoolctl.threadpool_info()
        return max((p["num_threads"] for p in pools if p["user_api"] == "blas"), default=None)

    def forward(
        self, implementation: Implementation, inputs: Sequence[Any], execution: str
    ) -> BoundCall:
        """The function itself with its inputs."""
        return partial(implementation(np), *inputs)

    def member(self, place: Place) -> Member:
        """Sockets in a ring: fwbench's own, as NumPy has none."""
        from fwbench.frameworks.numpy.replicas import Ring

        return Ring(place)
