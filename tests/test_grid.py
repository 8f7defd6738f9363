"""The grid has a cell for everything that was asked for, and a reason for every gap."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from fwbench import grid
from fwbench.errors import DataError, FwbenchError, UsageError
from fwbench.grid import Cell
from fwbench.manifest import Absent, Device, Manifest
from fwbench.options.options import Selection
from fwbench.presets import Schedule, Sizes
from fwbench.toggles import Values
from fwbench.workloads import cifar_cnn, from_numpy, gemm, lenet, mlp, noop, sentiment_lstm
from fwbench.workloads.data import Found, generated
from support.fakes import cell, manifest, operation

CPU, GPU = Device("cpu", "a CPU"), Device("gpu:0", "a GPU")

#: Two frameworks: one with everything, one with little, which trains no models.
RICH = manifest(
    name="rich", executions=("eager", "graph", "compile"), on_request=("compile",), gaps=()
)
POOR = manifest(
    name="poor",
    devices=(CPU,),
    executions=("eager",),
    on_request=(),
    dtypes=("float32",),
    operations=("gemm",),
    differentiable=False,
    gaps=(),
    training_executions=(),
    whole_loops=(),
    process_toggles=(),
    toggle_gaps=(),
)
BOTH = {"rich": RICH, "poor": POOR}


def cells(
    *operations: Any, of: dict[str, Manifest] | None = None, verify_only: bool = False, **asked: Any
) -> list[Cell]:
    """The cells of a selection, one size unless it says otherwise."""
    selection = Selection(**{"sizes": (8,), **asked})
    more = grid.Asked(verify_only=verify_only)
    return list(grid.cells(operations, selection, of or BOTH, more=more))


def ids(*operations: Any, **asked: Any) -> list[str]:
    """The ids of these cells."""
    return [cell.id for cell in cells(*operations, **asked)]


def gaps(*operations: Any, **asked: Any) -> dict[str, str | None]:
    """The gap of each framework's cell, of one cell each."""
    return {cell.framework: cell.gap for cell in cells(*operations, **asked)}


# Names


def test_a_cell_is_named_by_what_it_is() -> None:
    """The id and the parameters say every part, the group all but who computes and how."""
    one = Cell(gemm, "torch", "gpu:0", "compile", "backward", "float16", 64)
    assert one.id == "gemm-torch-gpu:0-compile-backward-float16-64"
    assert one.group == "gemm gpu:0 backward float16 64"
    assert one.params == {
        "workload": "gemm",
        "framework": "torch",
        "device": "gpu:0",
        "execution": "compile",
        "direction": "backward",
        "dtype": "float16",
        "size": 64,
    }


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
    one, other = cell(operation()), cell(operation(), **change)
    assert (one.group == other.group) is same_group
    assert one.id != other.id


def test_ids_differ_within_a_grid() -> None:
    """No two cells of a grid have the same id."""
    found = ids(
        gemm,
        noop,
        sizes=(8, 16),
        dtypes=("float32", "float16"),
        directions=("forward", "backward"),
        executions=("eager", "graph", "compile"),
    )
    # Two operations, sizes, dtypes and directions; three executions on two devices, and one.
    assert len(found) == len({*found}) == 16 * (3 * 2 + 1)


# Order and contents


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
    found = cells(
        gemm,
        frameworks=("poor", "rich"),
        devices=("gpu:0", "cpu"),
        dtypes=("float16", "float32"),
        directions=("backward", "forward"),
        executions=("eager",),
    )
    assert [(c.dtype, c.direction, c.device, c.framework) for c in found] == [
        (dtype, direction, device, framework)
        for dtype in ("float16", "float32")
        for direction in ("backward", "forward")
        for device in ("gpu:0", "cpu")
        for framework in ("poor", "rich")
    ]


def test_defaults_are_all_there_is_in_float32_forward() -> None:
    """Without a selection: every framework on every device it has, one dtype, one direction."""
    found = cells(gemm)
    assert {c.dtype for c in found} == {"float32"}
    assert {c.direction for c in found} == {"forward"}
    assert {(c.framework, c.device) for c in found} == {
        ("rich", "cpu"),
        ("rich", "gpu:0"),
        ("poor", "cpu"),
    }


def test_executions_on_request_run_on_request_only() -> None:
    """What takes long is left out by default, and in when it is asked for by name."""
    assert {c.execution for c in cells(gemm)} == {"eager", "graph"}
    assert {c.execution for c in cells(gemm, executions=("compile",))} == {"compile"}


def test_an_execution_that_a_framework_has_not_makes_no_cell() -> None:
    """Executions are each framework's own: without this one there is nothing to skip."""
    assert {c.framework for c in cells(gemm, executions=("graph",))} == {"rich"}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (None, (10, 20, 30)),
        ("quick", (10, 20, 30)),
        ("paper", (50,)),
        ("full", (1, 1000)),
        ((7, 5), (7, 5)),
    ],
)
def test_sizes_by_preset_or_by_number(asked: Any, expected: tuple[int, ...]) -> None:
    """A preset is the operation's own, numbers are taken as they are, quick is the default."""
    sizes = Sizes(quick=(10, 20, 30), paper=(50,), full=(1, 1000))
    found = cells(operation(sizes=sizes), of={"rich": RICH}, sizes=asked, executions=("eager",))
    assert tuple(dict.fromkeys(c.size for c in found)) == expected


def test_verifying_alone_takes_the_smallest_size_in_both_directions() -> None:
    """Where nothing is timed, the smallest quick size shows as much as any."""
    sizes = Sizes(quick=(30, 10, 20), full=(1,))
    found = cells(operation(sizes=sizes), verify_only=True, sizes=None)
    assert {(c.size, c.direction) for c in found} == {(10, "forward"), (10, "backward")}


def test_verifying_alone_keeps_to_what_was_asked_for() -> None:
    """Sizes, presets and directions that were asked for are taken also where nothing is timed."""
    sizes = Sizes(quick=(30, 10), full=(1, 2))
    one = operation(sizes=sizes)
    found = cells(one, verify_only=True, sizes="full", directions=("forward",))
    assert {(c.size, c.direction) for c in found} == {(1, "forward"), (2, "forward")}
    assert {c.size for c in cells(one, verify_only=True, sizes=(7, 9))} == {7, 9}


# Gaps


@pytest.mark.parametrize(
    ("of", "asked", "rich", "poor"),
    [
        (gemm, {}, None, None),
        (noop, {}, None, "noop is not written for poor"),
        (from_numpy, {}, None, None),
        (gemm, {"directions": ("backward",)}, None, "poor offers no gradients"),
        (noop, {"directions": ("backward",)}, "noop has no gradient", "noop has no gradient"),
        (gemm, {"dtypes": ("float16",)}, None, "poor has no float16"),
        (
            from_numpy,
            {"directions": ("backward",)},
            "from_numpy has no gradient",
            "from_numpy has no gradient",
        ),
        (
            gemm,
            {"directions": ("backward",), "dtypes": ("float16",)},
            None,
            "poor offers no gradients",
        ),
        (
            noop,
            {"dtypes": ("float16",)},
            None,
            "noop is not written for poor",
        ),
        (gemm, {"devices": ("gpu:0",)}, None, "poor sees no gpu:0"),
    ],
)
def test_a_gap_says_why(of: Any, asked: dict[str, Any], rich: str | None, poor: str | None) -> None:
    """A cell that cannot be filled is there, with the first reason why not."""
    found = gaps(of, **{"executions": ("eager",), "devices": ("cpu",), **asked})
    assert found == {"rich": rich, "poor": poor}


def test_a_framework_that_a_marker_names_in_vain_is_a_gap() -> None:
    """One test's marker does not refuse a session: its cells are there, and say what is missing."""
    selection = Selection(frameworks=("lost",), sizes=(8,))
    (cell,) = grid.cells([gemm], selection, {}, {"lost": Absent("lost", "not installed", "do")})
    assert cell.id == "gemm-lost-cpu-eager-forward-float32-8"
    assert cell.gap == "lost: not installed; do"


def test_there_is_nothing_to_compile_in_a_creation() -> None:
    """An operation that cannot be compiled has a gap for every execution but eager."""
    found = cells(from_numpy, of={"rich": RICH}, devices=("cpu",), executions=RICH.executions)
    nothing = "from_numpy has nothing to compile"
    gaps = {cell.execution: cell.gap for cell in found}
    assert gaps == {"eager": None, "graph": nothing, "compile": nothing}


def test_an_operations_own_implementation_closes_the_gap() -> None:
    """What an operation declares for a framework is as good as what the framework's file has."""
    one = operation()
    assert gaps(one, executions=("eager",), devices=("cpu",)) == {
        "rich": "double is not written for rich",
        "poor": "double is not written for poor",
    }
    one.implement("poor")(lambda np: np.square)
    assert gaps(one, executions=("eager",), devices=("cpu",))["poor"] is None


@pytest.mark.parametrize(
    ("dtype", "device", "gap"),
    [
        ("float16", "gpu:0", "no kernel"),
        ("float16", "gpu:1", "no kernel"),
        ("float16", "cpu", None),
        ("float32", "gpu:0", None),
    ],
)
def test_a_frameworks_own_gaps_are_by_operation_dtype_and_kind_of_device(
    dtype: str, device: str, gap: str | None
) -> None:
    """What a framework declares that it does not offer is a gap on every device of the kind."""
    gpus = (CPU, GPU, Device("gpu:1", "another GPU"))
    one = manifest(devices=gpus, gaps=(("gemm", "float16", "gpu", "no kernel"),))
    found = cells(gemm, of={"fake": one}, dtypes=(dtype,), devices=(device,))
    assert {c.gap for c in found} == {gap}
    assert {c.gap for c in cells(noop, of={"fake": one}, dtypes=(dtype,))} == {None}


# Selections that name what is not there

ABSENT = {"broken": Absent("broken", "does not import", "try it alone")}


@pytest.mark.parametrize(
    "selection",
    [
        Selection(),
        Selection(frameworks=("poor",)),
        Selection(devices=("gpu:0", "cpu")),
        Selection(executions=("compile",)),
        Selection(executions=("fit",)),
        Selection(dtypes=("bfloat16",), frameworks=("poor",)),
    ],
    ids=str,
)
def test_a_selection_of_what_is_there_passes(selection: Selection) -> None:
    """What at least one chosen framework has, or what gives a gap, may be asked for."""
    grid.check(selection, BOTH, ABSENT)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            {"frameworks": ("rihc",)},
            "unknown framework 'rihc'; known: rich, poor, broken. Did you mean 'rich'?",
        ),
        (
            {"frameworks": ("rich", "broken")},
            "framework 'broken' cannot be used here: does not import; try it alone",
        ),
        ({"devices": ("gpu:7",)}, "device 'gpu:7' is not there; rich, poor: cpu, gpu:0"),
        (
            {"devices": ("gpu:0",), "frameworks": ("poor",)},
            "device 'gpu:0' is not there; poor: cpu",
        ),
        (
            {"executions": ("eager", "grpah")},
            (
                "unknown execution (of rich, poor) 'grpah'; known: eager, graph, compile, fit. "
                "Did you mean 'graph'?"
            ),
        ),
        (
            {"executions": ("graph",), "frameworks": ("poor",)},
            "unknown execution (of poor) 'graph'; known: eager.",
        ),
        (
            {"dtypes": ("float23",)},
            (
                "unknown dtype 'float23'; known: float32, float64, float16, bfloat16. "
                "Did you mean 'float32'?"
            ),
        ),
    ],
    ids=str,
)
def test_a_selection_of_what_is_not_there_is_refused(asked: dict[str, Any], message: str) -> None:
    """The message has what was asked, what there is, and the near miss if any."""
    with pytest.raises(UsageError) as caught:
        grid.check(Selection(**asked), BOTH, ABSENT)
    assert str(caught.value) == message


def test_what_is_missing_of_a_named_environment_keeps_nobody_from_running() -> None:
    """It becomes gaps; only where nothing else is asked for is there nothing to run."""
    grid.check(Selection(frameworks=("rich", "broken")), BOTH, ABSENT, apart={"broken"})
    alone = Selection(frameworks=("broken",))
    with pytest.raises(UsageError) as caught:
        grid.check(alone, BOTH, ABSENT, apart={"broken"})
    assert str(caught.value) == (
        "no framework can be used here:\n  broken: does not import; try it alone"
    )


def test_an_implementation_is_the_frameworks_wherever_it_is_installed() -> None:
    """What is written for a framework is written for it in every environment, and for no other."""
    mine = operation(implementations={"fake": lambda np: lambda x: 2.0 * x})
    here, there, other = (manifest(name=name) for name in ("fake", "fake@second", "other@fake"))
    manifests = {one.name: one for one in (here, there, other)}
    selection = Selection(devices=("cpu",), executions=("eager",))
    gaps = {one.framework: one.gap for one in grid.cells([mine], selection, manifests)}
    assert gaps["fake"] is gaps["fake@second"] is None
    assert gaps["other@fake"] == "double is not written for other@fake"


def test_without_any_framework_the_reasons_are_said() -> None:
    """Where no framework can be used, the message says of each why not."""
    with pytest.raises(UsageError) as caught:
        grid.check(Selection(), {}, ABSENT)
    assert str(caught.value) == (
        "no framework can be used here:\n  broken: does not import; try it alone"
    )


# Training


def trained(
    *workloads: Any,
    of: tuple[str, ...] = ("rich",),
    toggles: Values | None = None,
    more: grid.Asked | None = None,
    **asked: Any,
) -> list[Cell]:
    """The cells of training loops and their parts, on the CPU unless it says otherwise."""
    selection = Selection(**{"devices": ("cpu",), **asked})
    manifests = {name: BOTH[name] for name in of}
    return list(grid.cells(workloads, selection, manifests, more=more or grid.Asked(toggles or {})))


def named(*workloads: Any, **asked: Any) -> list[str]:
    """The ids of these cells."""
    return [cell.id for cell in trained(*workloads, **asked)]


REAL = Found("mnist", "real", "mnist.npz", (), 60_000)


def test_a_training_cell_is_named_by_what_it_is() -> None:
    """Toggles stand in id and parameters, generated data in id and group, where nobody misses it.

    Toggles are compared side by side, results on generated data and on real data are not.
    """
    toggles = (("workers", "2"), ("decay", "on"))
    facts = (lenet, "torch", "cpu", "graph", "train", "float32", 200)
    one = Cell(*facts, toggles=toggles, data=generated("mnist"))
    assert one.id == "lenet-torch-cpu-graph-train-float32-200-workers:2-decay:on-synthetic"
    assert one.group == "lenet cpu train float32 200 synthetic"
    assert one.params == {
        "workload": "lenet",
        "framework": "torch",
        "device": "cpu",
        "execution": "graph",
        "direction": "train",
        "dtype": "float32",
        "size": 200,
        "workers": "2",
        "decay": "on",
    }
    real = Cell(*facts, data=REAL)
    assert real.id == "lenet-torch-cpu-graph-train-float32-200"
    assert real.group == "lenet cpu train float32 200"


def test_loops_steps_and_loaders() -> None:
    """A loop and a step are run in every execution of training, a loader in one alone."""
    assert named(mlp, mlp.step, mlp.loader) == [
        "mlp-rich-cpu-eager-train-float32-128-synthetic",
        "mlp-rich-cpu-graph-train-float32-128-synthetic",
        "mlp-rich-cpu-fit-train-float32-128-synthetic",
        "mlp_step-rich-cpu-eager-train-float32-128",
        "mlp_step-rich-cpu-graph-train-float32-128",
        "mlp_step-rich-cpu-fit-train-float32-128",
        "mlp_loader-rich-cpu-eager-train-float32-128-synthetic",
    ]


def test_a_loader_makes_no_cell_in_another_execution() -> None:
    """Batches are loaded alike whatever is done with them."""
    assert named(lenet.loader, executions=("graph", "fit")) == []
    assert len(named(lenet.loader, executions=("eager", "graph"))) == 1


@pytest.mark.parametrize("directions", [None, ("forward",), ("backward", "forward")], ids=str)
@pytest.mark.parametrize("verify_only", [False, True])
def test_the_direction_of_training_is_its_own(directions: Any, verify_only: bool) -> None:
    """Whatever is asked of operations, and once."""
    more = grid.Asked(verify_only=verify_only)
    found = trained(mlp, more=more, directions=directions, executions=("eager",))
    assert [cell.direction for cell in found] == ["train"]


@pytest.mark.parametrize(
    ("of", "asked", "rich", "poor"),
    [
        (mlp, {}, None, "poor trains no models"),
        (mlp.step, {}, None, "poor trains no models"),
        (mlp.loader, {}, None, "poor trains no models"),
        (mlp, {"dtypes": ("float64",)}, None, "poor trains no models"),
        (mlp, {"dtypes": ("float16",)}, "rich trains in no float16", "poor trains no models"),
        (mlp, {"devices": ("gpu:0",)}, None, "poor trains no models"),
        (mlp, {"devices": ("gpu:7",)}, "rich sees no gpu:7", "poor trains no models"),
        (mlp.loader, {"devices": ("gpu:7",)}, "rich sees no gpu:7", "poor trains no models"),
    ],
)
def test_a_gap_of_training_says_why(
    of: Any, asked: dict[str, Any], rich: str | None, poor: str | None
) -> None:
    """A framework that trains no models has one cell, whose gap says so before anything else."""
    found = trained(of, of=("rich", "poor"), **{"executions": ("eager",), **asked})
    assert {cell.framework: cell.gap for cell in found} == {"rich": rich, "poor": poor}


def test_a_framework_that_trains_no_models_has_one_gap() -> None:
    """Not one for each execution that it has for operations or that others train in."""
    assert named(mlp, of=("poor",)) == ["mlp-poor-cpu-eager-train-float32-128-synthetic"]


def test_a_whole_loop_has_no_step() -> None:
    """The gap is of the step alone, and comes before what a framework lacks."""
    (loop,) = trained(mlp, executions=("fit",))
    (step,) = trained(mlp.step, executions=("fit",), dtypes=("float16",))
    assert loop.gap is None
    assert step.gap == "fit is a whole loop: it has no step of its own"


@pytest.mark.parametrize(
    ("device", "dtype", "gap"),
    [("cpu", "float64", "no kernel"), ("cpu", "float32", None), ("gpu:0", "float64", None)],
)
def test_a_frameworks_own_gap_is_of_the_loop_and_its_parts(
    device: str, dtype: str, gap: str | None
) -> None:
    """What it declares of a model, in a dtype and on a kind of device."""
    one = manifest(gaps=(("lenet", "float64", "cpu", "no kernel"),))
    selection = Selection(devices=(device,), dtypes=(dtype,), executions=("eager",))
    found = grid.cells([lenet, lenet.step, lenet.loader, mlp], selection, {"fake": one})
    assert [cell.gap for cell in found] == [gap, gap, gap, None]


@pytest.mark.parametrize(
    ("of", "name"),
    [(cifar_cnn, "cifar_cnn"), (cifar_cnn.step, "cifar_cnn_step")],
    ids=["loop", "step"],
)
def test_a_preset_that_leaves_a_workload_out_gives_one_skip(of: Any, name: str) -> None:
    """Not one for each framework and execution; it says how the workload can be asked for."""
    for sizes in (None, "quick"):
        (only,) = trained(of, of=("rich", "poor"), sizes=sizes)
        assert only.gap == (
            f"{name} is not in the preset quick: ask for it by another --fw-size (paper, full) "
            "or by a batch size (32)"
        )
    assert {cell.gap for cell in trained(of, sizes="full", executions=("eager",))} == {None}
    assert {cell.gap for cell in trained(of, sizes=(16,), executions=("eager",))} == {None}


def test_verifying_alone_leaves_no_workload_out() -> None:
    """Nothing is timed, so a model that trains for minutes is checked like any."""
    (one,) = trained(cifar_cnn, more=grid.Asked(verify_only=True), executions=("eager",))
    assert (one.gap, one.size) == (None, 8)


def test_a_batch_cannot_be_larger_than_the_data() -> None:
    """The message has both numbers, where the data is from, and the option; a step needs none."""
    examples = generated("mnist").train_examples
    for of in (mlp, mlp.loader):
        found = trained(of, sizes=(examples, examples + 1))
        assert {cell.problem for cell in found if cell.size == examples} == {None}
        (problem,) = {cell.problem for cell in found if cell.size > examples}
        assert problem == (
            f"{of.name}: a batch of {examples + 1} is larger than the {examples} training "
            "examples of mnist (synthetic); give a smaller --fw-size, "
            f"or leave {of.name} out (-k)"
        )
    assert {cell.problem for cell in trained(mlp.step, sizes=(examples + 1,))} == {None}


def test_data_is_looked_for_by_name_and_where_it_is_needed() -> None:
    """A loop and a loader have the data set as it was found, a step has none."""
    asked = []

    def find(name: str) -> Found:
        asked.append(name)
        return REAL

    more = grid.Asked(find=find)
    found = trained(mlp, mlp.step, mlp.loader, gemm, more=more, executions=("eager",), sizes=(8,))
    assert [cell.data for cell in found] == [REAL, None, REAL, None]
    assert asked == ["mnist", "mnist"]


# Schedules


def schedules(*workloads: Any, more: grid.Asked | None = None, **asked: Any) -> set[Any]:
    """The schedules of these cells."""
    found = trained(*workloads, more=more, executions=("eager",), **asked)
    return {cell.schedule for cell in found}


@pytest.mark.parametrize(
    ("sizes", "preset"), [(None, "quick"), ("quick", "quick"), ("paper", "paper"), ((64,), "quick")]
)
def test_a_schedule_is_the_presets(sizes: Any, preset: str) -> None:
    """A batch size is trained as long as the first preset says; a loader has the loop's schedule.

    A step and an operation have none.
    """
    assert schedules(lenet, lenet.loader, sizes=sizes) == {lenet.schedules[preset]}
    assert schedules(lenet.step, sizes=sizes) == schedules(gemm, sizes=sizes) == {None}


def test_what_is_asked_goes_over_the_presets_schedule() -> None:
    """Each preset's own schedule is what the options are asked to change."""
    more = grid.Asked(schedule=lambda preset: Schedule(preset.epochs + 1, 0, 7))
    assert schedules(lenet, more=more) == {Schedule(4, 0, 7)}
    assert schedules(lenet, more=more, sizes="paper") == {Schedule(16, 0, 7)}


@pytest.mark.parametrize("error", [UsageError, DataError])
def test_what_is_wrong_with_a_training_is_a_problem_of_its_cells(
    error: type[FwbenchError],
) -> None:
    """Not of the grid: others may be what is left when these are deselected."""
    refuse = Mock(side_effect=error("no epoch is left"))
    (problem,) = {
        cell.problem for cell in trained(lenet, gemm, more=grid.Asked(schedule=refuse))
    } - {None}
    assert problem == "lenet: no epoch is left, or leave lenet out (-k)"


def test_a_direction_is_asked_of_operations() -> None:
    """Loops and their parts have none; once, for all of them."""
    for of in (mlp, mlp.step, mlp.loader):
        (only,) = trained(of, directions=("backward",))
        assert only.gap == f"--fw-direction is for operations, and {of.name} is trained"


def test_batches_that_are_asked_for_are_trained_a_few_steps() -> None:
    """Whatever the preset, also of what the preset quick leaves out."""
    for of in (mlp, cifar_cnn):
        assert {cell.schedule for cell in trained(of, sizes=(8,))} == {of.schedules["quick"]}


# Toggles


def test_toggles_are_combined() -> None:
    """Every value of one with every value of the others, in the toggles' own order."""
    toggles = {"decay": ("on",), "workers": ("0", "2"), "onednn": ("off", "on")}
    assert named(mlp, toggles=toggles, executions=("eager",)) == [
        f"mlp-rich-cpu-eager-train-float32-128-workers:{w}-decay:on-onednn:{o}-synthetic"
        for w in ("0", "2")
        for o in ("off", "on")
    ]


def test_what_toggles_compare_comes_one_after_the_other() -> None:
    """Within an execution, since they are of one group."""
    found = trained(mlp, toggles={"workers": ("0", "2")}, executions=("eager", "graph"))
    assert [(cell.execution, *cell.toggles) for cell in found] == [
        (execution, ("workers", value)) for execution in ("eager", "graph") for value in ("0", "2")
    ]
    assert len({cell.group for cell in found}) == 1


@pytest.mark.parametrize(
    ("of", "shown"),
    [
        (mlp, ["workers", "decay"]),
        (mlp.step, []),
        (mlp.loader, ["workers"]),
        (sentiment_lstm, ["workers", "sparse", "decay"]),
        (sentiment_lstm.step, ["sparse"]),
        (sentiment_lstm.loader, ["workers"]),
        (gemm, []),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_toggle_that_makes_no_difference_is_not_there(of: Any, shown: list[str]) -> None:
    """It makes no second case, and stands in no id, wherever it would change nothing."""
    toggles = {"workers": ("0", "2"), "sparse": ("on",), "decay": ("on",)}
    found = trained(of, toggles=toggles, sizes=(8,), executions=("eager",))
    assert [[name for name, _ in cell.toggles] for cell in found] == [shown] * len(found)
    assert len(found) == (2 if "workers" in shown else 1)


def test_a_toggle_of_the_process_is_for_operations_as_well() -> None:
    """Each value is a case, and an environment variable of the worker that runs it."""
    asked = {"toggles": {"onednn": ("on", "off")}, "executions": ("eager",)}
    found = trained(gemm, sizes=(8,), **asked)
    assert [cell.id for cell in found] == [
        "gemm-rich-cpu-eager-forward-float32-8-onednn:on",
        "gemm-rich-cpu-eager-forward-float32-8-onednn:off",
    ]
    environments = [{"FWBENCH_ONEDNN": "on"}, {"FWBENCH_ONEDNN": "off"}]
    assert [cell.environment for cell in found] == environments
    assert [cell.environment for cell in trained(mlp.step, **asked)] == environments


def test_other_toggles_need_no_process_of_their_own() -> None:
    """Nor does a case that none was asked for."""
    found = trained(mlp, toggles={"workers": ("0", "2"), "decay": ("on",)})
    assert [cell.environment for cell in (*found, *trained(gemm, sizes=(8,)))] == [{}] * 8


def test_a_toggle_that_a_framework_lacks_is_a_gap() -> None:
    """One of a process; for each value, since each was asked for."""
    toggles = {"onednn": ("on", "off")}
    found = trained(gemm, of=("poor",), toggles=toggles, sizes=(8,))
    assert [cell.gap for cell in found] == ["poor has no toggle onednn"] * 2
    # What is not written at all is said first.
    (first, _) = trained(mlp, of=("poor",), toggles=toggles)
    assert first.gap == "poor trains no models"


@pytest.mark.parametrize(
    ("of", "execution", "sparse", "gap"),
    [
        (sentiment_lstm, "fit", None, "fit leaves gradients sparse"),
        (sentiment_lstm, "fit", "off", "fit leaves gradients sparse"),
        (sentiment_lstm, "fit", "on", None),
        (sentiment_lstm, "eager", "off", None),
        (mlp, "fit", "off", None),
    ],
    ids=str,
)
def test_what_an_execution_cannot_do_is_a_gap(
    of: Any, execution: str, sparse: str | None, gap: str | None
) -> None:
    """Also where nobody asked for the toggle and its default is what it cannot do."""
    toggles: Values = {"sparse": (sparse,)} if sparse else {}
    (one,) = trained(of, toggles=toggles, sizes=(64,), executions=(execution,))
    assert one.gap == gap


def test_a_toggle_has_its_default_where_it_was_not_asked_for() -> None:
    """What a case asks its own toggles for always has an answer."""
    one = Cell(*(mlp, "torch", "cpu", "eager", "train", "float32", 8), toggles=(("workers", "2"),))
    assert [one.toggle(name) for name in ("workers", "sparse", "decay", "onednn")] == [
        *("2", "off", "off", "")
    ]
