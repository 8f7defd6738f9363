"""Learners of JAX: tests of what they train, and what steps and resets of small networks leave."""

#: A program for an environment with JAX: prints what it found, as JSON.
LEARN = """
import json
import jax
import numpy as np
from fwbench.cases.epochs import judge
from fwbench.frameworks.jax.layers import Network
from fwbench.frameworks.learner import Job
from fwbench.frameworks.registry import load
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import BatchNorm, Conv, Dense, Dropout, Flatten
from fwbench.workloads.objective import SGD, Objective

framework = load("jax", 1)
traced = []
train = Network.train
Network.train = lambda self, *given: (traced.append(self), train(self, *given))[1]

def learner(*layers, momentum=0.9):
    network = sequential(*layers, Flatten(), Dense(3, relu=False))
    objective = Objective("small", network, (4, 4, 2), 3, SGD(0.1, momentum))
    return framework.learner(Job(objective, "cpu", "jit", "float32", 8))

def losses(learner, steps, *, rate=None, **reset):
    learner.reset(**reset)
    if rate is not None:
        learner.set_learning_rate(rate)
    return learner.losses([learner.step(*learner.place(batch)) for _ in range(steps)]).tolist()

rng = np.random.default_rng(0)
batch = rng.random((8, 4, 4, 2), dtype=np.float32), rng.integers(0, 3, 8, dtype=np.int32)
with framework.scope("cpu", "float32"):
    dropping = learner(Dropout(0.5), Dropout(0.5))
    exact = losses(dropping, 3, rate=0.0, exact=True)
    dropped = [losses(dropping, 3, rate=0.0, exact=False) for _ in range(2)]
    normalizing = learner(Conv(2, 3, relu=False), BatchNorm())
    normalizing.reset(exact=True)
    before, _ = judge(normalizing.logits(batch[0]), batch[1])
    normalized = losses(normalizing, 150, rate=0.0, exact=True)[-1]
    after, _ = judge(normalizing.logits(batch[0]), batch[1])
    plain = learner(momentum=0.0)
    once = losses(plain, 2, exact=True)
    kept = plain._state
    framework.waiter("cpu")()
    plain.step(*plain.place(batch))
    gone = [array.is_deleted() for arrays in kept.parameters for array in arrays]
    held = len(kept.moments)
    large = learner(Flatten(), Dense(4096), Dense(4096))
    losses(large, 2, exact=True)
    framework.waiter("cpu")()
    loss = large.step(*large.place(batch))
    before_it = loss.is_ready()
    framework.waiter("cpu")()
    waits = [before_it, all(array.is_ready() for array in jax.tree.leaves(large._state))]
print(json.dumps({
    "exact": exact, "dropped": dropped, "before": before, "normalized": normalized, "after": after,
    "once": once, "gone": gone, "held": held, "waits": waits,
    "traced": [traced.count(key) for key in {*traced}],
}))
"""

#: Verifies optimisers, and prints whether steps write where the state before them was.
UPDATE = """
import json
from fwbench import workloads
from fwbench.cases.case import bind
from fwbench.frameworks.learner import Job
from fwbench.frameworks.registry import load
from fwbench.workloads.cell import Cell

framework = load("jax", 1)
overwritten = {"eager": set(), "jit": set(), "training": set()}
with framework.scope("cpu", "float32"):
    for operation in workloads.FAMILIES["optimisers"]:
        for execution in ("eager", "jit"):
            cell = Cell(operation, "jax", "cpu", execution, "forward", "float32", 1000)
            work = bind(cell, framework)
            work.verify(work.run())
            work.run()  # what was read is kept
            variables = [work.inputs[place] for place in operation.updates]
            before = [*map(framework.address, variables)]
            arrays = [variable.array for variable in variables]
            last = work.run()
            now = [*map(framework.address, variables)]
            overwritten[execution] |= {x == y for x, y in zip(before, now, strict=True)}
            overwritten[execution] |= {array.is_deleted() for array in arrays}
            del arrays
            work.verify_again(last)
    learner = framework.learner(Job(workloads.mlp, "cpu", "jit", "float32", 8))
    learner.reset(exact=True)
    (batch,) = workloads.mlp.check_batches(8, 1)
    for _ in range(2):
        state = learner._state
        learner.step(*learner.place(batch))
    overwritten["training"] = {x.is_deleted() for layer in state.parameters for x in layer}
print(json.dumps({key: [*value] for key, value in overwritten.items()}))
"""

#: Models of users: a sound one, one of another shape than is declared, one whose loss is NaN.
MODELS = """
import numpy as np
import pytest
from fwbench import SGD, Adam, Input, Model

model = Model("model", (Input("batch", 6, below=20), Input("batch")),
              targets=Input("batch", below=3), batches=(1, 4), training_batches=(4,),
              optimizer=Adam(1e-3), output=("batch", 3))

@model.implement("jax")
def _(jax):
    rng = np.random.default_rng(0)
    def apply(own, tokens, scale):
        x = own["table"][tokens].mean(1) * scale[:, None]
        return jax.nn.gelu(x) @ own["last"]["kernel"] + own["last"]["bias"]
    last = {"kernel": rng.standard_normal((8, 3)), "bias": np.zeros(3)}
    return apply, {"table": rng.standard_normal((20, 8)), "last": last}

wide = Model("wide", Input("batch", 3), batches=(2,), output=("batch", 7))
wide.implement("jax")(lambda jax: (lambda own, x: x @ own, np.ones((3, 2))))
infinite = Model("infinite", Input("batch", 3), targets=Input("batch", 2), training_batches=(2,))
infinite.implement("jax")(lambda jax: (lambda own, x: x @ own / 0.0 * 0.0, np.ones((3, 2))))

def in_complex(optimizer):
    name = f"complex_{type(optimizer).__name__.lower()}"
    model = Model(name, Input("batch", 4), targets=Input("batch", 4), batches=(2,),
                  training_batches=(2,), optimizer=optimizer)

    @model.implement("jax")
    def _(jax):
        def apply(own, x):
            assert own.dtype == {"float32": "complex64", "float64": "complex128"}[str(x.dtype)]
            return jax.numpy.fft.irfft(jax.numpy.fft.rfft(x) * own, 4)
        return apply, np.array([1, 1j, 2 + 1j])

    return model

@pytest.mark.fwbench(model, wide, infinite.step, in_complex(Adam(1e-3)), in_complex(SGD(1e-3)))
def test_it(case):
    case.measure()
"""

#: Of the suite what has other kinds of layers or data; and a network with what they lack.
VERIFIED = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads import (
    FORWARD_BACKWARDS, INFERENCES, MODELS, SAMPLED, cifar_cnn, lenet, mlp, sentiment_gru,
    sentiment_lstm
)
from fwbench.workloads.models.layers import (
    Add, AveragePool, BatchNorm, Concat, Conv, Dense, Dropout, GlobalAveragePool, MaxPool, Relu
)
from fwbench.workloads.models.passes import ForwardBackward, Inference
from fwbench.workloads.training import SGD, Schedule

def network(x):
    x = Relu()(BatchNorm()(Conv(4, 5, relu=False, stride=2, padding=2, bias=False)(x)))
    x = Concat()(Add()(Conv(4, 2, same=True)(x), MaxPool(3, 1, 1)(x)), AveragePool(3, 1, 1)(x))
    return Dense(10, relu=False)(Dropout(0.1)(BatchNorm()(GlobalAveragePool()(x))))

branched = Training(
    name="branched",
    network=network,
    dataset="mnist",
    shape=(28, 28, 1),
    classes=10,
    optimizer=SGD(0.01, momentum=0.0),
    batches=Sizes(quick=(8,)),
    schedules={"quick": Schedule(epochs=2)},
)
every = *MODELS, *INFERENCES, *FORWARD_BACKWARDS
texts = [sentiment_gru.step, *SAMPLED, *(step for step in every if step.model == "gpt_small")]
passes = [kind("branched", branched, branched.batches) for kind in (Inference, ForwardBackward)]

@pytest.mark.fwbench(branched.step, dtypes=("float32", "float64", "bfloat16"))
def test_layers(case):
    case.measure()

@pytest.mark.fwbench(mlp.step, lenet.step, cifar_cnn.step, sentiment_lstm.step, *texts, *passes)
def test_networks(case):
    case.measure()

@pytest.mark.fwbench(mlp, lenet, sentiment_lstm, sentiment_lstm.loader)
def test_loops(case):
    case.measure()
"""
