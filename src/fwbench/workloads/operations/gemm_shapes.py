"""The matrix products of DeepBench, as shapes ``{m}x{n}x{k}``: m x k times k x n.

They occur in models of speech, translation and language. DeepBench lists them for training, and for
inference on servers and on devices (https://github.com/baidu-research/DeepBench,
``code/kernels/gemm_problems.h``); here each is listed once. There matrices lie column by column, as
BLAS has them, and here row by row: ``tn`` transposes the first operand in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

#: Output, batch and input: m, n and k.
_Problem = tuple[int, int, int]

_RECURRENT = (1760, 2048, 2560, 4096)
_GATED = ((7680, 2560), (6144, 2048), (4608, 1536), (8448, 2816), (3072, 1024))
_ATTENTION = (2816, 2048, 2560, 1536)
_VOCABULARY = 500_000


def _gated(layers: Iterable[int], batches: Iterable[int]) -> list[_Problem]:
    """Sizes of some of the layers with gates, by their number in the list."""
    return [(m, n, k) for (m, k), n in product([_GATED[i] for i in layers], batches)]


def _narrow(batches: Iterable[int], inputs: Iterable[int]) -> list[_Problem]:
    return [*product((512, 1024), batches, inputs)]


#: With neither operand transposed, or the first.
_TRAINING_BOTH = [
    *((m, n, m) for m, n in product(_RECURRENT, (16, 32, 64, 128, 7000))),
    *((m, n, k) for (m, n), k in product(((5124, 9124), (35, 8457)), _RECURRENT)),
    *_gated((0, 4), (16, 32, 64, 128)),
    *_gated((1, 2, 3), (16, 32)),
    *_gated(range(5), (24000, 48000)),
    *_narrow((8, 16), (_VOCABULARY,)),
    *_narrow((24000, 48000), _ATTENTION),
    (1024, 700, 512),
]
_TRAINING_NN = _narrow((16, 32), (512,))
_TRAINING_NT = [
    *((m, 7133, m) for m in _RECURRENT),
    (3072, 7435, 1024),
    (7680, 5481, 2560),
    *_narrow((16, 32), (512,)),
]
_SERVER = [
    *((m, n, k) for m, n, k in product((5124, 35), (700, 1500), (2048, 2560))),
    *_gated(range(5), (1, 2, 4, 1500, 3000, 6000)),
    *_narrow((1, 2, 4), (_VOCABULARY, 512)),
    *_narrow((1500, 3000, 6000), _ATTENTION),
    (1024, 700, 512),
]
_DEVICE = [
    *product((5124, 35), (700,), (2048,)),
    *((m, n, k) for (m, k), n in product(((3072, 1024), (3072, 128)), (1, 1500))),
    *((m, 1, k) for m, k in ((64, 1216), (128, 1024), (128, 1408), (4224, 128))),
    *((m, 1500, k) for m, k in ((128, 1280), (176, 1408), (4224, 176))),
]


def _texts(*problems: Iterable[_Problem]) -> tuple[str, ...]:
    """Each once, in the order of the elements that a product moves."""
    every = {problem for some in problems for problem in some}

    def key(problem: _Problem) -> tuple[int, _Problem]:
        m, n, k = problem
        return m * k + k * n + m * n, problem

    return tuple("x".join(map(str, problem)) for problem in sorted(every, key=key))


#: By what is transposed: neither operand, the first, the second.
GEMM = {
    "nn": _texts(_TRAINING_BOTH, _TRAINING_NN, _SERVER, _DEVICE),
    "tn": _texts(_TRAINING_BOTH),
    "nt": _texts(_TRAINING_NT),
}
