"""Programs for XLA that TensorFlow makes of the operations, read as its compiler has them."""

import os
from pathlib import Path

from support import programs
from support.tables import tabled
from support.verification import installed

#: XLA's own factorizations ask for it in their products, whatever the setting.
_ALWAYS_HIGHEST = {
    f"{operation} {direction}"
    for operation in ("solve", "svd", "svd_values")
    for direction in ("forward", "backward")
}


@installed("tensorflow")
@tabled
def test_products_ask_for_the_precision_of_their_dtype(tf32: str, precision: str) -> None:
    """On GPUs float32 is float32, and bfloat16 has the kernels that users get."""
    places = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    asked = programs.result(
        *("-m", "support.tensorflow_programs", "float32", "bfloat16"),
        variables={
            "PYTHONPATH": os.pathsep.join(filter(None, places)),
            "FWBENCH_TF32": tf32,
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
    )
    float32, bfloat16 = asked["float32"], asked["bfloat16"]
    assert float32.keys() == {precision, "highest"}
    assert len(float32[precision]) >= 60
    if precision != "highest":
        assert {*float32["highest"]} == _ALWAYS_HIGHEST
    for operation in ("gemm", "conv2d", "lstm", "attention"):
        assert {f"{operation} forward", f"{operation} backward"} <= {*float32[precision]}
    assert bfloat16.keys() == {"default"}
    assert len(bfloat16["default"]) >= 50
