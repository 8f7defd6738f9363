"""Operations called by hand, and timed by what their framework's own users time with.

``instruments.py FRAMEWORK THREADS`` reads lines with the name of an operation and the number of one
of its quick sizes, and answers each with the median seconds of a call. Of fwbench it has the
operands alone. The instruments, after 0.1 s of calls that do not count:

- PyTorch: ``torch.utils.benchmark.Timer.blocked_autorange``;
- TensorFlow, which has none: ``timeit`` around a ``tf.function``;
- MXNet: a timer around one call and ``waitall``, as opperf's ``python_profile``;
- JAX: ``timeit`` around a compiled function and ``block_until_ready``, as its documentation has it.
"""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench import workloads
from fwbench.workloads.operation import Operation

#: Calls on arrays a, b and c, in PyTorch, TensorFlow, MXNet and JAX.
_CALLS = {
    "add": ("add(a, b)", "tf.add(a, b)", "a + b", "jnp.add(a, b)"),
    "batch_gemm": ("bmm(a, b)", "a @ b", "batch_dot(a, b)", "a @ b"),
    "conv2d_3x3": (
        "F.conv2d(a, b, padding=1)",
        "tf.nn.conv2d(a, b, 1, 'SAME')",
        "Convolution(a, b, kernel=(3, 3), pad=(1, 1), num_filter=len(b), no_bias=True)",
        "lax.conv_general_dilated(a, b, (1, 1), 'SAME', dimension_numbers=images)",
    ),
    "exp": ("exp(a)", "tf.exp(a)", "exp(a)", "jnp.exp(a)"),
    "gemm": ("matmul(a, b)", "a @ b", "dot(a, b)", "a @ b"),
    "layer_norm": (
        "F.layer_norm(a, b.shape, b, c, 1e-5)",
        "tf.nn.batch_normalization(a, *tf.nn.moments(a, -1, keepdims=True), c, b, 1e-5)",
        "LayerNorm(a, b, c, eps=1e-5)",
        "nn.standardize(a, -1, epsilon=1e-5) * b + c",
    ),
    "max_pool2d": (
        "F.max_pool2d(a, 2)",
        "tf.nn.max_pool2d(a, 2, 2, 'VALID')",
        "Pooling(a, pool_type='max', kernel=(2, 2), stride=(2, 2))",
        "lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), 'VALID')",
    ),
    "relu": ("relu(a)", "tf.nn.relu(a)", "Activation(a, act_type='relu')", "nn.relu(a)"),
    "sigmoid": (
        "sigmoid(a)",
        "tf.sigmoid(a)",
        "Activation(a, act_type='sigmoid')",
        "nn.sigmoid(a)",
    ),
    "softmax": ("softmax(a, -1)", "tf.nn.softmax(a)", "softmax(a)", "nn.softmax(a)"),
    "sort": ("sort(a, 1)[0]", "tf.sort(a, 1)", "sort(a, axis=1)", "jnp.sort(a, 1)"),
    "sum_rows": ("sum(a, 1)", "tf.reduce_sum(a, 1)", "sum(a, axis=1)", "jnp.sum(a, 1)"),
}

OPERATIONS: tuple[Operation, ...] = tuple(getattr(workloads, name) for name in _CALLS)

_WARM_UP_S, _TIMED_S, _BLOCKS = 0.1, 0.2, 40

#: Axes of images, and of their kernels, with the channels first.
_CHANNELS_FIRST = ((0, 3, 1, 2), (3, 2, 0, 1))


class ByHand(NamedTuple):
    """Names that calls are written with, and how to time them; compiled ones have channels last."""

    names: Mapping[str, Any]
    place: Callable[[NDArray[Any]], Any]
    median_s: Callable[[str, dict[str, Any]], float]
    compiled: Callable[[Any], Any] | None = None
    wait: str = ""


def torch(threads: int) -> ByHand:
    import torch
    from torch.utils.benchmark import Timer

    def place(values: NDArray[Any]) -> Any:
        array = torch.tensor(values)
        return array.contiguous(memory_format=torch.channels_last) if values.ndim == 4 else array

    def median_s(statement: str, names: dict[str, Any]) -> float:
        timer = Timer(statement, globals=names, num_threads=threads)
        _warm_up(timer)
        return timer.blocked_autorange(min_run_time=_TIMED_S).median

    return ByHand({**vars(torch), "F": torch.nn.functional}, place, median_s)


def tensorflow(threads: int) -> ByHand:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    return ByHand({"tf": tf}, tf.constant, _timeit, tf.function)


def mxnet(_: int) -> ByHand:
    np.bool = np.bool_  # type: ignore[attr-defined,unused-ignore]
    from mxnet import nd

    def place(values: NDArray[Any]) -> Any:
        # As by a loader's thread: OpenMP's own, which would put the engine's to sleep, end with it.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(nd.array, values).result()

    return ByHand(vars(nd), place, partial(_timeit, number=1), wait="; waitall()")


def jax(threads: int) -> ByHand:
    os.environ["PJRT_NPROC"] = str(threads)  # the threads of XLA's pool
    import jax

    names = {"jnp": jax.numpy, "lax": jax.lax, "nn": jax.nn, "images": ("NHWC", "HWIO", "NHWC")}
    return ByHand(names, jax.numpy.array, _timeit, jax.jit, ".block_until_ready()")


_FRAMEWORKS = (torch, tensorflow, mxnet, jax)


def _warm_up(timer: Any) -> int:
    calls, end_s = 0, time.perf_counter() + _WARM_UP_S
    while time.perf_counter() < end_s:
        timer.timeit(1)
        calls += 1
    return calls


def _timeit(statement: str, names: dict[str, Any], number: int | None = None) -> float:
    timer = timeit.Timer(statement, globals=names)
    calls = round(_warm_up(timer) * _TIMED_S / _WARM_UP_S)
    number = number or max(1, calls // _BLOCKS)
    return statistics.median(timer.repeat(max(3, calls // number), number)) / number


def _sets(operation: Operation, size: Any) -> Sequence[Sequence[NDArray[Any]]]:
    """The operands; where branches depend on them, as many sets as a processor cannot learn."""
    first = operation.operands(size)
    others = min(255, round(200_000 / first[0].size)) if operation.branching else 0
    return [first, *(operation.changed_operands(size, 2 + i, first) for i in range(others))]


def _median_s(framework: int, by_hand: ByHand, operation: Operation, size: Any) -> float:
    def place(values: NDArray[Any], position: int) -> Any:
        if by_hand.compiled is None and values.ndim == 4:
            values = values.transpose(_CHANNELS_FIRST[position])
        return by_hand.place(np.asarray(values, np.float32))

    call = _CALLS[operation.name][framework]
    sets = [[place(x, i) for i, x in enumerate(arrays)] for arrays in _sets(operation, size)]
    names = {**by_hand.names, **dict(zip("abc", sets[0], strict=False))}
    if by_hand.compiled is not None:
        given = ", ".join("abc"[: len(sets[0])])
        names["f"] = by_hand.compiled(eval(f"lambda {given}: {call}", names))  # noqa: S307 (above)
        call = f"f({given})"
    if len(sets) > 1:
        names["turns"] = itertools.cycle(arrays for (arrays,) in sets)
        call = call.replace("(a", "(next(turns)")
    return by_hand.median_s(call + by_hand.wait, names)


def main() -> None:
    """Answer each line with seconds."""
    which = [framework.__name__ for framework in _FRAMEWORKS].index(sys.argv[1])
    by_hand = _FRAMEWORKS[which](int(sys.argv[2]))
    by_name = {operation.name: operation for operation in OPERATIONS}
    for line in sys.stdin:
        name, number = line.split()
        size = by_name[name].by_preset.quick[int(number)]
        print(_median_s(which, by_hand, by_name[name], size), flush=True)


if __name__ == "__main__":
    main()
