"""The state of optimisers and of recurrent layers in frameworks."""

import numpy as np
import pytest

from fwbench.frameworks.layout import reset_first
from fwbench.terms.toggles import variable
from fwbench.testing import FakeFramework
from support import programs
from support.verification import installed


def test_reset_first_exchanges_two_of_three_gates() -> None:
    """The columns of the new state stay, and twice is none."""
    array = np.arange(12).reshape(2, 6)
    np.testing.assert_array_equal(reset_first(array), [[2, 3, 0, 1, 4, 5], [8, 9, 6, 7, 10, 11]])
    np.testing.assert_array_equal(reset_first(reset_first(array)), array)


def test_an_array_is_its_own_variable() -> None:
    """Unless a framework says otherwise, its arrays can be overwritten."""
    array = np.zeros(3)
    assert FakeFramework().variable(array) is array


#: Verifies PyTorch's optimisers, and prints the implementations that they and trainings have.
_OF_TORCH = """
import sys
from fwbench.cases.case import bind
from fwbench.frameworks.registry import load
from fwbench.frameworks.torch.training import new_optimizer
from fwbench.workloads import FAMILIES
from fwbench.workloads.cell import Cell
from fwbench.workloads.gaps import why
from fwbench.workloads.objective import SGD, Adam, RMSprop

framework = load("torch", 1)
manifest = framework.manifest("")
optimisers = {}
for operation in FAMILIES["optimisers"]:
    place = ("torch", "cpu", "eager", "forward", "float32", operation.smallest)
    cell = Cell(operation, *place, toggles=(("optimizer", sys.argv[1]),))
    if why(cell, manifest) is None:
        work = bind(cell, framework)
        work.verify(work.run())
        work.verify_again(work.run())
        optimisers[operation.name] = work.run.func._step.__self__
constants = {"Adam": Adam(), "SGD": SGD(momentum=0.0), "Momentum": SGD(), "RMSprop": RMSprop()}
for name in constants if "rmsprop" in optimisers else [*constants][:3]:
    optimisers[name] = new_optimizer(constants[name], work.inputs[:1])
for name, optimiser in optimisers.items():
    asked = (optimiser.defaults["foreach"], optimiser.defaults.get("fused"))
    print(name, {(False, None): "loop", (True, None): "foreach", (None, True): "fused"}.get(asked))
"""

#: Of them by PyTorch's own choice, unless another is asked for.
_UNDECIDED = {"sgd", "rmsprop", "SGD", "RMSprop"}


@installed("torch")
@pytest.mark.parametrize("value", ["", "loop", "foreach", "fused"])
def test_implementations_of_torch_s_optimisers(value: str) -> None:
    """All are the one that is asked for, and right, but for gaps."""
    done = programs.run("-c", _OF_TORCH, value, variables={variable("optimizer"): value})
    implementations = dict(line.split() for line in done.stdout.splitlines())
    assert len(implementations) == {"foreach": 10, "fused": 9}.get(value, 11), done.stderr
    for name, implementation in implementations.items():
        assert implementation == (value or ("None" if name in _UNDECIDED else "fused")), name
