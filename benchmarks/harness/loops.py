"""fwbench's training takes no longer than the same training written by hand.

This file is a script and a test file in one. The script runs pytest on the file: the tests measure
in each framework's worker, and beside each case, in the same process and thread, the same work with
nothing of fwbench: the framework's own layers, loader and optimiser, as its documentation has them.

- Loops: LeNet, an epoch a round.
- Steps: ResNet-50 and GPT-2 (:mod:`by_hand`) at their quick sizes, with the weights and the batch
  of the case; the first loss must be that of fwbench's reference.

Which of the two comes first alternates. The figure is the smallest time that fwbench reported over
the smallest one by hand, over a few sessions: other load makes either slower for a while, and never
faster. It must be within 3 % of 1. In brackets the smallest and the largest ratio of a pair.

Steps are compared in processor time as well, call by call: the median of the learner's own step
over that by hand, in brackets the quartiles of the ratios of neighbours. Other load hardly moves
it, so it tells something on a machine that is not idle.

    python benchmarks/harness/loops.py --rounds 1 --select resnet50_step
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
import timeit
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import bounds
import by_hand
import numpy as np
import pairs
import pytest
from numpy.typing import NDArray

from fwbench.cases.case import Case
from fwbench.cases.references import InNumPy
from fwbench.cases.training import LoopCase, StepCase
from fwbench.measure import empty_stack
from fwbench.terms.presets import Shape
from fwbench.workloads import MODELS, lenet
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import SGD

_WITHIN = 0.03
_EPOCHS = 6
_STEPS = 40

_EXECUTIONS = ("graph", "xla", "hybridize", "eager")
_BY_NAME = {model.model: model for model in MODELS}
_MODELS = (_BY_NAME["resnet50"], _BY_NAME["gpt_small"])

#: How each framework is used by hand for steps.
_COMPILED = {"mxnet": ("hybridize",), "tensorflow": ("graph", "xla"), "torch": ("eager",)}

#: How often a step is called before it is timed, which compiles it and fills its caches.
_WARM_UP = 3

#: How many pairs of steps are compared in processor time.
_PAIRS = 30

#: What the first loss by hand may be off by, of itself.
_SAME_LOSS = 1e-4

Loop = Callable[[Any, Any, int], list[float]]


def _torch(x: Any, y: Any, batch: int) -> list[float]:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    model = nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.AvgPool2d(2)),
        *(nn.Conv2d(6, 16, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten()),
        *(nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7)
    loss_of = nn.CrossEntropyLoss()
    images = torch.from_numpy(x.transpose(0, 3, 1, 2).copy())
    loader = DataLoader(TensorDataset(images, torch.from_numpy(y).long()), batch, shuffle=True)
    seconds = []
    for _ in range(_EPOCHS):
        start = time.perf_counter()
        losses = []
        for examples, labels in loader:
            optimizer.zero_grad()
            loss = loss_of(model(examples), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        seconds.append(time.perf_counter() - start)
    return seconds


def _tensorflow(x: Any, y: Any, batch: int) -> list[float]:
    import keras
    import tensorflow as tf

    relu = {"activation": "relu"}
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            *(keras.layers.Conv2D(6, 5, **relu), keras.layers.AveragePooling2D(2)),
            *(keras.layers.Conv2D(16, 3, **relu), keras.layers.AveragePooling2D(2)),
            keras.layers.Flatten(),
            *(keras.layers.Dense(120, **relu), keras.layers.Dense(84, **relu)),
            keras.layers.Dense(10),
        ]
    )
    optimizer = keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function  # type: ignore[untyped-decorator]
    def step(examples: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(examples, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    images, classes = tf.constant(x), tf.constant(y)
    # Whole batches by index, as fwbench has them: slices one by one would take longer.
    indices = tf.data.Dataset.range(len(y)).shuffle(len(y)).batch(batch, drop_remainder=True)
    dataset = indices.map(lambda chosen: (tf.gather(images, chosen), tf.gather(classes, chosen)))
    options = tf.data.Options()
    options.autotune.enabled = False  # its thread makes epochs end late
    dataset = dataset.with_options(options)
    seconds = []
    for _ in range(_EPOCHS):
        start = time.perf_counter()
        losses = []
        for examples, labels in dataset:
            losses.append(step(examples, labels))
        seconds.append(time.perf_counter() - start)
    return seconds


def _mxnet(x: Any, y: Any, batch: int) -> list[float]:
    import mxnet as mx
    from mxnet import autograd, gluon
    from mxnet.gluon import nn

    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 5, activation="relu"), nn.AvgPool2D())
    net.add(nn.Conv2D(16, 3, activation="relu"), nn.AvgPool2D(), nn.Flatten())
    net.add(nn.Dense(120, activation="relu"), nn.Dense(84, activation="relu"), nn.Dense(10))
    net.initialize()
    net.hybridize(static_alloc=True, static_shape=True)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    loss_of.hybridize(static_alloc=True, static_shape=True)
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 1e-3, "epsilon": 1e-7})
    arrays = gluon.data.ArrayDataset(x.transpose(0, 3, 1, 2).copy(), y)
    loader = gluon.data.DataLoader(arrays, batch_size=batch, shuffle=True)
    seconds = []
    for _ in range(_EPOCHS):
        mx.nd.waitall()
        start = time.perf_counter()
        losses = []
        for examples, labels in loader:
            with autograd.record():
                loss = loss_of(net(examples), labels)
            loss.backward()
            trainer.step(batch)
            losses.append(loss)
        mx.nd.waitall()
        seconds.append(time.perf_counter() - start)
    return seconds


_BY_HAND: dict[str, tuple[str, Loop]] = {
    "mxnet": ("hybridize", _mxnet),
    "tensorflow": ("graph", _tensorflow),
    "torch": ("eager", _torch),
}


def _by_hand_s(case: LoopCase) -> list[float]:
    """The seconds of each epoch but the first."""
    from fwbench.cases.epochs import whole

    examples, labels = whole(case.data().train)
    batch = case.cell.batch
    count = _STEPS * batch
    loop = _BY_HAND[case.framework.name][1]
    return loop(examples[:count], labels[:count], batch)[1:]


_in_turns = pytest.mark.parametrize("turn", range(2))


def _in_turn(case: Case, turn: int, by_hand_s: Callable[[], list[float]]) -> None:
    """fwbench and the same work by hand, which of them first by turns."""
    if turn % 2:
        case.benchmark.extra_info["by_hand_s"] = _as_a_script(case, by_hand_s)
        case.measure()
    else:
        case.measure()
        case.benchmark.extra_info["by_hand_s"] = _as_a_script(case, by_hand_s)


def _as_a_script(case: Case, call: Callable[[], Any]) -> Any:
    """The result of a call from a shallow stack, as in a script written by hand."""
    return empty_stack.call(call) if case.framework.reads_stack else call()


@_in_turns
@pytest.mark.fwbench(lenet, frameworks=tuple(_BY_HAND), executions=_EXECUTIONS)
def test_loop(case: LoopCase, turn: int) -> None:
    """A whole training."""
    if _BY_HAND[case.framework.name][0] != case.cell.execution:
        pytest.skip("written by hand for another execution")
    _in_turn(case, turn, partial(_by_hand_s, case))


@_in_turns
@pytest.mark.fwbench(*_MODELS, frameworks=tuple(_BY_HAND), executions=_EXECUTIONS)
def test_step(case: StepCase, turn: int) -> None:
    """A step, over and over."""
    if case.cell.execution not in _COMPILED[case.framework.name]:
        pytest.skip("written by hand for other executions")
    _in_turn(case, turn, partial(_steps_s, case))
    case.benchmark.extra_info["processor_s"] = _as_a_script(case, partial(_alternately_s, case))


_ROUNDS = pairs.Rounds()


def _steps_s(case: StepCase) -> list[float]:
    """The seconds of as many steps as fwbench has timed."""
    rounds, calls = _ROUNDS.take(case)
    step = _checked(case)
    return [timeit.timeit(step, number=calls) / calls for _ in range(rounds)]


def _checked(case: StepCase) -> Callable[[], float]:
    """The step by hand, which has trained as the reference does, and is warm."""
    step = by_hand.step(case.framework.name, _task(case))
    (expected, *_) = InNumPy(case.learner()).losses
    losses = [step() for _ in range(_WARM_UP)]
    if not math.isclose(losses[0], expected, rel_tol=_SAME_LOSS):
        pytest.fail(
            f"by hand the first loss is {losses[0]:.9g}, and the reference's {expected:.9g}"
        )
    return step


def _alternately_s(case: StepCase) -> list[tuple[float, float]]:
    """Processor seconds of the learner's own step, and of the step by hand, one after the other."""
    by_hand_step = _checked(case)
    learner = case.learner()
    learner.reset(exact=False)
    ((examples, labels),) = case.training.check_batches(case.cell.batch, 1)
    step = partial(learner.step, *learner.place((examples, labels)))
    wait = case.framework.waiter(case.cell.device) or int
    for _ in range(_WARM_UP):
        step()
    return [
        (_processor_s(lambda: (step(), wait())), _processor_s(by_hand_step)) for _ in range(_PAIRS)
    ]


def _processor_s(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _task(case: StepCase) -> by_hand.Task:
    training = case.training
    ((examples, labels),) = training.check_batches(case.cell.batch, 1)
    initial = training.initial()
    assert isinstance(training.optimizer, SGD)
    assert isinstance(case.cell.size, Shape)
    return by_hand.Task(
        training.name,
        case.cell.size,
        _flat(initial),
        _flat(training.graph.channels_first(initial)),
        examples,
        labels,
        training.optimizer.learning_rate,
        training.optimizer.momentum,
        case.cell.execution,
    )


def _flat(of_nodes: Sequence[Arrays]) -> list[NDArray[np.float32]]:
    return [array.astype(np.float32) for arrays in of_nodes for array in arrays]


def main() -> int:
    """Measure, print, and give the exit status."""
    texts = {"select": "which cases, as pytest's -k"}
    given = bounds.arguments(__doc__, rounds=3, texts=texts)
    times_s: dict[str, list[tuple[float, float]]] = defaultdict(list)
    alternately: dict[str, list[tuple[float, float]]] = defaultdict(list)
    options = [f"--fw-train=epochs={_EPOCHS}", f"--fw-train=steps={_STEPS}", f"-k={given.select}"]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(given.rounds):
            # Written by hand it runs where the framework likes: here on the CPU, like the cases.
            for record in bounds.records(
                Path(folder) / "run.json", __file__, *options, CUDA_VISIBLE_DEVICES="-1"
            ):
                facts = record["extra_info"]["fwbench"]
                parts = ("framework", "execution", "workload", "shape")
                name = " ".join(filter(None, (facts.get(part) for part in parts)))
                by_hand_s = min(record["extra_info"]["by_hand_s"])
                times_s[name].append((record["stats"]["min"], by_hand_s))
                alternately[name] += record["extra_info"].get("processor_s", [])
    findings = [_finding(*item) for item in sorted(times_s.items())]
    steps = ((name, pairs_s) for name, pairs_s in sorted(alternately.items()) if pairs_s)
    return bounds.conclude([*findings, *(_in_processor_time(*item) for item in steps)])


def _finding(name: str, times_s: list[tuple[float, float]]) -> bounds.Finding:
    ratios = [ours_s / by_hand_s for ours_s, by_hand_s in times_s]
    by_hand_s = min(by_hand_s for _, by_hand_s in times_s)
    ratio = min(ours_s for ours_s, _ in times_s) / by_hand_s
    return bounds.Finding(
        f"{name} ({1e3 * by_hand_s:.4g} ms)",
        f"{ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f})",
        f"at most {1 + _WITHIN:g}",
        ratio <= 1 + _WITHIN,
    )


def _in_processor_time(name: str, pairs_s: list[tuple[float, float]]) -> bounds.Finding:
    own_s, by_hand_s = (statistics.median(times_s) for times_s in zip(*pairs_s, strict=True))
    low, _, high = statistics.quantiles([step_s / by_hand for step_s, by_hand in pairs_s], n=4)
    return bounds.Finding(
        f"{name}, processor time ({1e3 * by_hand_s:.4g} ms)",
        f"{own_s / by_hand_s:.3f} ({low:.3f} to {high:.3f})",
        f"at most {1 + _WITHIN:g}",
        own_s / by_hand_s <= 1 + _WITHIN,
    )


if __name__ == "__main__":
    sys.exit(main())
