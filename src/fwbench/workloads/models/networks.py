"""The training loops of the suite.

``lenet`` and ``cifar_cnn`` are Benchmarks B, C and D of the TensorFlow / MXNet report of 2020,
``sentiment_lstm`` is the sentiment experiment of the PyTorch / MXNet post, whose sizes of embedding
and LSTM are not known: 100 each are taken here. ``sentiment_gru`` has as many, as the GRU of
"Deep Learning Frameworks" (Karmanov et al. 2018), a "Rosetta Stone". Of the well-known networks
(:mod:`fwbench.workloads.models.steps`) those that predict the next word of a text are trained on
one; the data that the others are published with are not here.
"""

from __future__ import annotations

from functools import partial

from fwbench.terms.presets import Schedule, Sizes
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

_digits = partial(Training, dataset="mnist", shape=(28, 28, 1), classes=10, optimizer=Adam(1e-3))

_sentiment = partial(
    Training,
    dataset="imdb",
    shape=(500,),
    classes=2,
    optimizer=Adam(1e-3),
    batches=Sizes(quick=(64,), paper=(64, 128, 256, 512, 1024), full=(64, 256, 1024)),
    schedules={
        "quick": Schedule(epochs=3, steps=3),
        "paper": Schedule(epochs=20),
        "full": Schedule(epochs=3),
    },
    quick=False,
    representative=False,
)

#: A small loop; Benchmarks B, C and D; the sentiment experiments. LeNet represents them.
TRAININGS = (
    _digits(
        name="mlp",
        network=sequential(Flatten(), Dense(128), Dense(64), Dense(10, relu=False)),
        batches=Sizes(quick=(128,), paper=(128,), full=(32, 128, 1024)),
        schedules={
            "quick": Schedule(epochs=4, steps=30),
            "paper": Schedule(epochs=5),
            "full": Schedule(epochs=5),
        },
        representative=False,
    ),
    _digits(
        name="lenet",
        network=sequential(
            *(Conv(6, 5), AveragePool(), Conv(16, 3), AveragePool(), Flatten()),
            *(Dense(120), Dense(84), Dense(10, relu=False)),
        ),
        batches=Sizes(quick=(200,), paper=(200,)),
        schedules={
            "quick": Schedule(epochs=3, steps=10),
            "paper": Schedule(epochs=15, repetitions=5),
            "full": Schedule(epochs=5),
        },
    ),
    Training(
        name="cifar_cnn",
        network=sequential(
            *(Conv(32, 3, same=True), Conv(32, 3), MaxPool(), Dropout(0.25)),
            *(Conv(64, 3, same=True), Conv(64, 3), MaxPool(), Dropout(0.25)),
            *(Flatten(), Dense(512), Dropout(0.5), Dense(10, relu=False)),
        ),
        dataset="cifar10",
        shape=(32, 32, 3),
        classes=10,
        optimizer=RMSprop(1e-4),
        batches=Sizes(quick=(32,), paper=(32,)),
        schedules={
            "quick": Schedule(epochs=3, steps=10),
            "paper": Schedule(epochs=25),
            "full": Schedule(epochs=5),
        },
        quick=False,
        representative=False,
    ),
    *(
        _sentiment(
            name=f"sentiment_{type(cells).__name__.lower()}",
            network=sequential(Embedding(5_000, 100), cells, Dense(2, relu=False)),
        )
        for cells in (LSTM(100), GRU(100))
    ),
)


def _of_text(name: str, network: Network, batches: Sizes) -> Training:
    """A loop over the sequences of a text, for a network that predicts the next word."""
    return Training(
        name=name,
        network=network,
        dataset="text",
        shape=(LENGTH,),
        classes=VOCABULARY,
        optimizer=Adam(1e-3),
        batches=batches,
        schedules={"quick": Schedule(epochs=3, steps=3), "full": Schedule(epochs=5)},
        quick=False,
        representative=False,
    )


#: Loops over a text, of networks whose steps have sizes of their own: ``word_lm_step``,
#: ``gpt_small_step``. The first one is as small as the small model of Zaremba et al. 2014.
TEXT_TRAININGS = (
    _of_text(
        "word_lm",
        word_lm({"layers": 2, "units": 200, "vocabulary": VOCABULARY}),
        Sizes(quick=(20,), full=(20, 80)),
    ),
    _of_text(
        "gpt_small",
        gpt_small({"layers": 4, "units": 256, "vocabulary": VOCABULARY}),
        Sizes(quick=(8,), full=(8, 32)),
    ),
)
