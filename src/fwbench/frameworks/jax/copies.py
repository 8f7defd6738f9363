"""JAX's copies between the host and a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

from fwbench.frameworks.copies import Copies


class JaxCopies(Copies):
    """``jax.device_put``, between JAX's arrays on the CPU and those on the GPU.

    What NumPy reads of an array on a GPU is kept with it, and would be copied once.

    Args:
        name: of the GPU, as fwbench has it.
        gpu: JAX's object for it.
        cpu: the one for the CPU.
        keep: is told of every copy, for the clock to wait for.
    """

    def __init__(self, name: str, gpu: Any, cpu: Any, keep: Callable[[Any], None]) -> None:
        self._cpu = cpu
        self._names = {gpu: name, cpu: "cpu"}
        self._keep = keep
        self.to_device = self._put_on(gpu)
        self.to_host = self._put_on(cpu)

    def _put_on(self, device: Any) -> Callable[[Any], Any]:
        keep = self._keep

        def put(array: Any) -> Any:
            result = jax.device_put(array, device)
            keep((result,))
            return result

        return put

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``jnp.array`` on the CPU; it copies."""
        return jnp.array(values, dtype=dtype, device=self._cpu)

    def place(self, array: Any) -> str:
        """By the array's device."""
        (device,) = array.devices()
        return self._names.get(device, str(device))
