"""Learners of JAX on small networks: what their steps and resets leave."""

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
    waits = [before_it, all(one.is_ready() for one in jax.tree.leaves(large._state))]
print(json.dumps({
    "exact": exact, "dropped": dropped, "before": before, "normalized": normalized, "after": after,
    "once": once, "gone": gone, "held": held, "waits": waits,
    "traced": [traced.count(one) for one in {*traced}],
}))
"""
