"""The training loops of the suite.

``lenet`` and ``cifar_cnn`` are Benchmarks B, C and D of the TensorFlow / MXNet report of 2020,
``sentiment_lstm`` is the sentiment experiment of the PyTorch / MXNet post, whose sizes of embedding
and LSTM are not known: 100 each are taken here.
"""

from __future__ import annotations

from fwbench.presets import Schedule, Sizes
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import (
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

#: A small loop; Benchmarks B, C and D; the sentiment experiment. LeNet represents them.
TRAININGS = (
    Training(
        name="mlp",
        network=sequential(Flatten(), Dense(128), Dense(64), Dense(10, relu=False)),
        dataset="mnist",
        shape=(28, 28, 1),
        classes=10,
        optimizer=Adam(1e-3),
        batches=Sizes(quick=(128,), paper=(128,), full=(32, 128, 1024)),
        schedules={
            "quick": Schedule(epochs=4, steps=30),
            "paper": Schedule(epochs=5),
            "full": Schedule(epochs=5),
        },
        representative=False,
    ),
    Training(
        name="lenet",
        network=sequential(
            Conv(6, 5),
            AveragePool(),
            Conv(16, 3),
            AveragePool(),
            Flatten(),
            Dense(120),
            Dense(84),
            Dense(10, relu=False),
        ),
        dataset="mnist",
        shape=(28, 28, 1),
        classes=10,
        optimizer=Adam(1e-3),
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
            Conv(32, 3, same=True),
            Conv(32, 3),
            MaxPool(),
            Dropout(0.25),
            Conv(64, 3, same=True),
            Conv(64, 3),
            MaxPool(),
            Dropout(0.25),
            Flatten(),
            Dense(512),
            Dropout(0.5),
            Dense(10, relu=False),
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
    Training(
        name="sentiment_lstm",
        network=sequential(Embedding(5_000, 100), LSTM(100), Dense(2, relu=False)),
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
    ),
)
