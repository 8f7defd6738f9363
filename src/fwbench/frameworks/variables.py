"""Environment variables that change speed, and those that place work."""

import itertools

from fwbench.packaged import read_table

#: Which devices a framework sees, and in what order. They place work and change no speed: a
#: scheduler gives every job others.
PLACEMENT = (
    *("CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "JAX_PLATFORMS", "JAX_PLATFORM_NAME"),
    "NVIDIA_VISIBLE_DEVICES",
)


def variables_of(*libraries: str) -> tuple[str, ...]:
    """The variables of libraries and frameworks, by their names in ``variables.toml``.

    Args:
        libraries: none of them for all that are there.
    """
    every: dict[str, list[str]] = read_table(__package__, "variables.toml")
    return tuple(itertools.chain.from_iterable(every[name] for name in libraries or every))
