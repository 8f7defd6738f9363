"""TensorFlow: images."""

from __future__ import annotations

from typing import Any

from fwbench.frameworks.table import Call, Table
from fwbench.manifest import Gap


def _resize_bilinear(tf: Any, h: int, w: int) -> Any:
    """The result is float32 whatever the images are."""
    return Call("image.resize", size=(h, w), method="bilinear")(tf)


def _resize_nearest(tf: Any, h: int, w: int) -> Any:
    return Call("image.resize", size=(h, w), method="nearest")(tf)


def _im2col(tf: Any, *_: int) -> Any:
    ones = (1, 1, 1, 1)
    return Call(
        "image.extract_patches", sizes=(1, 3, 3, 1), strides=ones, rates=ones, padding="VALID"
    )(tf)


OPERATIONS: Table = {
    "resize_bilinear": _resize_bilinear,
    "resize_nearest": _resize_nearest,
    "im2col": _im2col,
}

GAPS: tuple[Gap, ...] = (
    Gap("tensorflow interpolates in float32", "resize_bilinear", dtype="float64"),
    *(
        Gap("tensorflow interpolates in float32", "resize_bilinear", None, "backward", dtype)
        for dtype in ("float16", "bfloat16")
    ),
    Gap("XLA has no gradient of resize_nearest", "resize_nearest", "xla", "backward"),
)
