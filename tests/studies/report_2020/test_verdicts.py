"""The statements of 2020: every verdict, and what is said of today."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.reports import case
from support.runs_of_2020 import (
    EAGER,
    FAILS,
    FIRST_EPOCH,
    HOLDS,
    HYBRIDIZE,
    NOISE,
    NOISE_TOO,
    SURE,
    SYNTHETIC,
    TRAINS_FASTER,
    TWICE,
    UNKNOWN,
    XLA,
    Entry,
    graph_lenet,
    judged,
    lenet,
    model,
)

#: Statement, what was measured, the verdict, and what the text says of today.
_JUDGED: dict[str, tuple[str, Sequence[Entry], str, str]] = {
    "MXNet is faster": (
        TRAINS_FASTER,
        [graph_lenet(TWICE), lenet("mxnet", "eager", SURE)],
        HOLDS,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "MXNet is slower": (
        TRAINS_FASTER,
        [graph_lenet(SURE), lenet("mxnet", "eager", TWICE)],
        FAILS,
        "tensorflow graph 1 s, mxnet eager 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "MXNet is as fast": (
        TRAINS_FASTER,
        [graph_lenet(SURE), lenet("mxnet", "eager", SURE)],
        UNKNOWN,
        "tensorflow graph 1 s, mxnet eager 1 s: 1.00x (1.00x to 1.00x)",
    ),
    "MXNet is too noisy": (
        TRAINS_FASTER,
        [graph_lenet(NOISE), lenet("mxnet", "eager", NOISE_TOO)],
        UNKNOWN,
        "tensorflow graph 2 s, mxnet eager 2.1 s: 0.95x (",
    ),
    "MXNet has two values": (
        TRAINS_FASTER,
        [graph_lenet(TWICE), lenet("mxnet", "eager", (1.0, 1.0))],
        UNKNOWN,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "TensorFlow has two values": (
        TRAINS_FASTER,
        [graph_lenet((2.0, 2.0)), lenet("mxnet", "eager", SURE)],
        UNKNOWN,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "both have three values": (
        TRAINS_FASTER,
        [graph_lenet((2.0,) * 3), lenet("mxnet", "eager", (1.0,) * 3)],
        HOLDS,
        "tensorflow graph 2 s, mxnet eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "no graph": (
        TRAINS_FASTER,
        [lenet("tensorflow", "eager", TWICE), lenet("mxnet", "eager", SURE)],
        UNKNOWN,
        "needs LeNet in tensorflow graph and mxnet eager",
    ),
    "no eager MXNet": (
        TRAINS_FASTER,
        [graph_lenet(TWICE), lenet("mxnet", "hybridize", SURE)],
        UNKNOWN,
        "needs LeNet in tensorflow graph and mxnet eager",
    ),
    "hybridize gains time and loses accuracy": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", TWICE, accuracy=0.987),
            lenet("mxnet", "hybridize", SURE, accuracy=0.98),
        ],
        HOLDS,
        "mxnet eager 2 s, mxnet hybridize 1 s: 2.00x (2.00x to 2.00x); accuracy 98.70% and 98.00%",
    ),
    "hybridize gains time alone": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", SURE, accuracy=0.98),
        ],
        FAILS,
        "mxnet eager 2 s, mxnet hybridize 1 s: 2.00x (2.00x to 2.00x); accuracy 98.00% and 98.00%",
    ),
    "hybridize gains both": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", TWICE, accuracy=0.97),
            lenet("mxnet", "hybridize", SURE, accuracy=0.98),
        ],
        FAILS,
        "accuracy 97.00% and 98.00%",
    ),
    "hybridize loses both": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", SURE, accuracy=0.98),
            lenet("mxnet", "hybridize", TWICE, accuracy=0.97),
        ],
        FAILS,
        "mxnet eager 1 s, mxnet hybridize 2 s: 0.50x (0.50x to 0.50x); accuracy 98.00% and 97.00%",
    ),
    "hybridize is too noisy": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", NOISE, accuracy=0.98),
            lenet("mxnet", "hybridize", NOISE_TOO, accuracy=0.97),
        ],
        UNKNOWN,
        "accuracy 98.00% and 97.00%",
    ),
    "hybridize is noisy and loses no accuracy": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", NOISE, accuracy=0.98),
            lenet("mxnet", "hybridize", NOISE_TOO, accuracy=0.98),
        ],
        FAILS,
        "accuracy 98.00% and 98.00%",
    ),
    "hybridize loses 0.1 points": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", SURE, accuracy=0.979),
        ],
        HOLDS,
        "accuracy 98.00% and 97.90%",
    ),
    "hybridize loses less": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", SURE, accuracy=0.9791),
        ],
        FAILS,
        "accuracy 98.00% and 97.91%",
    ),
    "hybridize has two values": (
        HYBRIDIZE,
        [
            lenet("mxnet", "eager", TWICE, accuracy=0.98),
            lenet("mxnet", "hybridize", (1.0, 1.0), accuracy=0.97),
        ],
        UNKNOWN,
        "2.00x, of fewer than 3 values",
    ),
    "hybridize alone": (
        HYBRIDIZE,
        [lenet("mxnet", "hybridize")],
        UNKNOWN,
        "needs LeNet in mxnet eager and mxnet hybridize",
    ),
    "hybridize was not tested": (
        HYBRIDIZE,
        [lenet("mxnet", "eager", TWICE), lenet("mxnet", "hybridize", SURE, accuracy=None)],
        UNKNOWN,
        "hybridize 1 s: 2.00x (2.00x to 2.00x); accuracy was not tested in both",
    ),
    "XLA is slower": (
        XLA,
        [lenet("tensorflow", "xla", TWICE), graph_lenet(SURE)],
        HOLDS,
        "tensorflow xla 2 s, tensorflow graph 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "XLA is faster": (
        XLA,
        [lenet("tensorflow", "xla", SURE), graph_lenet(TWICE)],
        FAILS,
        "tensorflow xla 1 s, tensorflow graph 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "XLA is too noisy": (
        XLA,
        [lenet("tensorflow", "xla", NOISE), graph_lenet(NOISE_TOO)],
        UNKNOWN,
        "tensorflow xla 2 s, tensorflow graph 2.1 s: 0.95x (",
    ),
    "XLA has two values": (
        XLA,
        [lenet("tensorflow", "xla", (2.0, 2.0)), graph_lenet(SURE)],
        UNKNOWN,
        "tensorflow xla 2 s, tensorflow graph 1 s: 2.00x, of fewer than 3 values",
    ),
    "no XLA": (
        XLA,
        [lenet("tensorflow", "fit", TWICE), graph_lenet(SURE)],
        UNKNOWN,
        "needs LeNet in tensorflow xla and tensorflow graph",
    ),
    "every first epoch is long": (
        FIRST_EPOCH,
        [lenet("mxnet", "eager", first_s=2.5), lenet("tensorflow", "graph", first_s=3.0)],
        HOLDS,
        "2.50x (lenet mxnet eager 200) to 3.00x (lenet tensorflow graph 200)",
    ),
    "no first epoch is long": (
        FIRST_EPOCH,
        [lenet("mxnet", "eager", first_s=0.9), lenet("tensorflow", "graph", first_s=1.2)],
        FAILS,
        "0.90x (lenet mxnet eager 200) to 1.20x (lenet tensorflow graph 200)",
    ),
    "some first epochs are long": (
        FIRST_EPOCH,
        [lenet("mxnet", "eager", first_s=1.1), lenet("tensorflow", "graph", first_s=2.5)],
        UNKNOWN,
        "1.10x (lenet mxnet eager 200) to 2.50x (lenet tensorflow graph 200)",
    ),
    "a first epoch of twice the others": (
        FIRST_EPOCH,
        [lenet(first_s=2.0)],
        HOLDS,
        "2.00x (lenet mxnet eager 200) to 2.00x (lenet mxnet eager 200)",
    ),
    "a first epoch of less than that": (
        FIRST_EPOCH,
        [lenet(first_s=1.99)],
        FAILS,
        "1.99x (lenet mxnet eager 200) to 1.99x (lenet mxnet eager 200)",
    ),
    "the first epoch of another model": (
        FIRST_EPOCH,
        [model("mlp", "torch")(1.0, first_s=2.5)],
        HOLDS,
        "2.50x (mlp torch eager 200)",
    ),
    "a training of one epoch": (
        FIRST_EPOCH,
        [lenet(values_s=(), first_s=9.0)],
        UNKNOWN,
        "no training has more than one epoch",
    ),
    "a training of one epoch beside another": (
        FIRST_EPOCH,
        [lenet(values_s=(), first_s=9.0), lenet("tensorflow", "graph", first_s=2.5)],
        HOLDS,
        "2.50x (lenet tensorflow graph 200) to 2.50x (lenet tensorflow graph 200)",
    ),
    "eager is faster": (
        EAGER,
        [lenet("tensorflow", "eager", SURE), graph_lenet(TWICE)],
        HOLDS,
        "lenet: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "eager is slower": (
        EAGER,
        [lenet("tensorflow", "eager", TWICE), graph_lenet(SURE)],
        FAILS,
        "lenet: tensorflow graph 1 s, tensorflow eager 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "eager is too noisy": (
        EAGER,
        [lenet("tensorflow", "eager", NOISE), graph_lenet(NOISE_TOO)],
        UNKNOWN,
        "lenet: tensorflow graph 2.1 s, tensorflow eager 2 s: 1.05x (",
    ),
    "eager has two values": (
        EAGER,
        [lenet("tensorflow", "eager", (1.0, 1.0)), graph_lenet(TWICE)],
        UNKNOWN,
        "lenet: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "eager is faster in one model and has few values in another": (
        EAGER,
        [
            *(lenet("tensorflow", "eager", SURE), graph_lenet(TWICE)),
            *(model("mlp")(1.0), model("mlp", execution="graph")(2.0, values_s=(2.0, 2.0))),
        ],
        UNKNOWN,
        "mlp: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x, of fewer than 3 values",
    ),
    "eager is faster in one model": (
        EAGER,
        [
            *(lenet("tensorflow", "eager", SURE), graph_lenet(TWICE)),
            *(model("mlp")(2.0), model("mlp", execution="graph")(1.0)),
        ],
        UNKNOWN,
        "mlp: tensorflow graph 1 s, tensorflow eager 2 s: 0.50x (0.50x to 0.50x)",
    ),
    "eager is faster in both models": (
        EAGER,
        [
            *(lenet("tensorflow", "eager", SURE), graph_lenet(TWICE)),
            *(model("mlp")(1.0), model("mlp", execution="graph")(4.0)),
        ],
        HOLDS,
        "mlp: tensorflow graph 4 s, tensorflow eager 1 s: 4.00x (4.00x to 4.00x)",
    ),
    "XLA is no graph": (
        EAGER,
        [lenet("tensorflow", "eager", SURE), lenet("tensorflow", "xla", TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "a step is faster in eager": (
        EAGER,
        [
            case("lenet_step", "tensorflow", seconds, execution, 200, direction="train")
            for execution, seconds in (("eager", SURE), ("graph", TWICE))
        ],
        HOLDS,
        "lenet_step: tensorflow graph 2 s, tensorflow eager 1 s: 2.00x (2.00x to 2.00x)",
    ),
    "eager has other toggles": (
        EAGER,
        [
            lenet("tensorflow", "eager", SURE, toggles_asked={"onednn": "off"}),
            graph_lenet(TWICE, toggles_asked={"onednn": "on"}),
        ],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "eager has toggles": (
        EAGER,
        [lenet("tensorflow", "eager", SURE, toggles_asked={"onednn": "on"}), graph_lenet(TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "eager has other data": (
        EAGER,
        [lenet("tensorflow", "eager", SURE, data=SYNTHETIC), graph_lenet(TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "eager has other epochs": (
        EAGER,
        [lenet("tensorflow", "eager", SURE, steps_per_epoch=10), graph_lenet(TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "steps of other batches": (
        EAGER,
        [
            case("lenet_step", "tensorflow", SURE, "eager", 200, direction="train"),
            case("lenet_step", "tensorflow", TWICE, "graph", 100, direction="train"),
        ],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "an operation in eager": (
        EAGER,
        [case("gemm", "tensorflow", execution=name) for name in ("eager", "graph")],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
    "another framework in eager": (
        EAGER,
        [lenet("mxnet", "eager", SURE), lenet("mxnet", "graph", TWICE)],
        UNKNOWN,
        "needs a model, or its step, in tensorflow eager and graph",
    ),
}


@pytest.mark.parametrize(
    ("statement", "entries", "verdict", "figures"), _JUDGED.values(), ids=_JUDGED
)
def test_statements_are_judged(
    tmp_path: Path, statement: str, entries: Sequence[Entry], verdict: str, figures: str
) -> None:
    """With the figures that the verdict is made on, in whatever order they were measured."""
    for order in (entries, entries[::-1]):
        found = judged(tmp_path, statement, *order)
        assert found["verdict"] == verdict
        assert figures in found["today"]
