"""The costs that operations declare are those that frameworks count, where these count at all.

PyTorch counts products, convolutions and attention (``torch.utils.flop_counter``), a multiplication
and an addition as two, as fwbench does. It counts nothing else: of work that is more than a product
it sees the product alone.
"""

import functools

from fwbench.machine import thread_variables
from fwbench.workloads import OPERATIONS
from support import programs
from support.verification import installed

_COUNT = """
import json
from torch.utils.flop_counter import FlopCounterMode
from fwbench.cases.case import bind
from fwbench.frameworks.registry import load
from fwbench.workloads.grid import Cell
from fwbench.workloads import OPERATIONS

framework = load("torch", 1)
counted = {}
for operation in OPERATIONS:
    if operation.name not in framework.operations:
        continue
    run = bind(Cell(operation, "torch", "cpu", "eager", "forward", operation.default_dtype,
                    operation.smallest), framework).run
    with FlopCounterMode(display=False) as counter:
        run()
    if counter.get_total_flops():
        counted[operation.name] = counter.get_total_flops()
print(json.dumps(counted))
"""

#: Operations of which PyTorch counts less than they cost, and what it leaves out.
_MORE_THAN_PRODUCTS = {
    "gru": "sigmoids, tanh and what they are multiplied by",
    "linear": "the bias",
    "rnn": "the bias and tanh",
}

#: Operations of which it counts more than they cost at least, and what that is.
_MORE_THAN_NEEDED = {"dynamic_rnn": "the steps behind the ends of sequences"}


@functools.cache
def _counted() -> dict[str, int]:
    """PyTorch's counts, by operation, each at its smallest size."""
    figures: dict[str, int] = programs.result("-c", _COUNT, variables=thread_variables(1))
    return figures


@installed("torch")
def test_declared_costs_are_those_that_pytorch_counts() -> None:
    """Exactly, or more or less, where the difference has a reason; and products are among them."""
    counted = _counted()
    assert "gemm" in counted
    declared = {
        operation.name: cost.flops
        for operation in OPERATIONS
        if operation.name in counted
        and (cost := operation.cost_of("forward", operation.smallest)) is not None
    }
    assert declared.keys() == counted.keys()
    reasons = {*_MORE_THAN_PRODUCTS, *_MORE_THAN_NEEDED}
    exact = {name: count for name, count in counted.items() if name not in reasons}
    assert {name: declared[name] for name in exact} == exact
    for name in _MORE_THAN_PRODUCTS:
        assert counted[name] < declared[name], name
    for name in _MORE_THAN_NEEDED:
        assert counted[name] > declared[name], name
