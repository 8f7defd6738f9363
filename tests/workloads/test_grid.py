"""The grid has a cell for everything that was asked for, and a reason for every gap."""

from typing import Any

import pytest

from fwbench.errors import UsageError
from fwbench.options.options import Selection
from fwbench.terms.manifest import Absent, Device, Gap, Manifest
from fwbench.terms.presets import Sizes
from fwbench.workloads import WORKLOADS, from_numpy, gemm, grid, noop
from fwbench.workloads.grid import Cell
from support.fakes import cell, manifest, operation
from support.grids import BOTH, CPU, GPU, RICH
from support.tables import tabled


def cells(
    *operations: Any,
    manifests: dict[str, Manifest] | None = None,
    verify_only: bool = False,
    **requested: Any,
) -> list[Cell]:
    """The cells of a selection, one size unless it says otherwise."""
    selection = Selection(**{"sizes": (8,), **requested})
    more = grid.GridRequest(verify_only=verify_only)
    return list(grid.cells(operations, selection, manifests or BOTH, more=more))


def ids(*operations: Any, **requested: Any) -> list[str]:
    return [cell.id for cell in cells(*operations, **requested)]


def gaps(*operations: Any, **requested: Any) -> dict[str, str | None]:
    """The gap of each framework's cell, of one cell each."""
    return {cell.framework: cell.gap for cell in cells(*operations, **requested)}


def test_a_cell_is_named_by_what_it_is() -> None:
    """The id and the parameters say every part, the group all but who computes and how."""
    tested_cell = Cell(gemm, "torch", "gpu:0", "compile", "backward", "float16", 64)
    assert tested_cell.id == "gemm-torch-gpu:0-compile-backward-float16-64"
    assert tested_cell.group == "gemm gpu:0 backward float16 64"
    names = ("workload", "framework", "device", "execution", "direction", "dtype", "size")
    parts = ("gemm", "torch", "gpu:0", "compile", "backward", "float16", 64)
    assert tested_cell.params == dict(zip(names, parts, strict=True))


@pytest.mark.parametrize(
    ("change", "same_group"),
    [
        ({"framework": "other"}, True),
        ({"execution": "graph"}, True),
        ({"device": "gpu:0"}, False),
        ({"direction": "backward"}, False),
        ({"dtype": "float64"}, False),
        ({"size": 5}, False),
        ({"workload": operation(name="other")}, False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else str(value),
)
def test_groups_are_what_can_be_compared(change: dict[str, Any], same_group: bool) -> None:
    """Frameworks and executions of the same work share a group, all else does not; ids differ."""
    tested_cell, other = cell(operation()), cell(operation(), **change)
    assert (tested_cell.group == other.group) is same_group
    assert tested_cell.id != other.id


def test_ids_differ_within_a_grid() -> None:
    """No two cells of a grid have the same id."""
    result = ids(
        gemm,
        noop,
        sizes=(8, 16),
        dtypes=("float32", "float16"),
        directions=("forward", "backward"),
        executions=("eager", "graph", "compile"),
    )
    # Two operations, sizes, dtypes and directions; three executions on two devices, and one.
    assert len(result) == len({*result}) == 16 * (3 * 2 + 1)


def test_what_is_compared_comes_one_after_the_other() -> None:
    """The cells of a group are neighbours, frameworks in their order, executions within them."""
    assert ids(gemm, noop, sizes=(8, 16), devices=("cpu",)) == [
        f"{name}-{who}-cpu-{how}-forward-float32-{size}"
        for name in ("gemm", "noop")
        for size in (8, 16)
        for who, how in (("rich", "eager"), ("rich", "graph"), ("poor", "eager"))
    ]


def test_everything_that_was_asked_for_is_there_in_its_order() -> None:
    """Frameworks, devices, dtypes and directions come in the order in which they were asked for."""
    grid_cells = cells(
        gemm,
        frameworks=("poor", "rich"),
        devices=("gpu:0", "cpu"),
        dtypes=("float16", "float32"),
        directions=("backward", "forward"),
        executions=("eager",),
    )
    assert [(c.dtype, c.direction, c.device, c.framework) for c in grid_cells] == [
        (dtype, direction, device, framework)
        for dtype in ("float16", "float32")
        for direction in ("backward", "forward")
        for device in ("gpu:0", "cpu")
        for framework in ("poor", "rich")
    ]


def test_defaults_are_all_there_is_in_float32_forward() -> None:
    """Without a selection: every framework on every device it has, one dtype, one direction."""
    grid_cells = cells(gemm)
    assert {c.dtype for c in grid_cells} == {"float32"}
    assert {c.direction for c in grid_cells} == {"forward"}
    assert {(c.framework, c.device) for c in grid_cells} == {
        ("rich", "cpu"),
        ("rich", "gpu:0"),
        ("poor", "cpu"),
    }


def test_executions_on_request_run_on_request_only() -> None:
    assert {c.execution for c in cells(gemm)} == {"eager", "graph"}
    assert {c.execution for c in cells(gemm, executions=("compile",))} == {"compile"}


def test_an_execution_that_a_framework_has_not_makes_no_cell() -> None:
    """Executions are each framework's own: without this one there is nothing to skip."""
    assert {c.framework for c in cells(gemm, executions=("graph",))} == {"rich"}


@tabled
def test_sizes_by_preset_or_by_number(asked: Any, expected: tuple[int, ...]) -> None:
    """A preset is the operation's own, numbers are taken as they are, quick is the default."""
    sizes = Sizes(quick=(10, 20, 30), paper=(50,), full=(1, 1000))
    grid_cells = cells(
        operation(sizes=sizes), manifests={"rich": RICH}, sizes=asked, executions=("eager",)
    )
    assert tuple(dict.fromkeys(c.size for c in grid_cells)) == expected


def test_verifying_alone_takes_the_smallest_size_in_both_directions() -> None:
    """Where nothing is timed, the smallest quick size shows as much as any."""
    sizes = Sizes(quick=(30, 10, 20), full=(1,))
    grid_cells = cells(operation(sizes=sizes), verify_only=True, sizes=None)
    assert {(c.size, c.direction) for c in grid_cells} == {(10, "forward"), (10, "backward")}


def test_verifying_alone_keeps_to_what_was_asked_for() -> None:
    """Sizes, presets and directions that were asked for are taken also where nothing is timed."""
    sizes = Sizes(quick=(30, 10), full=(1, 2))
    workload = operation(sizes=sizes)
    grid_cells = cells(workload, verify_only=True, sizes="full", directions=("forward",))
    assert {(c.size, c.direction) for c in grid_cells} == {(1, "forward"), (2, "forward")}
    assert {c.size for c in cells(workload, verify_only=True, sizes=(7, 9))} == {7, 9}


@tabled
def test_a_gap_says_why(
    workload: str, asked: dict[str, Any], rich: str | None, poor: str | None
) -> None:
    """A cell that cannot be filled is there, with the first reason why not."""
    requested = {"executions": ("eager",), "devices": ("cpu",), **asked}
    result = gaps(WORKLOADS[workload], **requested)
    assert result == {"rich": rich, "poor": poor}


def test_a_framework_that_a_marker_names_in_vain_is_a_gap() -> None:
    """One test's marker does not refuse a session: its cells are there, and say what is missing."""
    selection = Selection(frameworks=("lost",), sizes=(8,))
    (cell,) = grid.cells([gemm], selection, {}, {"lost": Absent("lost", "not installed", "do")})
    assert cell.id == "gemm-lost-cpu-eager-forward-float32-8"
    assert cell.gap == "lost: not installed; do"


def test_there_is_nothing_to_compile_in_a_creation() -> None:
    """An operation that cannot be compiled has a gap for every execution but eager."""
    grid_cells = cells(
        from_numpy, manifests={"rich": RICH}, devices=("cpu",), executions=RICH.executions
    )
    nothing = "from_numpy has nothing to compile"
    gaps = {cell.execution: cell.gap for cell in grid_cells}
    assert gaps == {"eager": None, "graph": nothing, "compile": nothing}


def test_why_a_framework_lacks_an_operation_comes_before_that_it_is_not_written() -> None:
    """A gap that is declared for an operation without an implementation says more."""
    framework_manifest = manifest(operations=(), gaps=(Gap("fake has no products", "gemm"),))
    grid_cells = cells(gemm, noop, manifests={"fake": framework_manifest}, devices=("cpu",))
    reasons = {cell.workload.name: cell.gap for cell in grid_cells}
    assert reasons == {
        "gemm": "fake has no products",
        "noop": "fwbench has no fake implementation of noop",
    }


def test_an_operations_own_implementation_closes_the_gap() -> None:
    workload = operation()
    assert gaps(workload, executions=("eager",), devices=("cpu",)) == {
        "rich": "the declaration of double has no rich implementation",
        "poor": "the declaration of double has no poor implementation",
    }
    workload.implement("poor")(lambda np: np.square)
    assert gaps(workload, executions=("eager",), devices=("cpu",))["poor"] is None


@tabled
def test_a_frameworks_own_gaps_are_by_operation_dtype_and_kind_of_device(
    dtype: str, device: str, gap: str | None
) -> None:
    gpus = (CPU, GPU, Device("gpu:1", "another GPU"))
    declared = Gap("no kernel", "gemm", dtype="float16", device="gpu")
    framework_manifest = manifest(devices=gpus, gaps=(declared,))
    grid_cells = cells(
        gemm, manifests={"fake": framework_manifest}, dtypes=(dtype,), devices=(device,)
    )
    assert {c.gap for c in grid_cells} == {gap}
    assert {
        c.gap for c in cells(noop, manifests={"fake": framework_manifest}, dtypes=(dtype,))
    } == {None}


@tabled
def test_an_operation_may_have_a_meaning_in_some_dtypes_only(
    dtype: str, rich: str | None, poor: str
) -> None:
    """In others it has a gap in every framework, written or not."""
    workload = operation(dtypes=("float32", "float64"))
    workload.implement("rich")(lambda np: np.square)
    requested = {"executions": ("eager",), "devices": ("cpu",), "dtypes": (dtype,)}
    assert gaps(workload, **requested) == {"rich": rich, "poor": poor}


@pytest.mark.parametrize(
    ("dtypes", "default"),
    [
        (None, "float32"),
        (("float64", "float32"), "float32"),
        (("float64",), "float64"),
        (("complex64", "complex128"), "complex64"),
        ({"complex128", "complex64"}, "complex64"),
    ],
)
def test_without_a_dtype_an_operation_has_its_own(dtypes: Any, default: str) -> None:
    """The first of all dtypes that it has; what is asked for comes first."""
    workload = operation(dtypes=dtypes)
    assert {cell.dtype for cell in cells(workload)} == {default}
    assert {cell.dtype for cell in cells(workload, dtypes=("float16",))} == {"float16"}
    (unsized, *_) = cells(workload, sizes=("2x2",))
    assert (unsized.unsized, unsized.dtype) == (True, default)


def test_complex_dtypes_are_for_operations_that_have_them() -> None:
    """Others have a gap, which is said of the operation; and a framework may have none."""
    requested: dict[str, Any] = {"executions": ("eager",), "devices": ("cpu",)}
    manifests = {"rich": manifest(name="rich", dtypes=("float32", "complex64")), "poor": manifest()}
    reasons = {c.gap for c in cells(gemm, manifests=manifests, **requested, dtypes=("complex64",))}
    assert reasons == {"gemm has no complex64"}
    turned = operation(dtypes=("complex64",))
    turned.implement("rich")(lambda np: np.conj)
    grid_cells = [cell.gap for cell in cells(turned, manifests=manifests, **requested)]
    assert grid_cells == [None, "fake has no complex64"]
    assert {
        cell.gap for cell in cells(turned, manifests=manifests, **requested, dtypes=("float32",))
    } == {"double has no float32"}


ABSENT = {"broken": Absent("broken", "does not import", "try it alone")}


@tabled
def test_a_selection_of_what_is_there_passes(requested: dict[str, Any]) -> None:
    grid.check(Selection(**requested), BOTH, ABSENT)


@tabled
def test_a_selection_of_what_is_not_there_is_refused(
    requested: dict[str, Any], message: str
) -> None:
    """The message has what was asked, what there is, and the near miss if any."""
    with pytest.raises(UsageError) as caught:
        grid.check(Selection(**requested), BOTH, ABSENT)
    assert str(caught.value) == message


def test_what_is_missing_of_a_named_environment_keeps_nobody_from_running() -> None:
    """It becomes gaps; only where nothing else is asked for is there nothing to run."""
    grid.check(Selection(frameworks=("rich", "broken")), BOTH, ABSENT, apart={"broken"})
    alone = Selection(frameworks=("broken",))
    for selection, manifests, apart in ((alone, BOTH, {"broken"}), (Selection(), {}, ())):
        with pytest.raises(UsageError) as caught:
            grid.check(selection, manifests, ABSENT, apart=apart)
        assert str(caught.value) == (
            "no framework can be used here:\n  broken: does not import; try it alone"
        )


def test_an_implementation_is_the_frameworks_wherever_it_is_installed() -> None:
    mine = operation(implementations={"fake": lambda np: lambda x: 2.0 * x})
    here, there, other = (manifest(name=name) for name in ("fake", "fake@second", "other@fake"))
    manifests = {
        framework_manifest.name: framework_manifest for framework_manifest in (here, there, other)
    }
    selection = Selection(devices=("cpu",), executions=("eager",))
    gaps = {
        made_cell.framework: made_cell.gap for made_cell in grid.cells([mine], selection, manifests)
    }
    assert gaps["fake"] is gaps["fake@second"] is None
    assert gaps["other@fake"] == "the declaration of double has no other@fake implementation"
