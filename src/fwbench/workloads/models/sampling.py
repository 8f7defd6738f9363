"""A softmax over the right word and a few that were drawn, instead of the whole vocabulary."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.workloads.models.layer import Layer, Shape, Weight, glorot, zeros

_SEED = 24

#: The logit of a word that was drawn and is the right one; smaller than any that is computed, and
#: still a number in float16.
LOWEST = -6e4


class Drawn(NamedTuple):
    """Words that stand for all that are wrong."""

    #: Int32 (samples,), each once.
    words: NDArray[np.int32]
    #: Float32 (vocabulary,), the logarithm of the expected count of each word.
    log_expected: NDArray[np.float32]


@dataclass(frozen=True)
class SampledWords(Layer):
    """Logits of the next word and of words that were drawn: a sampled softmax.

    Takes features (units,), an example for each place of a text, and the text's tokens (length,);
    the word after the last one is the first. The right word is always the first class. From each
    logit the logarithm of the word's expected count is subtracted, and a word that was drawn and is
    the right one does not count (Jean et al. 2015, "On Using Very Large Target Vocabulary for
    Neural Machine Translation", section 3; as ``tf.nn.sampled_softmax_loss`` has it). The same
    words are drawn for every batch, in every framework: so that all do the same work.
    """

    vocabulary: int
    samples: int

    @property
    def drawn(self) -> Drawn:
        """The words, and how often each of the vocabulary is expected."""
        return _drawn(self.vocabulary, self.samples)

    def output(self, shape: Shape, *_: Shape) -> Shape:
        """(1 + samples,)."""
        return (1 + self.samples,)

    def weights(self, shape: Shape) -> tuple[Weight, ...]:
        """Kernel (vocabulary, units), a row for each word, and bias (vocabulary,)."""
        return Weight((self.vocabulary, shape[-1]), glorot), Weight((self.vocabulary,), zeros)

    def multiply_adds(self, *shapes: Shape) -> int:
        """Multiplications of the words whose logits are computed."""
        return math.prod(shapes[0]) * (1 + self.samples)


@cache
def _drawn(vocabulary: int, samples: int) -> Drawn:
    """Words by their rank, log-uniformly (Zipf), each once.

    As ``tf.random.log_uniform_candidate_sampler`` draws them with ``unique``, and expects counts.
    """
    rng = np.random.default_rng([_SEED, vocabulary, samples])
    words: dict[int, None] = {}
    tries = 0
    while len(words) < samples:
        tries += 1
        words[min(int((vocabulary + 1) ** rng.random()) - 1, vocabulary - 1)] = None
    ranks = np.arange(vocabulary)
    shares = np.log((ranks + 2) / (ranks + 1)) / math.log(vocabulary + 1)
    expected: NDArray[Any] = -np.expm1(tries * np.log1p(-shares))
    return Drawn(np.array([*words], np.int32), np.log(expected).astype(np.float32))
