"""The training loops of the suite.

``lenet`` and ``cifar_cnn`` are Benchmarks B, C and D of the TensorFlow / MXNet report of 2020,
``sentiment_lstm`` is the sentiment experiment of the PyTorch / MXNet post, whose sizes of embedding
and LSTM are not known: 100 each are taken here. ``sentiment_gru`` has as many, as the GRU of
"Deep Learning Frameworks" (Karmanov et al. 2018), a "Rosetta Stone". Of the well-known networks
(:mod:`fwbench.workloads.models.steps`) those that predict the next word of a text are trained on
one; the data that the others are published with are not here.
"""

from typing import Any

from fwbench.terms.presets import schedules_of, sizes_of
from fwbench.workloads.data.text import LENGTH, VOCABULARY
from fwbench.workloads.models.graph import Network, sequential
from fwbench.workloads.models.language import gpt_small, word_lm
from fwbench.workloads.models.layers import (
    GRU,
    LSTM,
    AveragePool,
    Conv,
    Dense,
    Dropout,
    Embedding,
    Flatten,
    MaxPool,
)
from fwbench.workloads.training import Adam, RMSprop, Training

_BATCHES = sizes_of("loops")


def _loop(name: str, network: Network, **declared: Any) -> Training:
    """A loop; unless it is declared otherwise, by Adam and left out of the preset ``quick``."""
    usual: dict[str, Any] = {"optimizer": Adam(1e-3), "quick": False, "representative": False}
    batches, schedules = _BATCHES[name], schedules_of(name)
    return Training(name, network, batches=batches, schedules=schedules, **usual | declared)


_DIGITS: dict[str, Any] = {"dataset": "mnist", "shape": (28, 28, 1), "classes": 10, "quick": True}

#: A small loop; Benchmarks B, C and D; the sentiment experiments. LeNet represents them.
TRAININGS = (
    _loop("mlp", sequential(Flatten(), Dense(128), Dense(64), Dense(10, relu=False)), **_DIGITS),
    _loop(
        "lenet",
        sequential(
            *(Conv(6, 5), AveragePool(), Conv(16, 3), AveragePool(), Flatten()),
            *(Dense(120), Dense(84), Dense(10, relu=False)),
        ),
        **_DIGITS,
        representative=True,
    ),
    _loop(
        "cifar_cnn",
        sequential(
            *(Conv(32, 3, same=True), Conv(32, 3), MaxPool(), Dropout(0.25)),
            *(Conv(64, 3, same=True), Conv(64, 3), MaxPool(), Dropout(0.25)),
            *(Flatten(), Dense(512), Dropout(0.5), Dense(10, relu=False)),
        ),
        dataset="cifar10",
        shape=(32, 32, 3),
        classes=10,
        optimizer=RMSprop(1e-4),
    ),
    *(
        _loop(
            f"sentiment_{type(cells).__name__.lower()}",
            sequential(Embedding(5_000, 100), cells, Dense(2, relu=False)),
            dataset="imdb",
            shape=(500,),
            classes=2,
        )
        for cells in (LSTM(100), GRU(100))
    ),
)

#: Loops over the sequences of a text, of networks that predict the next word and whose steps have
#: sizes of their own: ``word_lm_step``, ``gpt_small_step``. The first one is as small as the small
#: model of Zaremba et al. 2014.
TEXT_TRAININGS = tuple(
    _loop(
        network.__name__,
        network({"layers": layers, "units": units, "vocabulary": VOCABULARY}),
        dataset="text",
        shape=(LENGTH,),
        classes=VOCABULARY,
    )
    for network, layers, units in ((word_lm, 2, 200), (gpt_small, 4, 256))
)
