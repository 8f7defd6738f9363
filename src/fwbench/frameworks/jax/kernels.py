"""What JAX tells of CUPTI's records, by the part of it that writes kernels for GPUs (Mosaic)."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from fwbench.frameworks.cupti import Listener


class MosaicListener(Listener):
    """The two calls that ``jax.experimental.mosaic.gpu.profiler.Cupti`` makes.

    Itself it times compiled functions alone, and is given their arguments.

    Raises:
        ImportError: this build of JAX does not have them; those without CUDA do not.
    """

    def __init__(self) -> None:
        library = importlib.import_module("jax._src.lib.mosaic_gpu")
        self._extension: Any = library._mosaic_gpu_ext  # noqa: SLF001 (no other way)

    def begin(self) -> None:
        """It raises where another tool listens."""
        self._extension._cupti_init()  # noqa: SLF001

    def end(self) -> Sequence[float]:
        """Records are pairs: the name of a kernel, and milliseconds."""
        records = self._extension._cupti_get_timings(True)  # noqa: SLF001 (and detaches)
        return [milliseconds / 1e3 for _, milliseconds in records]
