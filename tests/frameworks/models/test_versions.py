"""Versions of one model in several frameworks: equal ones pass, and others say how they differ."""

import re

from support.projects import Project
from support.real_training import all_of, facts_of

_TEST = """
import numpy as np
import pytest
from fwbench import Adam, Input, Laid, Model, RMSprop, axes

rng = np.random.default_rng(0)
KERNEL, BIAS = rng.standard_normal((4, 3, 3, 3)), rng.standard_normal(4)

def conv(name, activation, **more):
    "The same convolution in both, but for the activation of MXNet's."
    model = Model(name, Input("batch", 6, 6, 3), targets=Input("batch", 4, 4, 4), batches=(2,),
                  training_batches=(2,), weights=lambda: {"weight": KERNEL, "bias": BIAS}, **more)
    channels_first = axes("nhwc->nchw", results=["nhwc->nchw"])

    def in_torch(torch):
        return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())

    def in_mxnet(mx):
        net = mx.gluon.nn.HybridSequential()
        net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.Activation(activation))
        return net

    first = lambda weights: {f"0.{name}": array for name, array in weights.items()}
    model.implement("torch", weights=first)(Laid(in_torch, channels_first))
    model.implement("mxnet", weights=first)(Laid(in_mxnet, channels_first))
    return model

equal, other = conv("equal", "relu"), conv("other", "softrelu")
adam = conv("adam", "relu", optimizer=Adam(1e-3))
rmsprop = conv("rmsprop", "relu", optimizer=RMSprop(1e-3))

larger = Model("larger", Input("batch", 3), batches=(2,))
larger.implement("torch")(lambda torch: torch.nn.Linear(3, 4))

@larger.implement("mxnet")
def _(mx):
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(4), mx.gluon.nn.Dense(5))
    return net

@pytest.mark.fwbench(equal.inference, adam.step, rmsprop.step, other.inference, larger)
def test_it(case):
    case.measure()
"""


def test_versions_are_compared(project: Project) -> None:
    """Where weights are shared by their results; parameters in any case, by names and shapes.

    Losses are equal by any optimiser, though PyTorch adds epsilon elsewhere.
    """
    project.write("test_it.py", _TEST)
    arguments = ("--fw-threads=1", "--junitxml=junit.xml", "--fw-execution=eager")
    result, records = project.measure(*arguments, fw=all_of("torch", "mxnet", least=2))
    result.assert_outcomes(passed=8, failed=2)
    by = {
        facts_of(record)["verified_against"] for name, record in records.items() if "equal" in name
    }
    assert len(by) == 1
    texts = {
        name: outcome.text
        for name, outcome in project.outcomes().items()
        if outcome.kind == "failure"
    }
    (wrong,) = (text for name, text in texts.items() if "other" in name)
    assert re.search(r"and the run of (torch|mxnet) \S+ in float64 ", wrong), wrong
    (differs,) = (text for name, text in texts.items() if "larger" in name)
    assert re.search(r"larger has (16|41) parameters in \w+ and (16|41) in \w+: ", differs)
    assert "1.weight (5, 4); 1.bias (5,) in mxnet alone" in differs
    assert "nothing in torch alone" in differs
