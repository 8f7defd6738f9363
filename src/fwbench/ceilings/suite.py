"""Suite of ``fwbench doctor --peaks``: matrix products in every dtype, and copies.

Copies within the memory of a device, and between the host and a GPU.

The products are large enough for the best rate, and the copied array is larger than any cache. A
copy goes into memory that is there already, where a framework has a way to do that: the pages of
new memory cost more than the copy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fwbench import Case, Operation
from fwbench.workloads import COPIES, WORKLOADS, gemm
from fwbench.workloads.workload import Cost

_HALVES = ("float16", "bfloat16")


#: Numbers of float32, so that two arrays have 1 to 128 MiB: on both sides of what a GPU's L2 holds,
#: 6 MiB in 2017 and 126 MiB in 2025.
_CACHED = tuple(2**exponent for exponent in range(17, 25))


def _copy(name: str, *sizes: int) -> Operation:
    return Operation(
        name=name,
        inputs=lambda size, rng: (np.resize(rng.standard_normal(4_096), size),),
        reference=np.copy,
        sizes=sizes,
        cost=lambda n: Cost(flops=0.0, elements=2.0 * n),
        differentiable=False,
        compilable=False,
    )


copy = _copy("copy", 2**26)  # 256 MiB of float32
cached_copy = _copy("cached_copy", *_CACHED)


def _kept(like: Callable[[Any], Any], into: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A copy into an array that the first call makes."""
    kept: list[Any] = []

    def run(x: Any) -> Any:
        if not kept:
            kept.append(like(x))
        into(kept[0], x)
        return kept[0]

    return run


@copy.implement("numpy")
def _(numpy: Any) -> Callable[[Any], Any]:
    return _kept(numpy.empty_like, numpy.copyto)


@cached_copy.implement("torch")
@copy.implement("torch")
def _(torch: Any) -> Callable[[Any], Any]:
    return _kept(torch.empty_like, lambda kept, x: kept.copy_(x))


@copy.implement("mxnet")
def _(F: Any) -> Callable[[Any], Any]:
    return _kept(F.zeros_like, lambda kept, x: x.copyto(kept))


@copy.implement("tensorflow")
def _(tf: Any) -> Callable[[Any], Any]:
    return lambda x: tf.raw_ops.DeepCopy(x=x)


@copy.implement("jax")
def _(jax: Any) -> Callable[[Any], Any]:
    return jax.numpy.copy


@pytest.mark.fwbench(gemm, devices="cpu", sizes=(1_024, 2_048), dtypes=("float32", "float64"))
def test_product(case: Case) -> None:
    """Products on the CPU, in the dtypes that every framework has."""
    case.measure()


@pytest.mark.fwbench(
    gemm,
    # NumPy's takes seconds.
    frameworks=("tensorflow", "mxnet", "torch", "jax"),
    devices="cpu",
    sizes=(1_024,),
    dtypes=_HALVES,
)
def test_product_of_halves(case: Case) -> None:
    """On the CPU, of which not all have instructions for them."""
    case.measure()


@pytest.mark.fwbench(
    gemm, devices="gpu", sizes=(4_096, 8_192), dtypes=("float32", "float64", *_HALVES)
)
def test_product_on_gpu(case: Case) -> None:
    """Products on the first GPU, in every dtype, and in TF32."""
    case.measure()


@pytest.mark.fwbench(
    WORKLOADS["scaled_gemm"],
    frameworks=("torch", "jax"),
    devices="gpu",
    sizes=("4096x4096x4096", "8192x8192x8192"),
)
def test_product_of_float8(case: Case) -> None:
    """Products of float8, on GPUs that have them; others fail, and have no such ceiling."""
    case.measure()


@pytest.mark.fwbench(copy)
def test_copy(case: Case) -> None:
    """Copies of a large array, on every device."""
    case.measure()


@pytest.mark.fwbench(*COPIES, devices="gpu", sizes=(2**26,))
def test_copy_between_host_and_gpu(case: Case) -> None:
    """Both ways, from and to ordinary memory and page-locked memory."""
    case.measure()


# Launches take longer than such copies, so only a framework that knows the GPU's own time is asked.
@pytest.mark.fwbench(cached_copy, devices="gpu", frameworks="torch", sizes=_CACHED)
def test_copy_in_the_cache_of_a_gpu(case: Case) -> None:
    """Copies that a GPU's L2 cache holds, and larger ones."""
    case.measure()
