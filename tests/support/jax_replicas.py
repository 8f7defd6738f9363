"""Replicas of JAX: what they exchange and train, and how each way not to train is found."""

from typing import Any

#: A program for an environment with JAX; its argument is a folder. Prints what it found, as JSON.
PROGRAM = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
import numpy as np
from fwbench import workloads
from fwbench.errors import VerificationError
from fwbench.scale import judgement
from fwbench.scale.shares import Task
from fwbench.workloads.models import trajectories
from support.gangs import installed, started

installed(Path(sys.argv[1]), "cheating_jax", "support.cheating_jax:CheatingJax")
os.environ["PYTHONPATH"] = os.pathsep.join([sys.argv[1], os.environ["PYTHONPATH"]])


def ask(gang, kind, *values):
    return gang.ask(kind, *values, limit_s=300.0, doing=kind)


def bound(gang, workload, size, steps, dtype="float32"):
    ask(gang, "bind", asdict(Task(workload, size, "cpu", "jit", dtype, sparse=False)))
    return ask(gang, "check", steps)


def judged(gang, training, batch):
    answers = bound(gang, training.step.name, batch, 10)
    judgement.training(answers, training, batch, "float32", "before the timing")
    return answers


def trained(gang, training):
    losses = np.mean([told["losses"] for told in judged(gang, training, 120)], axis=0)
    expected = np.array(trajectories.expected_losses(training, 120, lazy=False)[:10])
    ask(gang, "round", 3)
    judgement.same_weights(ask(gang, "look"), "after the timing")
    return float(abs(losses / expected - 1.0).max())


def exchanged(gang, collective, dtype):
    answers = bound(gang, collective, 1002, 3, dtype)
    ask(gang, "round", 3)
    assert ask(gang, "look") == [{}, {}]
    return judgement.sent(answers)


def said(gang, batch):
    try:
        judged(gang, workloads.lenet, batch)
    except VerificationError as error:
        return f"{type(error).__name__}: {error}"
    return ""


found = {"deviations": {}}
for replicas in (2, 3):
    gang = started(replicas, "cheating_jax")
    found["deviations"][replicas] = [
        trained(gang, training) for training in (workloads.mlp, workloads.lenet)
    ]
    if replicas == 2:
        found["sent"] = {
            f"{name} {dtype}": exchanged(gang, name, dtype)
            for name in ("all_reduce", "reduce_scatter", "all_gather")
            for dtype in ("float32", "float64")
        }
        found["cheats"] = [said(gang, batch) for batch in (16, 32, 48, 64)]
    gang.close()
print(json.dumps(found))
"""


def check(found: dict[str, Any]) -> None:
    """Losses are those of one worker, nobody keeps silent, and each mistake is named.

    Args:
        found: what the program has printed.
    """
    for deviations in found["deviations"].values():
        assert max(deviations) < 1e-5
    for exchange, sent in found["sent"].items():
        factor = 2.0 if exchange.startswith("all_reduce") else 1.0
        bytes_each = 8 if exchange.endswith("float64") else 4
        assert sent is None or sent >= 3 * factor * bytes_each * 1002, exchange
    nothing, summed, otherwise, skipped = found["cheats"]
    wrong = "WrongGradient: before the timing, what 2 replicas exchange is wrong: the gradient by "
    assert nothing.startswith(wrong)
    assert summed.startswith(wrong)
    assert "worker 1 has other weights than worker 0 before the first step" in otherwise
    assert "worker 1 has other weights than worker 0 after step 3" in skipped
