"""Every operation computes what its name says, on the sizes it should, at a sane cost."""

import itertools
from typing import Any

import numpy as np
import pytest

from fwbench import workloads
from fwbench.errors import DeclarationError
from fwbench.terms.presets import PRESETS, Size, Sizes
from fwbench.workloads import (
    FAMILIES,
    LOOPS,
    OPERATIONS,
    Operation,
    dot,
    flatten,
    from_list,
    from_numpy,
    gemm,
    isnan,
    l2_normalize,
    noop,
    relu,
    sigmoid,
    softplus,
    softsign,
    tanh,
)
from fwbench.workloads.workload import Cost
from support.operations import for_each

every_operation = for_each(OPERATIONS)

#: The dimensions of each operation in the published results of Benchmark A.
PUBLISHED = {
    from_numpy: [*range(20_000, 100_000, 5_000)],
    from_list: [*range(5_000, 60_000, 5_000)],
    sigmoid: [*range(500, 60_000, 3_000)],
    relu: [*range(500, 60_000, 3_000)],
    tanh: [*range(500, 60_000, 3_000)],
    softplus: [*range(500, 20_000, 1_000)],
    softsign: [*range(500, 60_000, 3_000)],
    dot: [*range(1_000, 100_000, 10_000)],
    gemm: [*range(50, 600, 50)],
    flatten: [*range(50, 600, 50)],
    l2_normalize: [50, 150, 250, 350, 450],
}


def _odd(sizes: Any = (8,), **declared: Any) -> Operation:
    return Operation("odd", lambda size, rng: (), np.asarray, sizes, **declared)


def test_every_workload_can_be_imported_by_its_name() -> None:
    """Operations and training loops are in their list once, and found by their name."""
    listed = [*OPERATIONS, *LOOPS]
    assert len({member.name for member in listed}) == len(listed)
    for workload in listed:
        assert getattr(workloads, workload.name) is workload
    assert {member.name for member in listed} < {*dir(workloads)}


def test_every_operation_is_in_one_family() -> None:
    """It knows which, and a family that is shown has its members one after the other."""
    listed = [(name, workload) for name, family in FAMILIES.items() for workload in family]
    assert listed == [(workload.family, workload) for workload in OPERATIONS]


def test_a_name_that_no_workload_has_cannot_be_imported() -> None:
    with pytest.raises(ImportError, match="'sigmiod'"):
        from fwbench.workloads import sigmiod  # noqa: F401


@for_each(PUBLISHED)
def test_the_preset_paper_has_the_published_sizes(operation: Operation) -> None:
    """The preset `paper` measures exactly the dimensions that the report measured."""
    assert [*operation.by_preset.preset("paper")] == PUBLISHED[operation]


def test_what_was_not_published_is_not_in_the_preset_paper() -> None:
    others = {*OPERATIONS} - {*PUBLISHED}
    assert noop in others
    for other in others:
        assert not other.by_preset.preset("paper")


@every_operation
def test_sizes_are_positive_and_grow(operation: Operation) -> None:
    """Every size is positive; fwbench's own presets go from small to large, published ones do not.

    What others have published is measured in their order.
    """
    for preset in PRESETS:
        numbers = [operation.number_of(size) for size in operation.by_preset.preset(preset)]
        assert all(number > 0 for number in numbers)
        assert numbers or preset not in ("quick", "full")
        if preset in ("quick", "paper", "full"):
            assert all(smaller < larger for smaller, larger in itertools.pairwise(numbers))


@every_operation
def test_the_quick_preset_is_quick(operation: Operation) -> None:
    """A first look has three sizes, the largest of them worth a thread pool: by size or by work."""
    assert len(operation.by_preset.quick) == 3
    largest = operation.by_preset.quick[-1]
    cost = operation.cost_of("forward", largest)
    assert cost is not None
    sizes = [x.size for x in operation.operands(largest)]
    elements = max(operation.number_of(largest), cost.elements, *sizes, 0)
    assert elements >= 50_000 or cost.flops >= 1_000_000


def test_an_empty_preset_is_the_quick_one() -> None:
    """An operation that declares nothing for a preset of fwbench's is measured at its quick sizes.

    Other people's shapes it has or has not.
    """
    sizes = Sizes(quick=(1, 2), full=(3,), opperf=(4,))
    assert [sizes.preset(name) for name in PRESETS] == [(1, 2), (), (3,), (), (4,), ()]
    assert sizes.every == (1, 2, 3, 4)


@for_each([sigmoid, tanh, softplus, softsign])
def test_references_are_finite_where_arguments_are_large(operation: Operation) -> None:
    """References do not overflow to infinity or NaN where the function itself does not."""
    with np.errstate(over="ignore"):
        result = operation.reference(np.array([-800.0, 800.0]))
    limits = {sigmoid: (0, 1), tanh: (-1, 1), softplus: (0, 800), softsign: (-800 / 801, 800 / 801)}
    np.testing.assert_allclose(result, limits[operation], atol=1e-12)


def _small(operation: Operation) -> Size:
    """A size that is soon computed, whole numbers or shapes."""
    return operation.smallest if operation.form else 8


@every_operation
def test_operands_are_the_same_every_time(operation: Operation) -> None:
    """The same size has the same numbers whenever and wherever it is asked for."""
    size = _small(operation)
    for first, second in zip(operation.operands(size), operation.operands(size), strict=True):
        np.testing.assert_array_equal(first, second)


@every_operation
def test_operands_are_what_the_reference_takes(operation: Operation) -> None:
    """Operands are as wide as they can be, and finite where that is not the question."""
    for operand in operation.operands(_small(operation)):
        assert operand.dtype in (np.float64, np.complex128, np.int32, np.int64, np.bool_)
        assert np.all(np.isfinite(operand)) == (operation is not isnan)


def test_operands_differ_between_operations_and_sizes() -> None:
    """No two operations, sizes or operands of one operation have the same random numbers."""
    drawn = [
        operand.tobytes()
        for operation in OPERATIONS
        for size in operation.by_preset.quick[:2]
        for operand in operation.operands(size)
        if operand.dtype == np.float64 and np.any(operand % 1)
    ]
    assert len({*drawn}) == len(drawn) > len(OPERATIONS)


def test_relu_has_a_gradient_at_its_operands() -> None:
    """No operand of an activation is near zero, where relu has no slope."""
    (x,) = relu.operands(10_000)
    assert np.min(np.abs(x)) >= 0.1
    assert 0.4 < np.mean(x > 0) < 0.6


@pytest.mark.parametrize("size", [n for n in dot.by_preset.full if n <= 1_000_000])
def test_a_dot_product_is_neither_near_zero_nor_too_large(size: int) -> None:
    """It is some four times the root of its length, with terms of both signs.

    Neither cancelling nor a sum that outgrows its terms makes rounding look like an error.
    """
    x, y = dot.operands(size)
    assert 2 < np.dot(x, y) / np.sqrt(size) < 8
    assert np.min(x * y) < 0 < np.max(x * y)
    assert np.dot(x, y) < np.finfo(np.float16).max / 2


@pytest.mark.parametrize(
    "operands",
    [
        *([np.ones(3)], (1.0,), (np.ones(3), [1.0]), np.ones(3)),
        *((np.ones(3), np.array([None])), (np.array(["a"]),)),
    ],
    ids=repr,
)
def test_operands_of_another_kind_are_refused(operands: Any) -> None:
    """The message names the operation whose inputs are not a tuple of arrays."""
    operation = Operation("odd", lambda size, rng: operands, np.asarray, (8,))
    with pytest.raises(DeclarationError, match=r"inputs? of odd .*NumPy arrays"):
        operation.operands(8)


#: What these read of their operands depends on the size, or on the data: their own tests say how
#: much it is.
_READ_IN_PART = {
    *("copy_to_device", "copy_to_host"),  # across a bus, once
    *("cast_float16", "cast_bfloat16"),  # in two bytes
    *("slice", "strided_slice", "diag_part", "zeros_like", "arange"),
    *("gather_rows", "embedding", "gather_elements", "pick", "gather_nd", "boolean_mask"),
}


@for_each(
    operation
    for operation in OPERATIONS
    if not operation.creates and operation.name not in {"noop", *_READ_IN_PART}
)
def test_forward_reads_every_operand_and_writes_the_result(operation: Operation) -> None:
    """The elements that an operation moves are those that its operands and its results have.

    A complex number is two.
    """
    for size in operation.by_preset.quick[:2]:
        operands = operation.operands(size)
        results = operation.reference(*operands, *operation.parameters(size))
        written = results if isinstance(results, tuple) else (results,)
        cost = operation.cost_of("forward", size)
        assert cost is not None
        assert cost.elements == sum(
            np.size(x) * (1 + np.iscomplexobj(x)) for x in (*operands, *written)
        )


@every_operation
def test_costs_are_sane_at_every_size(operation: Operation) -> None:
    """No cost is negative, and the gradient costs more than forward wherever there is one."""
    for size in {size: None for name in PRESETS for size in operation.by_preset.preset(name)}:
        forward, backward = operation.cost_of("forward", size), operation.cost_of("backward", size)
        assert forward is not None
        assert min(forward.flops, forward.elements, forward.other_bytes) >= 0
        assert (backward is not None) == operation.differentiable
        if backward is not None:
            assert backward.flops >= forward.flops
            assert backward.elements > forward.elements


def test_bytes_follow_the_dtype() -> None:
    """Elements count in the dtype of the case, what is not an array does not."""
    cost = Cost(flops=1.0, elements=10.0, other_bytes=7.0)
    assert [cost.bytes_moved(size) for size in (2, 4, 8)] == [27.0, 47.0, 87.0]


def test_an_undeclared_cost_is_unknown() -> None:
    """An operation without costs has none in either direction, rather than zero."""
    operation = _odd()
    assert (operation.cost_of("forward", 8), operation.cost_of("backward", 8)) == (None, None)


@pytest.mark.parametrize("name", ["", "1st", "two words", "a-b", "a/b", "_x", "x\n"])
def test_names_that_would_break_ids_are_refused(name: str) -> None:
    """A name becomes part of case ids, so it is letters, digits and underscores."""
    with pytest.raises(DeclarationError, match="letters, digits and underscores"):
        Operation(name, lambda size, rng: (), np.asarray, (8,))


@pytest.mark.parametrize(
    "sizes",
    [(), (0,), (8, -1), (1.5,), (True,), ("8",), Sizes(()), Sizes((8,), full=(0,))],
    ids=str,
)
def test_sizes_that_cannot_be_are_refused(sizes: Any) -> None:
    """An operation has at least one size, and all of them are positive whole numbers."""
    with pytest.raises(DeclarationError, match="operation 'odd' has the sizes"):
        _odd(sizes)


def test_a_tuple_of_sizes_is_quick_and_full() -> None:
    """An operation that only names sizes is measured at them, and is in no published preset."""
    operation = _odd((8, 16))
    assert {name for name in PRESETS if operation.by_preset.preset(name) == (8, 16)} == {
        "quick",
        "full",
    }


def test_a_toggle_that_is_not_fwbenchs_is_refused() -> None:
    """An operation that is switched by it could never get its value."""
    with pytest.raises(DeclarationError, match=r"'odd' is switched by 'lop', .*known: workers, .*"):
        _odd(switched_by=("lop",))


def test_implementing_returns_the_implementation() -> None:
    """Declaring an implementation keeps it under the framework's name and hands it back."""
    operation = _odd()
    mine = operation.implement("torch")(lambda torch: torch.neg)
    assert operation.implementations == {"torch": mine}
    assert _odd().implementations == {}


def test_implementing_twice_is_refused() -> None:
    """A second implementation for the same framework is an error, and the first one stays."""
    operation = _odd()
    first = operation.implement("torch")(lambda torch: torch.neg)
    with pytest.raises(DeclarationError, match="odd is implemented twice for torch"):
        operation.implement("torch")(lambda torch: torch.abs)
    assert operation.implementations["torch"] is first
