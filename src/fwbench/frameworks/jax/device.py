"""JAX's executions, memory and devices: donation, plans, copies to GPUs, CUPTI's records."""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding
from numpy.typing import NDArray

from fwbench.frameworks.contract import BoundCall
from fwbench.frameworks.gpus import PINNED, Copies, Listener
from fwbench.frameworks.probes import with_plan
from fwbench.terms.toggles import value_of

#: What is made of a function, which may overwrite the arguments that ``donate_argnums`` names.
#: Loaders, which call none, are ``eager``.
EXECUTIONS: dict[str, Callable[..., Any]] = {
    "eager": lambda function, **_: function,
    "jit": jax.jit,
}

#: JAX's name for memory that a GPU copies from and to by itself.
_PINNED = "pinned_host"


class JaxCopies(Copies):
    """``jax.device_put``, between JAX's arrays on the host and those on the GPU.

    What was once read of an array on a GPU is kept with it, and not copied again (``_value`` in
    jax/_src/array.py), so each round copies an array of its own. Page-locked memory belongs to the
    GPU, as one of the kinds of memory that it reaches.

    Args:
        cpu: the one for the CPU; None for page-locked memory.
        keep: called with every copy, for the clock to wait for.
    """

    def __init__(self, name: str, gpu: Any, cpu: Any | None, keep: Callable[[Any], None]) -> None:
        memory_kind = gpu.default_memory().kind
        self._names = {(gpu, memory_kind): name, (gpu, _PINNED): PINNED, (cpu, None): "cpu"}
        self._keep = keep
        self._host = cpu or SingleDeviceSharding(gpu, memory_kind=_PINNED)
        # Named, because memory stays of its kind otherwise.
        self.to_device = self._put_on(SingleDeviceSharding(gpu, memory_kind=memory_kind))
        put = self._put_on(self._host)
        self.to_host = lambda array: put(self._renewed.pop(id(array), array))
        self._renewed: dict[int, Any] = {}

    def renew(self, array: Any) -> None:
        """Have the next call copy a new array with the same values."""
        copied = jnp.copy(array)
        self._keep((copied,))  # or else it would be made within the round
        self._renewed = {id(array): copied}

    def _put_on(self, device: Any) -> Callable[[Any], Any]:
        keep = self._keep

        def put(array: Any) -> Any:
            result = jax.device_put(array, device)
            keep((result,))
            return result

        return put

    def on_host(self, values: NDArray[Any], dtype: str) -> Any:
        """``jnp.array`` in the host's memory; it copies."""
        return jnp.array(values, dtype=dtype, device=self._host)

    def place(self, array: Any) -> str:
        """By the array's device, and by the kind of its memory where that tells more."""
        (device,) = array.devices()
        kind = array.sharding.memory_kind
        known = self._names.get((device, kind)) or self._names.get((device, None))
        return known or f"{device}, {kind}"


class MosaicListener(Listener):
    """CUPTI's records by the two calls of ``jax.experimental.mosaic.gpu.profiler.Cupti``.

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


def place_of(array: Any) -> str | None:
    """The device of an array, with the kind of its memory where it is not the device's own.

    None of an array on several devices.
    """
    devices = array.devices()
    if len(devices) > 1:
        return None
    (device,) = devices
    number = jax.local_devices(backend=device.platform).index(device)
    name = f"{device.platform}:{number}" if device.platform != "cpu" or number else "cpu"
    memory = array.sharding.memory_kind
    return name if memory in (None, device.default_memory().kind) else f"{name}, {memory}"


class Variable:
    """An array that steps overwrite, as far as that goes: by the result that takes its place."""

    def __init__(self, array: Any) -> None:
        self.array = array


def latest(array: Any) -> Any:
    """The array itself, or the one that a variable holds after the latest step."""
    return array.array if isinstance(array, Variable) else array


def donated(*positions: int) -> tuple[int, ...]:
    """The arguments of a step whose memory its results may take: those that it replaces.

    As JAX's page "Buffer donation" has it for states; on the CPU since jaxlib 0.3.24.
    """
    return positions if value_of("donate") == "on" else ()


def planned(run: BoundCall, function: Any, *arguments: Any) -> BoundCall:
    """Bound work with what XLA has planned for it, if it is compiled as a whole."""
    if not hasattr(function, "lower"):
        return run
    return with_plan(run, partial(planned_bytes, function, *arguments))


def planned_bytes(function: Any, *arguments: Any) -> int:
    """Bytes that XLA has planned: temporary buffers and results, but for those in arguments' place.

    Args:
        function: what ``jax.jit`` has returned; it is compiled once more.
        arguments: of a call, which is not made.
    """
    plan = function.lower(*arguments).compile().memory_analysis()
    own_bytes = plan.output_size_in_bytes - plan.alias_size_in_bytes
    return int(plan.temp_size_in_bytes + own_bytes)
