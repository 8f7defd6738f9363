"""Convolutions: references against sums over the kernel, shapes, costs, published shapes."""

import itertools
from typing import Any

import numpy as np
import pytest

from fwbench.errors import UsageError
from fwbench.terms.presets import deepbench
from fwbench.workloads import CONVOLUTION, Operation
from fwbench.workloads.workload import Cost
from support.operations import sized

_BY_NAME = {operation.name: operation for operation in CONVOLUTION}

#: A size of each convolution at which a loop over everything is soon done.
_TINY = {
    "conv2d": "w5h4c2n2k3r3s2p1u2",
    "conv2d_3x3": "n2h4w5c2k3",
    "conv2d_1x1": "n2h3w4c2k3",
    "conv2d_7x7_s2": "n1h6w5c2k2",
    "conv2d_5x20_s2": "n1h8w23c1k2",
    "conv2d_dilated": "n2h5w4c2k3",
    "conv2d_grouped": "n1h4w3c8k4",
    "depthwise_conv2d": "n2h3w4c3",
    "conv2d_transposed": "n2h3w2c2k3",
    "conv1d": "n2l5c2k3",
    "conv3d": "n1d3h4w2c2k3",
}

every_convolution = pytest.mark.parametrize("name", _TINY)


def _at(name: str) -> tuple[Operation, Any]:
    operation = _BY_NAME[name]
    return operation, sized(operation, _TINY[name])


def test_every_convolution_has_a_tiny_size() -> None:
    assert {*_TINY} == {*_BY_NAME}


def _meets(window: Any, place: tuple[int, ...], tap: tuple[int, ...]) -> tuple[int, ...]:
    """Where an element of the kernel lies in the input, when the kernel is at a place."""
    return tuple(
        window.stride * i + window.dilation * j - window.padding
        for i, j in zip(place, tap, strict=True)
    )


def _inside(place: tuple[int, ...], space: tuple[int, ...]) -> bool:
    return all(0 <= i < extent for i, extent in zip(place, space, strict=True))


def _terms(x: Any, w: Any, window: Any, at: tuple[int, ...]) -> Any:
    """The terms of one element of a convolution: input times kernel."""
    n, *place, k = at
    depth = x.shape[-1] // window.groups
    first = k // (window.filters // window.groups) * depth
    for *tap, c in np.ndindex(w.shape[:-1]):
        met = _meets(window, tuple(place), tuple(tap))
        if _inside(met, x.shape[1:-1]):
            yield float(x[(n, *met, first + c)]) * float(w[(*tap, c, k)])


def _transposed_terms(x: Any, w: Any, window: Any, at: tuple[int, ...]) -> Any:
    """The terms of one element of a transposed convolution: those that scatter into it."""
    n, *place, k = at
    for *source, c in np.ndindex(x.shape[1:]):
        for tap in np.ndindex(window.kernel):
            if _meets(window, tuple(source), tap) == tuple(place):
                yield float(x[(n, *source, c)]) * float(w[(*tap, k, c)])


@every_convolution
def test_references_are_sums_over_the_kernel(name: str) -> None:
    """Every element is the sum of input times kernel that the definition says, padding being 0."""
    operation, size = _at(name)
    x, w = operation.operands(size)
    (window,) = operation.parameters(size)
    terms = _transposed_terms if name == "conv2d_transposed" else _terms
    result = operation.reference(x, w, window)
    for at in np.ndindex(result.shape):
        assert result[at] == pytest.approx(sum(terms(x, w, window, at)), rel=1e-9, abs=1e-12)


@every_convolution
def test_costs_count_a_product_and_a_sum_for_each_place_of_the_kernel(name: str) -> None:
    """Two operations for each element of the kernel at each place; backward is three passes."""
    operation, size = _at(name)
    x, w = operation.operands(size)
    y = operation.reference(x, w, *operation.parameters(size))
    placed = x if name == "conv2d_transposed" else y
    flops = 2 * placed[..., 0].size * w.size
    elements = x.size + w.size + y.size
    assert operation.cost_of("forward", size) == Cost(flops, elements)
    assert operation.cost_of("backward", size) == Cost(3 * flops, 3 * elements)


@pytest.mark.parametrize("name", _TINY)
def test_results_are_of_order_one(name: str) -> None:
    """Kernels are scaled, so that float16 neither overflows nor vanishes."""
    operation = _BY_NAME[name]
    size = operation.by_preset.quick[0]
    result = operation.reference(*operation.operands(size), *operation.parameters(size))
    assert 0.3 < np.std(result) < 3


@pytest.mark.parametrize(
    ("shapes", "number"),
    [
        ([*map(str, _BY_NAME["conv2d"].by_preset.convnet)], 5),
        (deepbench("convolution")["training"], 90),
        (deepbench("convolution")["server"], 103),
        (deepbench("convolution")["device"], 15),
    ],
)
def test_published_shapes_can_be_read(shapes: tuple[str, ...], number: int) -> None:
    """Every one of them is a size of the general convolution, once, and has a result."""
    operation = _BY_NAME["conv2d"]
    assert len(shapes) == len({*shapes}) == number
    for size in (sized(operation, shape) for shape in shapes):
        (window,) = operation.parameters(size)
        assert min(window.extent(size[axis], i) for i, axis in enumerate("hw")) > 0


def test_the_layers_of_speech_follow_each_other() -> None:
    """DeepBench's second layer takes what its first one makes: 700x161 becomes 341x79."""
    operation = _BY_NAME["conv2d"]
    first, second = (sized(operation, deepbench("convolution")["training"][i]) for i in (0, 4))
    (window,) = operation.parameters(first)
    extents = [window.extent(first[axis], i) for i, axis in enumerate("hw")]
    assert extents == [second["h"], second["w"]]
    assert second["c"] == first["k"]


def test_a_padding_may_be_zero_and_a_stride_may_not() -> None:
    """The form of the general convolution says so, and a shape is written back as it was read."""
    operation = _BY_NAME["conv2d"]
    size = sized(operation, "w5h4c2n2k3r3s2p0u1")
    assert (str(size), size["p"]) == ("w5h4c2n2k3r3s2p0u1", 0)
    for wrong in ("w5h4c2n2k3r3s2p1u0", "w5h4c2n2k3r3s2p00u1", "w0h4c2n2k3r3s2p0u1"):
        with pytest.raises(UsageError, match="does not have the form"):
            sized(operation, wrong)


def test_sizes_of_one_preset_cost_ever_more() -> None:
    """From what is overhead alone to what a machine can show its rate at."""
    for operation in CONVOLUTION:
        costs = [operation.cost_of("forward", size) for size in operation.by_preset.quick]
        flops = [cost.flops for cost in costs if cost is not None]
        assert all(less < more for less, more in itertools.pairwise(flops))
