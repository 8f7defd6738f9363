"""Precisions that TensorFlow's programs for XLA ask for; needs no GPU.

``python -m support.tensorflow_programs float32 bfloat16`` prints by dtype the cells by the
precision of their products and convolutions::

    {"float32": {"highest": ["gemm forward"]}}

A build without CUDA has no kernels of XLA's for GPUs (``XLA_GPU_JIT``), and lowers for the CPU
alone. The precision is that of the operation, by the process's setting of TF32 (``matmul_op.cc``
and others in tensorflow/compiler/tf2xla/kernels), whatever the program is for.
"""

import json
import re
import sys
from collections import defaultdict
from typing import Any

from fwbench.cases.case import bind
from fwbench.frameworks.declared import manifests
from fwbench.frameworks.registry import load
from support.verification import Part, cells

_PRODUCT = re.compile(r" (?:dot|convolution)\(")

_PRECISION = re.compile(r"operand_precision=\{(\w+)")


def main() -> None:
    """Lower each cell of the execution ``xla``, as it is bound for a case, on the CPU."""
    framework = load("tensorflow", 1)
    asked: Any = defaultdict(lambda: defaultdict(list))
    for cell in cells(manifests()["tensorflow"], Part(sys.argv[1:])):
        if cell.execution != "xla" or cell.gap is not None:
            continue
        with framework.scope("cpu", cell.dtype):
            run: Any = bind(cell, framework).run
            program = run.func.experimental_get_compiler_ir(*run.args)(stage="hlo")
        products = [line for line in program.splitlines() if _PRODUCT.search(line)]
        for precision in {_precision(line) for line in products}:
            asked[cell.dtype][precision].append(f"{cell.workload.name} {cell.direction}")
    print(json.dumps(asked))


def _precision(line: str) -> str:
    found = _PRECISION.search(line)
    return found[1] if found else "default"


if __name__ == "__main__":
    main()
