"""Networks without an update: sizes, costs, and who runs them."""

import numpy as np
import pytest

from fwbench.terms.presets import Shape
from fwbench.workloads import (
    FORWARD_BACKWARDS,
    INFERENCES,
    MODELS,
    lenet,
    lenet_inference,
    resnet50_features,
    resnet50_forward_backward,
    resnet50_inference,
    resnet50_step,
)
from fwbench.workloads.models import reference
from fwbench.workloads.models.gradients import forward, untrained
from fwbench.workloads.models.layers import BatchNorm, Dense
from fwbench.workloads.models.passes import Pass, batch_of
from fwbench.workloads.workload import Workload
from support.fakes import manifest
from support.grids import gap_of
from support.tables import tabled

each_pass = pytest.mark.parametrize(
    "network_pass",
    [*INFERENCES, *FORWARD_BACKWARDS],
    ids=lambda network_pass: str(network_pass.name),
)


def test_every_network_is_measured_in_use() -> None:
    names = {"mlp", "lenet", *(step.model for step in MODELS)}
    assert (
        {network_pass.model for network_pass in INFERENCES}
        == {network_pass.model for network_pass in FORWARD_BACKWARDS}
        == names
    )


@pytest.mark.parametrize(
    "workload",
    [*MODELS, *INFERENCES, *FORWARD_BACKWARDS],
    ids=lambda network_pass: str(network_pass.name),
)
def test_networks_are_left_out_where_nobody_asks_for_them(workload: Workload) -> None:
    """A session that names nothing, or a preset alone, stays what it is."""
    assert workload.family == "models"
    assert not workload.representative
    assert workload.on_request


@each_pass
def test_sizes_grow_from_the_smallest(network_pass: Pass) -> None:
    sizes = network_pass.by_preset
    numbers = [network_pass.number_of(size) for size in sizes.quick]
    assert numbers == sorted({*numbers})
    assert network_pass.smallest == sizes.quick[0]
    for size in sizes.every:
        assert network_pass.size_of(str(size) if isinstance(size, Shape) else size) == size


@pytest.mark.parametrize(
    "network_pass", INFERENCES, ids=lambda network_pass: str(network_pass.name)
)
def test_inference_has_latency_and_throughput_of_one_network(network_pass: Pass) -> None:
    *_, one, several = network_pass.by_preset.quick
    assert (batch_of(one), batch_of(several)) == (1, 8)
    if isinstance(one, Shape) and isinstance(several, Shape):
        assert {**one, "batch": 8} == {**several}
    assert [batch_of(size) == 1 for size in network_pass.by_preset.paper] == [True, False]


def test_a_pass_costs_what_its_kernels_do() -> None:
    """Answers one forward pass; gradients two more, but for the one by the pictures."""
    (size, _) = resnet50_inference.by_preset.paper
    graph = resnet50_inference.at(size).graph
    answers = resnet50_inference.cost_of("forward", size)
    assert answers.flops == 2 * graph.multiply_adds == pytest.approx(2 * 4.089e9, rel=1e-3)
    assert answers.elements == graph.parameters
    step, gradients = (
        operation.cost_of(operation.directions[0], size)
        for operation in (resnet50_step, resnet50_forward_backward)
    )
    assert gradients == step
    assert 2.9 * answers.flops < gradients.flops < 3 * answers.flops


def test_features_are_the_network_without_its_last_layer() -> None:
    """Their weights are the same, and 2,048 of a picture are what its last layer takes."""
    (size, _) = resnet50_features.by_preset.paper
    whole, features = (
        network_pass.at(size) for network_pass in (resnet50_inference, resnet50_features)
    )
    *nodes, last = whole.graph.nodes
    assert [*features.graph.nodes] == nodes
    assert features.graph.output == last.shapes[0] == (2048,)
    assert whole.parameters - features.parameters == 1000 * (2048 + 1)
    first, others = (objective.initial()[0][0] for objective in (whole, features))
    assert (first == others).all()


def test_batches_of_a_loop_are_sizes_of_its_network() -> None:
    one, eight = (lenet_inference.cost_of("forward", batch) for batch in (1, 8))
    assert one.flops == 2 * lenet.graph.multiply_adds
    assert eight.flops == 8 * one.flops


@tabled
def test_gaps(executions: tuple[str, ...], device: str, dtype: str, gap: str | None) -> None:
    """A framework that trains runs no networks unless it says so."""
    framework_manifest = manifest(network_executions=executions)
    assert lenet_inference.executions(framework_manifest) == ("eager",)
    assert gap_of(lenet_inference, framework_manifest, device, "eager", "forward", dtype) == gap


def test_gradients_are_measured_where_they_can_be_verified() -> None:
    narrow = manifest(network_executions=("eager",), training_dtypes=("float32", "bfloat16"))
    cell = ("cpu", "eager", "backward", "bfloat16")
    assert gap_of(lenet_inference, narrow, *cell) is None
    assert "not verified in bfloat16" in str(gap_of(resnet50_forward_backward, narrow, *cell))


def test_gradients_and_steps_are_recomputed_where_networks_are_deep() -> None:
    """Answers keep nothing that could be; networks of loops may have dropout."""
    assert resnet50_step.toggles == resnet50_forward_backward.toggles == {"recompute"}
    assert not lenet_inference.toggles | resnet50_inference.toggles
    assert not [
        network_pass
        for network_pass in FORWARD_BACKWARDS
        if network_pass.model == "lenet" and network_pass.toggles
    ]


def test_a_network_in_use_goes_by_averages() -> None:
    """Batch normalization alone differs; its averages begin as 0 and 1."""
    rng = np.random.default_rng(1)
    x, scale, offset = rng.standard_normal((5, 3)), rng.standard_normal(3), rng.standard_normal(3)
    layer = BatchNorm(epsilon=0.5)
    expected = scale * x / np.sqrt(1.5) + offset
    np.testing.assert_allclose(untrained(layer, [scale, offset], x), expected, rtol=1e-14)
    dense = [rng.standard_normal((3, 2)), rng.standard_normal(2)]
    np.testing.assert_array_equal(
        untrained(Dense(2), dense, x), forward(Dense(2), dense, x)[0], strict=True
    )


def test_answers_of_the_reference_are_those_of_training_without_batch_normalization() -> None:
    ((x, _),) = lenet.check_batches(4, 1)
    parameters = lenet.initial()
    trained, _ = reference.answer(lenet.graph, parameters, x)
    np.testing.assert_array_equal(reference.inference(lenet.graph, parameters, x), trained)
