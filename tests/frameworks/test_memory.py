"""Memory as frameworks report it: tensors that PyTorch saves, and MXNet's plans."""

from collections.abc import Mapping
from typing import Any

import pytest

from fwbench.machine import thread_variables
from support import programs
from support.real_training import if_installed

#: A vector of 2**18 elements: a MiB in float32.
_ELEMENTS = 2**18

_PROGRAMS: Mapping[str, str] = {
    "torch": """
def saved_by(function, *inputs):
    made = [framework.creator("cpu", "float32")(x) for x in inputs]
    run = framework.backward(lambda torch: function, made, [0], made[0], "eager")
    run()
    return framework.saved_for_backward(run)

import torch
x = np.ones(ELEMENTS)
# The result of the exponential; of the sum of squares the input, a parameter of the gradient.
results = [
    saved_by(torch.exp, x),
    saved_by(lambda x: torch.tanh(torch.exp(x)), x),
    saved_by(lambda x: x * x, x),
]
""",
    "mxnet": """
def planned_for(implementation, execution, variables, *inputs):
    made = [framework.creator("cpu", "float32")(x) for x in inputs]
    if variables:
        run = framework.backward(implementation, made, variables, made[0], execution)
    else:
        run = framework.forward(implementation, made, execution)
    run()
    return planned_bytes(run)

x = np.ones((512, ELEMENTS // 512))
chain = lambda F: lambda x: F.dot(F.sin(x), F.exp(x))
results = [
    planned_for(chain, "eager", (), x),
    planned_for(chain, "hybridize", (), x),
    planned_for(chain, "hybridize", [0], x),
]
""",
}

_HEAD = """
import json
import numpy as np
from fwbench.frameworks.probes import planned_bytes
from fwbench.frameworks.registry import load
framework = load(NAME, 2)
"""


def _measured(framework: str) -> list[Any]:
    program = "\n".join([_HEAD, _PROGRAMS[framework], "print(json.dumps(results))"])
    program = program.replace("NAME", repr(framework)).replace("ELEMENTS", str(_ELEMENTS))
    values: list[Any] = programs.result("-P", "-c", program, variables=thread_variables(2))
    return values


@pytest.mark.parametrize("framework", [if_installed("torch")])
def test_torch_tells_what_it_saves(framework: str) -> None:
    """In bytes, each tensor once; what is there in any case does not count."""
    size_bytes = 4 * _ELEMENTS
    assert _measured(framework) == [[size_bytes, 1], [2 * size_bytes, 2], [0, 0]]


@pytest.mark.parametrize("framework", [if_installed("mxnet")])
def test_mxnet_tells_what_it_plans(framework: str) -> None:
    """Graphs have two factors at least; a gradient needs no less than the forward pass."""
    eager, forward, backward = _measured(framework)
    assert eager is None
    assert forward >= 2 * 4 * _ELEMENTS
    assert backward >= forward
