"""A small network that is trained with and without recomputation, in any framework."""

from collections.abc import Mapping
from typing import Any

import pytest

#: Prints what a framework found, by execution: its name, then the executions, are arguments.
PROGRAM = """
import json
import sys
from fwbench.frameworks.learner import Job
from fwbench.frameworks.registry import load
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import BatchNorm, Conv, Dense, GlobalAveragePool
from fwbench.workloads.objective import SGD, Objective

name, *executions = sys.argv[1:]
framework = load(name, 2)

def counting(owner, method, called):
    plain = getattr(owner, method)

    def count(*given, **more):
        called.append(owner)
        return plain(*given, **more)

    setattr(owner, method, count)

def torch_convolutions(called):
    import torch
    counting(torch.nn.Conv2d, "forward", called)

def tensorflow_convolutions(called):
    import keras
    counting(keras.layers.Conv2D, "convolution_op", called)

def jax_convolutions(called):
    import jax
    from fwbench.frameworks.jax.training import JaxLearner
    step = JaxLearner.step

    def compiled(learner, *batch):
        text = str(jax.make_jaxpr(learner._train)(learner._state, *batch))
        called.extend([text] * text.count("conv_general_dilated["))
        return step(learner, *batch)

    JaxLearner.step = compiled

#: A convolution and a normalization, four times; the last of four segments has the answer, too.
block = (Conv(6, 3, same=True, relu=False), BatchNorm())
network = sequential(*block * 4, GlobalAveragePool(), Dense(3, relu=False))
objective = Objective("small", network, (8, 8, 2), 3, SGD(0.1))
called = []
globals()[f"{name}_convolutions"](called)

def trained(execution, recompute):
    with framework.scope("cpu", "float32"):
        job = Job(objective, "cpu", execution, "float32", 8, recompute=recompute)
        learner = framework.learner(job)
        learner.reset(exact=True)
        batches = objective.check_batches(8, 3)
        first, *others = [learner.place(batch) for batch in batches]
        called.clear()
        losses = [learner.step(*first)]
        convolutions = len(called)
        losses += [learner.step(*batch) for batch in others]
        answers = learner.logits(batches[0][0]).tolist()
        saved = framework.saved_for_backward(lambda: learner.step(*first))
        return {
            "losses": learner.losses(losses).tolist(),
            "answers": answers,
            "convolutions": convolutions,
            "saved": saved and saved.size_bytes,
            "segments": len(objective.graph.segments),
        }

print(json.dumps({
    execution: {value: trained(execution, value == "on") for value in ("off", "on")}
    for execution in executions
}))
"""


def check(results: Mapping[str, Any]) -> None:
    """The training of one execution is the same with and without recomputation."""
    kept, recomputed = results["off"], results["on"]
    assert recomputed["losses"] == pytest.approx(kept["losses"], rel=1e-5)
    for first, other in zip(recomputed["answers"], kept["answers"], strict=True):
        assert first == pytest.approx(other, rel=1e-3, abs=1e-4)


#: A program for an environment with JAX: prints flops and bytes by operation, in float32.
COUNT = """
import json
import warnings

import jax

from fwbench.cases.case import bind
from fwbench.frameworks.jax.device import latest
from fwbench.frameworks.jax.operations import OPERATIONS as TABLE
from fwbench.frameworks.registry import load
from fwbench.frameworks.table import implementation as step
from fwbench.workloads.grid import Cell
from fwbench.workloads import OPERATIONS

warnings.simplefilter("ignore")  # of int64 indices, which JAX makes int32
framework = load("jax", 1)
manifest = framework.manifest("a CPU")
counted = {}
for operation in OPERATIONS:
    if manifest.gap(operation.name, "jit", "forward", "float32", "cpu", 0, ()) is None:
        cell = Cell(operation, "jax", "cpu", "eager", "forward", "float32", operation.smallest)
        run = bind(cell, framework).run
        # What is bound to a step that overwrites its state has no result.
        call = step(TABLE, operation.name)(jax) if operation.updates else run.func
        cost = jax.jit(call).lower(*map(latest, run.args)).compile().cost_analysis()
        flops = cost.get("flops", 0) + cost.get("transcendentals", 0)
        counted[operation.name] = flops, cost.get("bytes accessed", 0)
print(json.dumps(counted))
"""
