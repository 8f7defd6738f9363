"""Steps of a small network under each framework's own profiler, and what memory they take."""

import json

import pytest

from fwbench.frameworks import profiler
from support.projects import Project
from support.real_training import all_of

pytestmark = pytest.mark.usefixtures("started")

_EXECUTIONS = {"torch": "eager", "mxnet": "hybridize", "tensorflow": "graph"}

#: A network with every class of operators but norms.
_NETWORK = """
import pytest
from fwbench import Sizes, Training
from fwbench.workloads.models.layers import Conv, Dense, Flatten, MaxPool
from fwbench.workloads.objective import SGD
from fwbench.terms.presets import Schedule

def network(x):
    x = MaxPool(2, 2)(Conv(8, 5)(x))
    return Dense(10, relu=False)(Dense(64)(Flatten()(x)))

small = Training(
    name="small",
    network=network,
    dataset="mnist",
    shape=(28, 28, 1),
    classes=10,
    optimizer=SGD(0.1, momentum=0.9),
    batches=Sizes(quick=(64,)),
    schedules={"quick": Schedule(epochs=2)},
)

@pytest.mark.fwbench(small.step)
def test_it(case):
    case.measure()
"""

_MADE_OF = {*("convolution", "matmul", "pooling"), *(profiler.OPTIMISER, "loss")}


def test_a_step_has_what_it_is_made_of(project: Project) -> None:
    """Convolutions, products, pooling, an optimiser and a loss; little that nobody classed."""
    frameworks = all_of(*_EXECUTIONS)
    project.write("test_it.py", _NETWORK)
    records = project.facts(
        *("--fw-profile", "-ofw_traces=traces", "--fw-device=cpu"),
        *("-k", " or ".join(f"{name}-cpu-{how}" for name, how in _EXECUTIONS.items())),
        fw=frameworks,
    )
    for facts in records.values():
        profile = facts["profile"]
        assert sum(profile["shares"].values()) == pytest.approx(1.0)
        assert {*profile["shares"]} >= _MADE_OF, facts["framework"]
        classes = {
            operator["name"]: operator["operator_class"] for operator in profile["operators"]
        }
        assert profiler.OTHER not in [*classes.values()][:3], facts["framework"]
        assert not [name for name in classes if "," in name], "bulks are switched off"
        trace = json.loads((project.path / "traces" / profile["trace"]).read_text())
        assert trace["traceEvents"]
    profiled = [facts["framework"] for facts in records.values()]
    assert sorted(profiled) == sorted(frameworks.split(","))


_RETRACED = """
import pytest
from fwbench import Operation

relu = Operation(
    name="retraced",
    inputs=lambda size, rng: (rng.standard_normal(size),),
    reference=lambda x: x * (x > 0),
    sizes=(64,),
)
relu.implement("tensorflow")(lambda tf: lambda x: tf.function(tf.nn.relu)(x))

@pytest.mark.fwbench(relu, executions=["eager"])
def test_it(case):
    case.measure()
"""


@pytest.mark.nightly
def test_a_trace_in_each_call_is_counted(project: Project) -> None:
    """With its time, which is most of the call."""
    project.write("test_it.py", _RETRACED)
    records = project.facts(
        *("--fw-profile", "-ofw_traces=traces", "--fw-device=cpu"), fw=all_of("tensorflow")
    )
    (facts,) = records.values()
    profile = facts["profile"]
    (traces,) = (each for each in profile["operators"] if each["name"] == "traces")
    assert (traces["operator_class"], traces["calls"]) == (profiler.COMPILATION, 1.0)
    assert traces["time_s"] > 0.5 * profile["call_s"]
