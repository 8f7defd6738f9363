"""The memory that MXNet's planner would reserve if results shared less, from its log."""

import json

import pytest

from fwbench.machine import thread_variables
from support import programs
from support.fakes import adapter
from support.real_training import if_installed
from support.tables import tabled

planning = adapter("mxnet.planning")

#: A convolution of 2 x 4 x 8 x 8 numbers with ReLU, and a dense layer, trained, as MXNet 1.9.1
#: writes it; the numbers of values that are inputs of the graph are those of "var".
_LOG = """\
[15:22:44] ../src/executor/graph_executor.cc:60: MXNET_SUBGRAPH_BACKEND=NONE is detected
[15:22:44] ../src/executor/../common/exec_utils.h:299: node 0 var
[15:22:44] ../src/executor/../common/exec_utils.h:299: node 1 var
[15:22:44] ../src/executor/../common/exec_utils.h:301: node 2 Convolution
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 0: [2,3,8,8] (1 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 1: [4,3,3,3] (0 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:311: \t\toutput 2: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:301: node 3 Activation
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 2: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:311: \t\toutput 3: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:299: node 4 var
[15:22:44] ../src/executor/../common/exec_utils.h:301: node 5 _backward_Activation
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 4: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 3: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:311: \t\toutput 5: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:301: node 6 _backward_Convolution
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 5: [2,4,8,8] (2 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 0: [2,3,8,8] (1 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:305: \t\tinput 1: [4,3,3,3] (0 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:311: \t\toutput 6: [2,3,8,8] (1 KB)
[15:22:44] ../src/executor/../common/exec_utils.h:311: \t\toutput 7: [4,3,3,3] (0 KB)
"""

#: Bytes of an image with four channels, and with three.
_FOUR, _THREE = 4 * 2 * 4 * 64, 4 * 2 * 3 * 64


def test_a_log_is_read() -> None:
    """Operators in their order; other lines, and what is given to the graph, are none."""
    nodes = planning.read(_LOG)
    assert [node.name for node in nodes] == [
        *("Convolution", "Activation"),
        *("_backward_Activation", "_backward_Convolution"),
    ]
    assert nodes[0].inputs == [0, 1]
    assert nodes[3].outputs == {6: (2, 3, 8, 8), 7: (4, 3, 3, 3)}


def test_results_that_share_nothing_are_added_up() -> None:
    """The gradient by the kernel has memory of its own; that by the images is nobody's."""
    result = planning.computed(_LOG, [(4, 3, 3, 3)])
    assert result["none"] == 3 * _FOUR + _THREE
    of_images = planning.computed(_LOG, [(4, 3, 3, 3), (2, 3, 8, 8)])
    assert of_images["none"] == 3 * _FOUR


def test_results_take_the_memory_of_those_that_are_needed_no_more() -> None:
    """Not that of an operand: ReLU's result needs memory beside the convolution's.

    Its gradient lies where the convolution's result was, and that by the images where ReLU's.
    """
    assert planning.computed(_LOG, [(4, 3, 3, 3)])["co-share"] == 2 * _FOUR


_CHAIN = [("a", [], 100), ("b", [0], 5), ("c", [1], 100), ("d", [2], 1700), ("e", [3], 90)]
_CHAIN += [("f", [4], 2000)]


@tabled
def test_memory_is_taken_where_sizes_are_alike(count: int, size: int) -> None:
    """Up to 16 times as large, or as small; a block that is too small grows."""
    nodes = [
        planning.Planned(name, inputs, {number: (elements,)})
        for number, (name, inputs, elements) in enumerate(_CHAIN[:count])
    ]
    assert planning.shared_bytes(nodes, [], 1) == size


_PROGRAM = """
import json
import sys
from fwbench.frameworks.learner import Job
from fwbench.frameworks.registry import load
from fwbench.workloads.models.graph import sequential
from fwbench.workloads.models.layers import Conv, Dense, Flatten, Relu
from fwbench.workloads.objective import SGD, Objective

framework = load(sys.argv[1], 2)
layers = [Conv(16, 3, same=True), Relu()] * 3
network = sequential(*layers, Flatten(), Dense(3, relu=False))
objective = Objective("small", network, (64, 64, 3), 3, SGD(0.1))
learner = framework.learner(Job(objective, "cpu", "hybridize", "float32", 8))
learner.inference(learner.place(objective.check_batches(8, 1)[0])[0])
plans = [learner.planned_by_strategy(training=training) for training in (False, True)]
eager = framework.learner(Job(objective, "cpu", "eager", "float32", 8))
print(json.dumps([*plans, eager.planned_by_strategy(training=False)]))
"""


@pytest.mark.parametrize("framework", [if_installed("mxnet")])
def test_mxnet_plans_by_each_strategy(framework: str) -> None:
    """The less is shared the more is reserved; of what is executed eagerly nobody plans."""
    done = programs.run("-P", "-c", _PROGRAM, framework, variables=thread_variables(2))
    assert done.returncode == 0, done.stderr
    forward, training, eager = json.loads(done.stdout.splitlines()[-1])
    for plan in (forward, training):
        assert {*plan} == {"none", "in place", "co-share", "both"}
        assert plan["none"] > plan["in place"] > plan["both"] > 0
        assert plan["none"] > plan["co-share"]
    # Six results of 8 x 64 x 64 x 16 numbers, the convolutions' before their own ReLU, too.
    image_bytes = 4 * 8 * 64 * 64 * 16
    assert forward["none"] >= 9 * image_bytes
    assert training["none"] > forward["none"]
    assert eager is None
    assert "node 0 var" not in done.stderr
