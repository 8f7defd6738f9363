"""A softmax over the next word and a few that were drawn."""

import math
from pathlib import Path

import numpy as np
import pytest

from fwbench.workloads import SAMPLED, word_lm_sampled_step, word_lm_step
from fwbench.workloads.gaps import value_gap
from fwbench.workloads.models import reference
from fwbench.workloads.models.gradients import forward
from fwbench.workloads.models.sampling import LOWEST, SampledWords
from support import programs
from support.verification import installed

_LAYER = SampledWords(vocabulary=40, samples=10)


def _logits(tokens: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    kernel, bias = rng.standard_normal((40, 3)), rng.standard_normal(40)
    x = rng.standard_normal((len(tokens) * len(tokens[0]), 3))
    logits, _ = forward(_LAYER, [kernel, bias], x, np.array(tokens))
    return logits, x @ kernel.T + bias - _LAYER.drawn.log_expected


def test_words_are_drawn_once_and_the_same_everywhere() -> None:
    """Frequent words have the lowest numbers, and are drawn more often."""
    words, log_expected = SampledWords(40_000, 512).drawn
    assert len({*words.tolist()}) == 512
    assert (words.min(), words.max() < 40_000) == (0, True)
    assert np.median(words) < 40_000 / 8
    assert np.array_equal(words, SampledWords(40_000, 512).drawn.words)
    assert (np.diff(log_expected) <= 0).all()
    assert log_expected.max() <= 0.0
    # As many as were drawn are expected, but for chance.
    assert np.exp(log_expected).sum() == pytest.approx(512, rel=0.1)


def test_the_next_word_comes_first_and_no_other_twice() -> None:
    """The one after the last is the first; of words that were drawn, the right one is left out."""
    words = _LAYER.drawn.words.tolist()
    tokens = [[5, words[3], 7], [words[0], 30, 31]]
    logits, every = _logits(tokens)
    right = [words[3], 7, 5, 30, 31, words[0]]
    assert logits.shape == (6, 11)
    for row, word in enumerate(right):
        assert logits[row, 0] == pytest.approx(every[row, word])
        expected = [LOWEST if candidate == word else every[row, candidate] for candidate in words]
        np.testing.assert_allclose(logits[row, 1:], expected)


#: In a process of its own: TensorFlow may crash in one that another framework has computed in.
_TENSORFLOW = """
import json, sys
import numpy as np
import tensorflow as tf

given = np.load(sys.argv[1])
losses = tf.nn.sampled_softmax_loss(
    given["kernel"], given["bias"], given["following"][:, None], given["x"], 50, 200,
    sampled_values=(given["words"], given["right"][:, None], given["drawn"]),
)
print(json.dumps(losses.numpy().tolist()))
"""


@installed("tensorflow")
def test_losses_are_those_of_tensorflows_function(tmp_path: Path) -> None:
    """Given the same words and expected counts; of words that were drawn, some are right ones."""
    layer = SampledWords(vocabulary=200, samples=50)
    rng = np.random.default_rng(2)
    kernel, bias = rng.standard_normal((200, 8)), rng.standard_normal(200)
    x, tokens = rng.standard_normal((60, 8)), rng.integers(0, 200, (4, 15))
    following = np.roll(tokens, -1, axis=1).ravel()
    assert 0 < np.isin(following, layer.drawn.words).sum() < 60
    logits, _ = forward(layer, [kernel, bias], x, tokens)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[:, 0]
    expected = np.exp(layer.drawn.log_expected.astype(np.float64))
    np.savez(
        tmp_path / "given.npz",
        kernel=kernel,
        bias=bias,
        following=following,
        x=x,
        words=layer.drawn.words.astype(np.int64),
        right=expected[following],
        drawn=expected[layer.drawn.words],
    )
    tensorflows = programs.result("-c", _TENSORFLOW, tmp_path / "given.npz")
    np.testing.assert_allclose(losses, tensorflows, rtol=1e-9)


def test_gradients_are_those_of_the_losses() -> None:
    objective = word_lm_sampled_step.at(word_lm_sampled_step.smallest)
    parameters = objective.initial()
    ((tokens, labels),) = objective.check_batches(2, 1)
    assert not labels.any()

    def loss() -> float:
        return reference.gradients(objective.graph, parameters, tokens, labels)[0]

    _, of_nodes = reference.gradients(objective.graph, parameters, tokens, labels)
    rng, step = np.random.default_rng(1), 1e-5
    for arrays, gradients in zip(parameters, of_nodes, strict=True):
        for place, gradient in enumerate(gradients):
            array, direction = arrays[place], rng.standard_normal(gradient.shape)
            losses = []
            for moved in (array + step * direction, array - step * direction):
                arrays[place] = moved
                losses.append(loss())
            arrays[place] = array
            slope = (losses[0] - losses[1]) / (2 * step)
            assert slope == pytest.approx((gradient * direction).sum(), rel=1e-5)


def test_the_published_setting_computes_a_seventy_eighth_of_the_last_layer() -> None:
    """513 of 40,000 words for each token; the parameters are those of all words."""
    (size,) = word_lm_sampled_step.by_preset.paper
    sampled, full = word_lm_sampled_step.at(size), word_lm_step.at(size)
    assert sampled.parameters == full.parameters
    fewer = full.graph.multiply_adds - sampled.graph.multiply_adds
    assert fewer == 20 * 512 * (40_000 - 513)
    assert math.prod(sampled.graph.output) == 513


def test_what_is_neither_computed_once_more_nor_divided_is_a_gap() -> None:
    """The last layer takes the text itself, so there is one segment, which is kept whole."""
    for step in SAMPLED:
        assert "keeps all results" in str(value_gap(step, "recompute", "on"))
        assert value_gap(step, "recompute", "off") is None
        assert "cannot be divided among devices" in str(value_gap(step, "model_parallel", "2"))
        assert value_gap(step, "model_parallel", "1") is None
    assert value_gap(word_lm_step, "recompute", "on") is None
    assert value_gap(word_lm_step, "model_parallel", "2") is None
