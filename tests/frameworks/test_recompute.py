"""Results that the backward pass recomputes: less is kept, and the training is the same."""

import pytest

from fwbench.machine import thread_variables
from support import programs, recomputing
from support.real_training import if_installed


@pytest.mark.parametrize(
    ("framework", "executions"),
    [if_installed("torch", ["eager"]), if_installed("tensorflow", ["eager", "graph", "xla"])],
)
def test_recomputed_networks_train_the_same(framework: str, executions: list[str]) -> None:
    """The losses, and the answers by moving averages, which follow each batch once.

    Three convolutions of four are called once more in the backward pass.
    """
    program = ("-P", "-c", recomputing.PROGRAM, framework, *executions)
    result = programs.result(*program, variables=thread_variables(2))
    for execution in executions:
        recomputing.check(result[execution])
        kept, recomputed = result[execution]["off"], result[execution]["on"]
        assert (kept["convolutions"], recomputed["convolutions"]) == (4, 7)
        if framework == "torch":
            assert recomputed["saved"] < 0.6 * kept["saved"]
