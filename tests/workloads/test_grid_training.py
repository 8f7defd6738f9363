"""The grid has training loops, their parts, and every toggle that makes a difference."""

import re
from typing import Any
from unittest.mock import Mock

import pytest

from fwbench.errors import DataError, FwbenchError, UsageError
from fwbench.options.options import Selection
from fwbench.terms.manifest import Gap
from fwbench.terms.presets import Schedule
from fwbench.terms.toggles import Values
from fwbench.workloads import (
    PHOTOS,
    WORKLOADS,
    cifar_cnn,
    gaps,
    gemm,
    grid,
    lenet,
    mlp,
    sentiment_lstm,
)
from fwbench.workloads.data import Found, generated
from fwbench.workloads.grid import Cell
from support.fakes import manifest
from support.grids import BOTH
from support.tables import tabled


def trained(
    *workloads: Any,
    frameworks: tuple[str, ...] = ("rich",),
    toggles: Values | None = None,
    more: grid.GridRequest | None = None,
    **requested: Any,
) -> list[Cell]:
    """The cells of training loops and their parts, on the CPU unless it says otherwise."""
    selection = Selection(**{"devices": ("cpu",), **requested})
    manifests = {name: BOTH[name] for name in frameworks}
    return list(
        grid.cells(workloads, selection, manifests, more=more or grid.GridRequest(toggles or {}))
    )


def named(*workloads: Any, **requested: Any) -> list[str]:
    return [cell.id for cell in trained(*workloads, **requested)]


REAL = Found("mnist", "real", "mnist.npz", (), 60_000)


def test_a_training_cell_is_named_by_what_it_is() -> None:
    """Toggles stand in id and parameters, generated data in id and group, where nobody misses it.

    Toggles are compared side by side, results on generated data and on real data are not.
    """
    toggles = (("workers", "2"), ("decay", "on"))
    facts = (lenet, "torch", "cpu", "graph", "train", "float32", 200)
    tested_cell = Cell(*facts, toggles=toggles, data=generated("mnist"))
    assert tested_cell.id == "lenet-torch-cpu-graph-train-float32-200-workers:2-decay:on-synthetic"
    assert tested_cell.group == "lenet cpu train float32 200 synthetic"
    names = ("workload", "framework", "device", "execution", "direction", "dtype", "size")
    expected = dict(zip(names, ("lenet", *facts[1:]), strict=True))
    assert tested_cell.params == {**expected, "workers": "2", "decay": "on"}
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
    assert named(lenet.loader, executions=("graph", "fit")) == []
    assert len(named(lenet.loader, executions=("eager", "graph"))) == 1


@pytest.mark.parametrize("directions", [None, ("forward",), ("backward", "forward")], ids=str)
@pytest.mark.parametrize("verify_only", [False, True])
def test_the_direction_of_training_is_its_own(directions: Any, verify_only: bool) -> None:
    more = grid.GridRequest(verify_only=verify_only)
    trained_cells = trained(mlp, more=more, directions=directions, executions=("eager",))
    assert [cell.direction for cell in trained_cells] == ["train"]


@pytest.mark.parametrize(
    ("of", "asked", "rich"),
    [
        *((workload, {}, None) for workload in (mlp, mlp.step, mlp.loader)),
        (mlp, {"dtypes": ("float64",)}, None),
        (mlp, {"dtypes": ("float16",)}, "rich trains no models in float16"),
        (mlp, {"devices": ("gpu:0",)}, None),
        *(
            (workload, {"devices": ("gpu:7",)}, "rich sees no gpu:7")
            for workload in (mlp, mlp.loader)
        ),
    ],
)
def test_a_gap_of_training_says_why(of: Any, asked: dict[str, Any], rich: str | None) -> None:
    """A framework that trains no models has one cell, whose gap says so before anything else."""
    trained_cells = trained(of, frameworks=("rich", "poor"), **{"executions": ("eager",), **asked})
    gaps = {cell.framework: cell.gap for cell in trained_cells}
    assert gaps == {"rich": rich, "poor": "poor trains no models"}


@pytest.mark.parametrize("workload", [mlp, mlp.step], ids=lambda workload: str(workload.name))
def test_an_execution_of_operations_alone_is_a_gap(workload: Any) -> None:
    """Where it is named; what the framework lacks altogether is passed over, as in operations."""
    (trained_cell,) = trained(workload, executions=("compile", "hybridize"))
    assert trained_cell.execution == "compile"
    assert trained_cell.gap == "rich trains no models in compile, but in eager, graph, fit"


_PILLOW = 'photos need Pillow, which is not installed: pip install "fwbench[photos]"'


@pytest.mark.parametrize(
    ("asked", "installed", "gap"),
    [
        ({}, True, None),
        ({}, False, _PILLOW),
        ({"dtypes": ("float64",)}, True, "photos are loaded as float32 .*not as float64 on cpu"),
        ({"devices": ("gpu:0",)}, True, "photos are loaded as float32 .*not as float32 on gpu:0"),
    ],
)
@pytest.mark.parametrize("work", PHOTOS, ids=lambda work: str(work.name))
def test_a_gap_of_photos_says_why(
    work: Any, asked: Any, installed: bool, gap: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loaders of photos have one execution, ``workers``, and no cell where none is written."""
    monkeypatch.setattr(gaps.importlib.util, "find_spec", lambda name: installed or None)
    selection = Selection(**{"devices": ("cpu",), **asked})
    manifests = {"fake": manifest(operations=(work.name,)), "poor": BOTH["poor"]}
    toggles = {"workers": ("2",)}
    found, poor = grid.cells([work], selection, manifests, more=grid.GridRequest(toggles))
    assert f"{found.execution}-{found.direction}-{found.toggle('workers')}" == "eager-train-2"
    assert found.gap == gap or re.fullmatch(str(gap), str(found.gap))
    assert poor.gap == "poor loads no photos"


def test_a_framework_that_trains_no_models_has_one_gap() -> None:
    """Not one for each execution that it has for operations or that others train in."""
    assert named(mlp, frameworks=("poor",)) == ["mlp-poor-cpu-eager-train-float32-128-synthetic"]


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
    framework_manifest = manifest(gaps=(Gap("no kernel", "lenet", dtype="float64", device="cpu"),))
    selection = Selection(devices=(device,), dtypes=(dtype,), executions=("eager",))
    grid_cells = grid.cells(
        [lenet, lenet.step, lenet.loader, mlp], selection, {"fake": framework_manifest}
    )
    assert [cell.gap for cell in grid_cells] == [gap, gap, gap, None]


@pytest.mark.parametrize("workload", [cifar_cnn, cifar_cnn.step], ids=["loop", "step"])
def test_a_preset_that_leaves_a_workload_out_gives_one_skip(workload: Any) -> None:
    """Not one for each framework and execution; it says how the workload can be asked for."""
    for sizes in (None, "quick"):
        (only,) = trained(workload, frameworks=("rich", "poor"), sizes=sizes)
        assert only.gap == (
            f"{workload.name} is not in the preset quick: ask for it by another --fw-size "
            "(paper, full) or by a batch size (32)"
        )
    assert {cell.gap for cell in trained(workload, sizes="full", executions=("eager",))} == {None}
    assert {cell.gap for cell in trained(workload, sizes=(16,), executions=("eager",))} == {None}


def test_verifying_alone_leaves_no_workload_out() -> None:
    """Nothing is timed, so a model that trains for minutes is checked like any."""
    (trained_cell,) = trained(
        cifar_cnn, more=grid.GridRequest(verify_only=True), executions=("eager",)
    )
    assert (trained_cell.gap, trained_cell.size) == (None, 8)


def test_a_batch_cannot_be_larger_than_the_data() -> None:
    """The message has both numbers, where the data is from, and the option; a step needs none."""
    examples = generated("mnist").train_examples
    for workload in (mlp, mlp.loader):
        trained_cells = trained(workload, sizes=(examples, examples + 1))
        assert {cell.problem for cell in trained_cells if cell.size == examples} == {None}
        (problem,) = {cell.problem for cell in trained_cells if cell.size > examples}
        assert problem == (
            f"{workload.name}: a batch of {examples + 1} is larger than the {examples} training "
            "examples of mnist (synthetic); give a smaller --fw-size, "
            f"or leave {workload.name} out (-k)"
        )
    assert {cell.problem for cell in trained(mlp.step, sizes=(examples + 1,))} == {None}


def test_data_is_looked_for_by_name_and_where_it_is_needed() -> None:
    """A loop and a loader have the data set as it was found, a step has none."""
    requested = []

    def find(name: str) -> Found:
        requested.append(name)
        return REAL

    more = grid.GridRequest(find=find)
    trained_cells = trained(
        mlp, mlp.step, mlp.loader, gemm, more=more, executions=("eager",), sizes=(8,)
    )
    assert [cell.data for cell in trained_cells] == [REAL, None, REAL, None]
    assert requested == ["mnist", "mnist"]


def schedules(*workloads: Any, more: grid.GridRequest | None = None, **requested: Any) -> set[Any]:
    trained_cells = trained(*workloads, more=more, executions=("eager",), **requested)
    return {cell.schedule for cell in trained_cells}


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
    more = grid.GridRequest(schedule=lambda preset: Schedule(preset.epochs + 1, 0, 7))
    assert schedules(lenet, more=more) == {Schedule(4, 0, 7)}
    assert schedules(lenet, more=more, sizes="paper") == {Schedule(16, 0, 7)}


@pytest.mark.parametrize("error", [UsageError, DataError])
def test_what_is_wrong_with_a_training_is_a_problem_of_its_cells(error: type[FwbenchError]) -> None:
    """Not of the grid: others may be what is left when these are deselected."""
    refuse = Mock(side_effect=error("no epoch is left"))
    (problem,) = {
        cell.problem for cell in trained(lenet, gemm, more=grid.GridRequest(schedule=refuse))
    } - {None}
    assert problem == "lenet: no epoch is left, or leave lenet out (-k)"


def test_a_direction_is_asked_of_operations() -> None:
    """Loops and their parts have none; once, for all of them."""
    for workload in (mlp, mlp.step, mlp.loader):
        (only,) = trained(workload, directions=("backward",))
        assert (
            only.gap
            == f"--fw-direction is for operations, and {workload.name} has one direction: train"
        )


def test_batches_that_are_asked_for_are_trained_a_few_steps() -> None:
    """In every preset, also of what the preset quick leaves out."""
    for workload in (mlp, cifar_cnn):
        assert {cell.schedule for cell in trained(workload, sizes=(8,))} == {
            workload.schedules["quick"]
        }


def test_toggles_are_combined() -> None:
    """Every value of one with every value of the others, in the toggles' own order."""
    toggles = {"decay": ("on",), "workers": ("0", "2"), "onednn": ("off", "on")}
    assert named(mlp, toggles=toggles, executions=("eager",)) == [
        f"mlp-rich-cpu-eager-train-float32-128-workers:{w}-decay:on-onednn:{o}-synthetic"
        for w in ("0", "2")
        for o in ("off", "on")
    ]


def test_what_toggles_compare_comes_one_after_the_other() -> None:
    trained_cells = trained(mlp, toggles={"workers": ("0", "2")}, executions=("eager", "graph"))
    assert [(cell.execution, *cell.toggles) for cell in trained_cells] == [
        (execution, ("workers", value)) for execution in ("eager", "graph") for value in ("0", "2")
    ]
    assert len({cell.group for cell in trained_cells}) == 1


@pytest.mark.parametrize(
    ("workload", "shown"),
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
def test_a_toggle_that_makes_no_difference_is_not_there(workload: Any, shown: list[str]) -> None:
    """It makes no second case, and stands in no id, wherever it would change nothing."""
    toggles = {"workers": ("0", "2"), "sparse": ("on",), "decay": ("on",)}
    trained_cells = trained(workload, toggles=toggles, sizes=(8,), executions=("eager",))
    assert [[name for name, _ in cell.toggles] for cell in trained_cells] == [shown] * len(
        trained_cells
    )
    assert len(trained_cells) == (2 if "workers" in shown else 1)


def test_a_toggle_of_the_process_is_for_operations_as_well() -> None:
    """Each value is a case, and an environment variable of the worker that runs it."""
    requested = {"toggles": {"onednn": ("on", "off")}, "executions": ("eager",)}
    trained_cells = trained(gemm, sizes=(8,), **requested)
    assert [cell.id for cell in trained_cells] == [
        "gemm-rich-cpu-eager-forward-float32-8-onednn:on",
        "gemm-rich-cpu-eager-forward-float32-8-onednn:off",
    ]
    environments = [{"FWBENCH_ONEDNN": "on"}, {"FWBENCH_ONEDNN": "off"}]
    assert [cell.variables for cell in trained_cells] == environments
    assert [cell.variables for cell in trained(mlp.step, **requested)] == environments


def test_other_toggles_need_no_process_of_their_own() -> None:
    trained_cells = trained(mlp, toggles={"workers": ("0", "2"), "decay": ("on",)})
    assert [cell.variables for cell in (*trained_cells, *trained(gemm, sizes=(8,)))] == [{}] * 8


def test_a_toggle_that_a_framework_lacks_is_a_gap() -> None:
    """One of a process; for each value, since each was asked for."""
    toggles = {"onednn": ("on", "off")}
    trained_cells = trained(gemm, frameworks=("poor",), toggles=toggles, sizes=(8,))
    assert [cell.gap for cell in trained_cells] == ["poor has no toggle onednn"] * 2
    # What is not written at all is said first.
    (first, _) = trained(mlp, frameworks=("poor",), toggles=toggles)
    assert first.gap == "poor trains no models"


@tabled
def test_what_an_execution_cannot_do_is_a_gap(
    workload: str, execution: str, sparse: str | None, gap: str | None
) -> None:
    """Also where nobody asked for the toggle and its default is what it cannot do."""
    toggles: Values = {"sparse": (sparse,)} if sparse else {}
    selected = {"toggles": toggles, "sizes": (64,), "executions": (execution,)}
    (trained_cell,) = trained(WORKLOADS[workload], **selected)
    assert trained_cell.gap == gap


def test_a_toggle_has_its_default_where_it_was_not_asked_for() -> None:
    tested_cell = Cell(
        *(mlp, "torch", "cpu", "eager", "train", "float32", 8), toggles=(("workers", "2"),)
    )
    assert [tested_cell.toggle(name) for name in ("workers", "sparse", "decay", "onednn")] == [
        *("2", "off", "off", "")
    ]
