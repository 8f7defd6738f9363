"""fwbench reports what a bare, hand-written loop finds.

This file is a script and a test file in one. The script runs pytest on the file: the tests measure
sigmoid and gemm, from 8 elements to 1024 x 1024, in each framework's worker, and beside every
measurement a loop of the framework's own call, as one would write it by hand, with as many calls a
round, as many rounds, and the wait that the framework needs. Which of the two comes first
alternates. The loop looks the function up once, as fwbench does: ``torch.sigmoid`` by name takes 70
ns, because the module has a ``__getattr__``, which is 7 % of its time for 8 elements. The figure is
the median, over all pairs of a few sessions, of the median that fwbench
reported over that of the loop beside it; it must be within 5 % of 1. TensorFlow's graph of
l2_normalize is among them: made of a partial function it took 1.9 times as long. What comes and
goes for longer than a pair takes is in both: other load, and the two speeds of MXNet, whose threads
wake up three times as fast on a processor that has not gone idle. In brackets the quartiles of the
ratios.

JAX is not among them: how long its calls take depends on what a program does between them, and
own_tools.py compares it.

In the same way noop, what the harness itself costs, is compared with an empty Python call in such a
loop, with the framework's wait: it must cost at most 0.15 us more.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import bounds
import pairs
import pytest

from fwbench.cases.case import Case
from fwbench.workloads import gemm, l2_normalize, noop, sigmoid
from fwbench.workloads.operation import Operation

_WITHIN = 0.05
_NOOP_BOUND_US = 0.15

_LOOP = """\
def loop(calls, {name}, a=None, b=None, graph=None):
    f = {function}
    {wait}
    start = perf_counter()
    for _ in range(calls):
        {call}
        {wait}
    return (perf_counter() - start) / calls
"""


@dataclass(frozen=True)
class _Idiom:
    """A loop written by hand.

    Attributes:
        name: what the framework's namespace is called.
        place: makes an array of the framework's from NumPy's.
        calls: of the framework, by operation: a function, and its call as ``f``; the arrays are
            called a and b.
        wait: for the result of each call.
        graphs: what makes a compiled function, by operation; the calls have it as ``graph``.
    """

    name: str
    place: Callable[[Any, Any], Any]
    calls: dict[str, tuple[str, str]]
    wait: str = "pass"
    graphs: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    def loop(self, function: str, call: str, wait: str) -> Callable[..., float]:
        """One round of calls, in seconds a call."""
        names: dict[str, Any] = {"perf_counter": time.perf_counter, "empty": _empty}
        text = _LOOP.format(name=self.name, function=function, call=call, wait=wait)
        exec(text, names)  # noqa: S102 (see above)
        made: Callable[..., float] = names["loop"]
        return made


_IDIOMS = {
    "jax": _Idiom(
        "jax",
        lambda jax, x: jax.numpy.asarray(x, dtype="float32"),
        {
            "sigmoid": ("jax.nn.sigmoid", "f(a).block_until_ready()"),
            "gemm": ("jax.numpy.matmul", "f(a, b).block_until_ready()"),
        },
    ),
    "mxnet": _Idiom(
        "nd",
        lambda nd, x: nd.array(x, dtype="float32"),
        # Gluon's layer calls the first, and not ``nd.sigmoid``.
        {"sigmoid": ("nd.Activation", "f(a, act_type='sigmoid')"), "gemm": ("nd.dot", "f(a, b)")},
        wait="nd.waitall()",
    ),
    "numpy": _Idiom(
        "np",
        lambda np, x: np.array(x, dtype="float32"),
        {
            "sigmoid": ("lambda a: 1.0 / (1.0 + np.exp(-a))", "f(a)"),
            "gemm": ("np.matmul", "f(a, b)"),
        },
    ),
    "tensorflow": _Idiom(
        "tf",
        lambda tf, x: tf.constant(x, dtype="float32"),
        {
            "sigmoid": ("tf.math.sigmoid", "f(a)"),
            "gemm": ("tf.linalg.matmul", "f(a, b)"),
            "l2_normalize": ("graph", "f(a)"),
        },
        graphs={"l2_normalize": lambda tf: tf.function(lambda a: tf.math.l2_normalize(a, axis=1))},
    ),
    "torch": _Idiom(
        "torch",
        lambda torch, x: torch.tensor(x, dtype=torch.float32),
        {"sigmoid": ("torch.sigmoid", "f(a)"), "gemm": ("torch.matmul", "f(a, b)")},
    ),
}


def _empty() -> None:
    pass


_ROUNDS = pairs.Rounds()


def _bare_s(case: Case) -> float:
    """The median of the hand-written loop, in seconds a call."""
    rounds, calls = _ROUNDS.take(case)
    idiom = _IDIOMS[case.framework.name]
    operation = case.cell.workload
    assert isinstance(operation, Operation)
    namespace = case.framework.namespace
    if operation.name == noop.name:
        bare = partial(idiom.loop("empty", "f()", idiom.wait), calls, namespace)
    else:
        loop = idiom.loop(*idiom.calls[operation.name], idiom.wait)
        arrays = [idiom.place(namespace, x) for x in operation.operands(case.cell.size)]
        bare = partial(loop, calls, namespace, *arrays)
    if operation.name in idiom.graphs:
        bare.keywords["graph"] = idiom.graphs[operation.name](namespace)
        bare()  # which compiles it
    return statistics.median(bare() for _ in range(rounds))


_in_turns = pytest.mark.parametrize("turn", range(8))


@_in_turns
@pytest.mark.fwbench(sigmoid, sizes=(8, 1_000, 1_000_000), executions="eager")
def test_sigmoid(case: Case, turn: int) -> None:
    pairs.measure(case, turn, _bare_s)


@_in_turns
@pytest.mark.fwbench(gemm, sizes=(8, 64, 1_024), executions="eager")
def test_gemm(case: Case, turn: int) -> None:
    pairs.measure(case, turn, _bare_s)


@_in_turns
@pytest.mark.fwbench(l2_normalize, sizes=(250,), executions="graph", frameworks="tensorflow")
def test_l2_normalize(case: Case, turn: int) -> None:
    pairs.measure(case, turn, _bare_s)


@_in_turns
@pytest.mark.fwbench(noop, sizes=(8,), executions="eager")
def test_noop(case: Case, turn: int) -> None:
    pairs.measure(case, turn, _bare_s)


def _finding(key: tuple[str, str, str], times_s: list[tuple[float, float]]) -> bounds.Finding:
    if key[1] == noop.name:
        more_us = 1e6 * statistics.median(fwbench_s - bare_s for fwbench_s, bare_s in times_s)
        what = " ".join(map(str, key))
        return bounds.at_most(f"{what} - empty call", more_us, _NOOP_BOUND_US, "us")
    return pairs.ratio(key, times_s, _WITHIN)


def main() -> int:
    """Measure, print, and give the exit status."""
    given = bounds.arguments(__doc__, rounds=3)
    measured = pairs.measured(__file__, given.rounds, f"--fw={','.join(_IDIOMS)}")
    return bounds.conclude([_finding(*item) for item in sorted(measured.items())])


if __name__ == "__main__":
    sys.exit(main())
