"""Costs of operations, and terms of their elements, counted by hand at small sizes."""

from __future__ import annotations

import pytest

from fwbench.workloads.workload import Cost
from support.operations import named, sized
from support.tables import tabled


@pytest.mark.parametrize(
    ("name", "size", "forward", "backward"),
    [
        ("zeros_like", 7, Cost(0, 7), None),
        # A vector is read once, and its gradient is a sum over the rows.
        ("add_row", "10x3", Cost(30, 63), Cost(60, 126)),
        # Two products of d numbers a pair of positions, and six with the gradient.
        ("attention", "b2h3t10d4", Cost(600 * 21, 960), Cost(600 * 57, 2_640)),
        ("attention_causal", "b2h3t10d4", Cost(330 * 21, 960), Cost(330 * 57, 2_640)),
        # 5 p log2 p for p points; a complex number is two elements, read and written. Of real
        # numbers half of it; 8 of them become 5 complex ones. The gradient is one more transform.
        ("fft", "3x8", Cost(360, 96), Cost(720, 192)),
        ("rfft", "3x8", Cost(180, 54), Cost(360, 108)),
        ("fft2", "2x4x8", Cost(1_600, 256), Cost(3_200, 512)),
        ("resize_bilinear", "n2h3w4c5", Cost(3_360, 600), Cost(7_200, 1_200)),
        ("resize_nearest", "n2h3w4c5", Cost(0, 600), Cost(480, 1_200)),
        ("im2col", "n2h3w4c5", Cost(0, 300), Cost(180, 600)),
        # DeepBench's 14x14x512 with 512 kernels of 3x3, 16 images: 14.8 billion operations.
        (
            *("conv2d", "w14h14c512n16k512r3s3p1u1"),
            Cost(14_797_504_512, 16 * 14 * 14 * 1024 + 9 * 512 * 512),
            Cost(3 * 14_797_504_512, 3 * (16 * 14 * 14 * 1024 + 9 * 512 * 512)),
        ),
        # 2 sequences of 20 steps with 29 classes, and a path of 11 places for 5 labels.
        ("ctc_loss", "n2t20c29l5", Cost(5 * 1160 + 2640, 1172), Cost(13_400, 2 * 1172 + 1160)),
        # Elements that are read and written once; a sum where an element is there several times.
        ("transpose", 10, Cost(0, 200), Cost(0, 400)),
        ("tile", 10, Cost(0, 700), Cost(500, 1_400)),
        ("broadcast_to", 10, Cost(0, 110), Cost(90, 220)),
        # Elements that are not asked for need not be read; their gradients are written.
        ("slice", 10, Cost(0, 50), Cost(0, 175)),
        ("strided_slice", 10, Cost(0, 40), Cost(0, 160)),
        ("diag_part", 10, Cost(0, 20), Cost(0, 130)),
        ("pad_constant", "n2h3w4c5", Cost(0, 520), Cost(0, 1_040)),
        ("pad_reflect", "n2h3w4c5", Cost(0, 520), Cost(280, 1_040)),
        # Two bytes are written for each element.
        ("cast_float16", 10, Cost(0, 10, 20), None),
        ("cast_bfloat16", 10, Cost(0, 10, 20), None),
        # The least comparisons of a whole sort, and of finding five in order.
        ("sort", "3x8", Cost(72, 48), Cost(72, 96)),
        ("argsort", "3x8", Cost(72, 48), None),
        ("top_k", "3x8", Cost(42, 54), Cost(42, 108)),
        ("unique", 9, Cost(0, 14), None),
        ("searchsorted", "n20k7", Cost(35, 34), None),
        # One operand of one element, of as many as numbers, or of four categories.
        ("random_normal", 10, Cost(40, 11), None),
        ("random_poisson", 10, Cost(100, 20), None),
        ("random_categorical", 10, Cost(20, 14), None),
        ("random_shuffle", 10, Cost(0, 20), None),
        ("dropout", 10, Cost(20, 20), None),
        # Every array is read, and all but the gradient are written.
        ("sgd", 10, Cost(20, 30), None),
        ("momentum", 10, Cost(40, 50), None),
        ("adam", 10, Cost(120, 70), None),
    ],
)
def test_costs(name: str, size: str | int, forward: Cost, backward: Cost | None) -> None:
    operation = named(name)
    at = sized(operation, size)
    assert (operation.cost_of("forward", at), operation.cost_of("backward", at)) == (
        forward,
        backward,
    )


@tabled
def test_terms_are_what_an_element_adds_up(name: str, size: str | int, terms: int) -> None:
    """Sums of many terms say so, so that their rounding is allowed for."""
    operation = named(name)
    assert operation.terms(sized(operation, size)) == terms
