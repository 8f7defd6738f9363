"""Well-known networks: parameters and multiply-adds as published, from the layers."""

from dataclasses import replace

import numpy as np
import pytest

from fwbench.cases.verify import NETWORK_LOSS_TOLERANCES
from fwbench.errors import DeclarationError
from fwbench.terms.presets import Shape
from fwbench.workloads import MODELS
from fwbench.workloads.models import reference
from fwbench.workloads.models.graph import trace
from fwbench.workloads.models.layers import BatchNorm
from fwbench.workloads.models.steps import ModelStep
from fwbench.workloads.objective import SGD
from support.tables import tabled


def _for_each(steps: list[ModelStep]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("step", steps, ids=lambda step: str(step.model))


each_model = _for_each([*MODELS])
PICTURES, TEXTS = (step.form for step in (MODELS[0], MODELS[-1]))
each_of_pictures = _for_each([s for s in MODELS if s.form.template == PICTURES.template])

#: Picture, parameters, and multiply-adds in thousand millions: AlexNet and VGG as in Gluon's and
#: torchvision's model zoos, GoogLeNet and ResNet-50 as in torchvision's documentation, Inception-v3
#: as in Gluon's; OverFeat is in no zoo, and was added up by hand.
_PUBLISHED = {
    "alexnet": (224, 61_100_840, 0.714),
    "overfeat": (231, 145_920_872, 2.801),
    "vgg_a": (224, 132_863_336, 7.609),
    "vgg16": (224, 138_357_544, 15.470),
    "googlenet": (224, 6_998_552, 1.583),
    "googlenet_bn": (224, 6_624_904, 1.498),
    "inception_v3": (299, 23_834_568, 5.713),
    "resnet50": (224, 25_557_032, 4.089),
}


def _by_name(name: str) -> ModelStep:
    (step,) = (step for step in MODELS if step.model == name)
    return step


def _size(text: str) -> Shape:
    return PICTURES.read(text)


@pytest.mark.parametrize(("name", "published"), _PUBLISHED.items(), ids=_PUBLISHED)
def test_networks_have_the_published_parameters_and_multiply_adds(
    name: str, published: tuple[int, int, float]
) -> None:
    """Counted from the layers alone: nothing is drawn, and nothing computed."""
    image, parameters, giga_multiply_adds = published
    graph = _by_name(name).at(_size(f"b1i{image}d1")).graph
    assert graph.parameters == parameters
    assert graph.multiply_adds / 1e9 == pytest.approx(giga_multiply_adds, abs=5e-4)


def test_gpt_2_has_the_published_parameters_and_a_last_layer_of_its_own() -> None:
    """Whose kernel and bias GPT-2 does not have: it uses the table of the first layer."""
    graph = _by_name("gpt_small").at(TEXTS.read("b1t1024l12u768v50257")).graph
    assert graph.parameters - (768 + 1) * 50_257 == 124_439_808


def test_each_encoder_has_the_parameters_of_berts() -> None:
    """Four kernels of attention, two of the inner layer, two normalizations."""
    encoder = _by_name("transformer_encoder")
    eleven, twelve = (
        encoder.at(TEXTS.read(f"b1t128l{layers}u768v30522")).graph.parameters for layers in (11, 12)
    )
    assert twelve - eleven == 7_087_872


@pytest.mark.parametrize(
    ("size", "millions"),
    [("b20t35l2u650v10000", 20), ("b20t35l2u1500v10000", 66), ("b128t20l1u512v793471", 815)],
    ids=["medium", "large", "LSTM-512-512"],
)
def test_word_lm_has_the_published_parameters(size: str, millions: int) -> None:
    """Zaremba et al. 2014, and Jozefowicz et al. 2016, whose table says 0.82 billion."""
    graph = _by_name("word_lm").at(TEXTS.read(size)).graph
    assert round(graph.parameters / 1e6) == millions


def test_every_network_is_counted() -> None:
    """A network without published numbers cannot be told from a variant."""
    counted = {*_PUBLISHED, "gpt_small", "transformer_encoder", "word_lm"}
    assert {step.model for step in MODELS} == counted


@each_of_pictures
def test_the_published_setting_is_the_preset_paper(step: ModelStep) -> None:
    """With the whole network, and the pictures that its parameters were published for."""
    (size,) = step.by_preset.paper
    assert isinstance(size, Shape)
    image, *_ = _PUBLISHED[step.model]
    assert (size["image"], size["divisor"]) == (image, 1)


@each_of_pictures
def test_a_step_costs_three_forward_passes_but_for_the_gradient_by_the_pictures(
    step: ModelStep,
) -> None:
    one, four = (step.cost_of("train", _size(f"b{batch}i128d8")) for batch in (1, 4))
    graph = step.at(_size("b1i128d8")).graph
    first = trace(graph.nodes[0].layer, (128, 128, 3)).multiply_adds
    assert one is not None
    assert four is not None
    assert one.flops == 2 * (3 * graph.multiply_adds - first)
    assert four.flops == 4 * one.flops
    assert four.elements == one.elements == 2 * graph.parameters


@each_model
def test_the_sizes_of_a_network_grow(step: ModelStep) -> None:
    """By the number that charts, means over the largest sizes, and their order go by."""
    quick = [step.number_of(size) for size in step.by_preset.quick]
    assert quick == sorted({*quick})
    (published,) = step.by_preset.paper
    assert step.number_of(published) > quick[-1]


@pytest.mark.parametrize("size", ["b1i2d64", "b1i1d512"])
def test_a_size_without_a_network_has_a_number(size: str) -> None:
    with pytest.raises(DeclarationError):
        _by_name("alexnet").at(_size(size))
    assert _by_name("alexnet").number_of(_size(size)) >= 0


@each_model
def test_every_network_has_segments_to_recompute(step: ModelStep) -> None:
    """At its smallest size, too; they have all layers, in their order."""
    segments = step.at(step.smallest).graph.segments
    assert len(segments) > 1
    assert [place for part in segments for place in part] == [*range(segments[-1].stop)]
    assert segments[-1].stop == len(step.at(step.smallest).graph.nodes)


@each_model
def test_statistics_of_a_batch_are_of_several_numbers(step: ModelStep) -> None:
    """At the smallest size; two numbers would be always be normalized to 1 and -1."""
    batch = step.smallest["batch"]
    for node in step.at(step.smallest).graph.nodes:
        if isinstance(node.layer, BatchNorm):
            height, width, _ = node.output
            assert batch * height * width >= 8


def test_a_text_has_a_label_for_each_token() -> None:
    """In the order of the logits: batch first, then place."""
    objective = _by_name("gpt_small").at(TEXTS.read("b4t6l1u64v50"))
    assert objective.labels_per_example == 6
    (x, labels), *_ = objective.check_batches(4, 1)
    assert (x.shape, labels.shape) == ((4, 6), (24,))
    (_, by_example), *_ = objective.check_batches(8, 1)
    assert by_example.shape == (48,)


@pytest.mark.parametrize("name", ["gpt_small", "transformer_encoder", "word_lm"])
def test_what_a_text_teaches_shows_in_the_next_loss(name: str) -> None:
    """An update that is left out moves it by far more than the bounds allow.

    Few different labels do it, which are spread over the vocabulary.
    """
    step = _by_name(name)
    objective = step.at(step.smallest)
    batch = step.smallest["batch"]
    labels = np.concatenate([y for _, y in objective.check_batches(batch, 20)])
    assert len({*labels}) <= 50
    assert labels.max() > 0.9 * objective.classes
    trained = reference.losses(objective, batch, 2)
    assert objective.loss_growth is not None
    allowed = NETWORK_LOSS_TOLERANCES["float32"] * objective.loss_growth[1]
    still = replace(objective, optimizer=SGD(0.0))
    (_, unmoved) = reference.losses(still, batch, 2)
    assert abs(trained[1] / unmoved - 1) > 50 * allowed


@each_of_pictures
def test_an_update_changes_the_loss_by_a_similar_part_at_a_larger_size(step: ModelStep) -> None:
    """With one rate it would be 0.1 to 0.4, and frameworks would grow apart."""
    part_of_loss = [_first_update(step, _size(str(size))) for size in step.sizes.quick[:2]]
    assert all(0.003 < part < 0.05 for part in part_of_loss)


def _first_update(step: ModelStep, size: Shape) -> float:
    """The share of its batch's loss that the first update takes, to first order."""
    objective = step.at(size)
    x, labels = objective.check_batches(size["batch"], 1)[0]
    loss, gradients = reference.gradients(
        objective.graph, objective.initial(), x.astype(np.float64), labels
    )
    squares = [np.vdot(array, array) for of_layer in gradients for array in of_layer]
    return float(objective.optimizer.learning_rate * sum(squares) / loss)


@tabled
def test_sizes_without_a_network_are_refused(name: str, size: str, message: str) -> None:
    step = _by_name(name)
    with pytest.raises(DeclarationError, match=message):
        step.at(step.form.read(size))
