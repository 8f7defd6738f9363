"""Which cells of the grid lie on GPUs, and what can only be measured there."""

from dataclasses import replace
from typing import Any

from fwbench.options.options import Selection
from fwbench.terms import toggles
from fwbench.terms.manifest import Device, Gap
from fwbench.workloads import FORWARD_BACKWARDS, gemm, grid, lenet, resnet50_step, word_lm_step
from support.grids import CPU, GPU, POOR, RICH

_TF32 = grid.GridRequest({"tf32": ("on",)})


def test_tf32_is_for_float32_on_gpus() -> None:
    """Anywhere else it is a gap, with the reason; so it is where a framework has no such toggle."""
    rich = replace(RICH, process_toggles=("tf32",))
    grid_cells = grid.cells(
        [gemm],
        Selection(dtypes=("float32", "float64"), executions=("eager",)),
        {"rich": rich, "poor": replace(POOR, devices=(CPU, GPU))},
        more=_TF32,
    )
    gaps = {(cell.framework, cell.device, cell.dtype): cell.gap for cell in grid_cells}
    assert gaps["rich", "gpu:0", "float32"] is None
    assert gaps["rich", "cpu", "float32"] == "tf32=on is for GPUs, and the device is cpu"
    assert gaps["rich", "gpu:0", "float64"] == "tf32=on is for float32, and the dtype is float64"
    assert gaps["poor", "gpu:0", "float32"] == "poor has no toggle tf32"


def test_a_framework_may_lack_the_value_of_a_process_toggle() -> None:
    lacking = replace(
        RICH, process_toggles=("tf32",), toggle_gaps=(("eager", "tf32", "on", "no switch"),)
    )
    selection = Selection(devices=("gpu:0",), executions=("eager", "graph"), sizes=(8,))
    grid_cells = grid.cells([gemm], selection, {"rich": lacking}, more=_TF32)
    assert [(cell.execution, cell.gap) for cell in grid_cells] == [
        ("eager", "no switch"),
        ("graph", None),
    ]


def test_a_gap_of_a_toggle_is_one_where_the_process_has_that_value_anyway() -> None:
    off = replace(
        RICH,
        process_toggles=("onednn",),
        defaults={"onednn": "off"},
        gaps=(Gap("no product without oneDNN", "gemm", toggle="onednn=off"),),
    )
    asked = ({}, {"onednn": ("off",)}, {"onednn": ("on",)})
    selection = Selection(devices=("cpu",), executions=("eager",), sizes=(8,))
    gaps = [
        [cell.gap for cell in grid.cells([gemm], selection, {"rich": off}, more=request)]
        for request in map(grid.GridRequest, asked)
    ]
    assert gaps == [["no product without oneDNN"], ["no product without oneDNN"], [None]]


def test_gradients_of_networks_are_not_verified_in_tf32() -> None:
    """Rounding may decide which ReLU is open, as in other narrow formats."""
    network_pass = next(forward_backward for forward_backward in FORWARD_BACKWARDS)
    network = replace(RICH, network_executions=("eager",), process_toggles=("tf32",))
    selection = Selection(devices=("gpu:0",))
    (gap,) = {
        cell.gap for cell in grid.cells([network_pass], selection, {"rich": network}, more=_TF32)
    }
    assert gap is not None
    assert gap.startswith("gradients of networks are not verified in TF32")


def test_layers_are_divided_among_gpus_that_are_there() -> None:
    """The one that is asked for and the next; a step of a network alone is divided."""
    two = replace(
        RICH,
        devices=(CPU, GPU, Device("gpu:1", GPU.model)),
        training_executions=("eager",),
        process_toggles=("model_parallel",),
    )
    selection = Selection(devices=("cpu", "gpu:0", "gpu:1"), executions=("eager",), sizes=(4,))
    requested = grid.GridRequest({"model_parallel": ("2",)})
    grid_cells = grid.cells(
        [word_lm_step], replace(selection, sizes=None), {"rich": two}, more=requested
    )
    assert {cell.device: cell.gap for cell in grid_cells} == {
        "cpu": None,
        "gpu:0": None,
        "gpu:1": "rich sees no gpu:2 in addition to gpu:1",
    }
    (gap,) = {cell.gap for cell in grid.cells([gemm], selection, {"rich": two}, more=requested)}
    assert gap is not None
    assert gap.startswith("only steps of the family models are divided among devices")


def test_batches_are_split_of_steps_alone() -> None:
    """Not by layers as well, nor of an odd size, nor where frameworks normalize differently."""
    parallel = replace(
        RICH, training_executions=("eager",), process_toggles=toggles.PARALLEL, strategies={}
    )

    def gap(work: Any, *, layers: str = "1", **requested: Any) -> str | None:
        asked = grid.GridRequest({"data_parallel": ("2",), "model_parallel": (layers,)})
        selection = Selection(executions=("eager",), devices=("cpu",), **requested)
        (gap,) = {
            cell.gap for cell in grid.cells([work], selection, {"rich": parallel}, more=asked)
        }
        return gap

    assert gap(lenet.step, sizes=(6,)) is None
    assert "a batch of 7 does not split" in str(gap(lenet.step, sizes=(7,)))
    assert "and not both" in str(gap(word_lm_step, layers="2", sizes=(word_lm_step.smallest,)))
    assert "normalize parts of a batch of resnet50_step differently" in str(
        gap(resnet50_step, sizes=(resnet50_step.smallest,))
    )
    assert "only steps of training" in str(gap(gemm, sizes=(8,)))


def test_one_gpu_of_each_model_is_measured() -> None:
    """Unless others are asked for: eight alike would take eight times as long, to say the same."""
    devices = (CPU, *(Device(f"gpu:{i}", model) for i, model in enumerate("HTHHT")))
    many = {"rich": replace(RICH, devices=devices)}

    def measured(**requested: Any) -> list[str]:
        selection = Selection(sizes=(8,), executions=("eager",), **requested)
        return [cell.device for cell in grid.cells([gemm], selection, many)]

    assert measured() == ["cpu", "gpu:0", "gpu:1"]
    assert measured(devices=("gpu:1", "gpu:4")) == ["gpu:1", "gpu:4"]
