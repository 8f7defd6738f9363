"""A learner trains in the executions that it names, and in no other."""

import pytest

from fwbench.errors import DeclarationError
from fwbench.frameworks.learner import Dropouts, Job
from fwbench.workloads import mlp
from support.fake_learner import FakeLearner, Trainer


def job(execution: str) -> Job:
    return Job(mlp, "cpu", execution, "float32", 8)


@pytest.mark.parametrize("execution", FakeLearner.executions)
def test_a_learner_trains_in_the_executions_that_it_names(execution: str) -> None:
    assert Trainer().learner(job(execution)).job.execution == execution


def test_an_execution_that_training_code_does_not_name_is_refused() -> None:
    """It is never run eagerly under a name that is not its own."""
    with pytest.raises(DeclarationError) as caught:
        Trainer().learner(job("inference"))
    message = str(caught.value)
    assert "FakeLearner was asked for mlp in the execution 'inference'" in message
    assert "it names eager, graph, fit" in message


def test_a_learner_that_names_nothing_trains_eagerly() -> None:
    """So an execution that is added to a framework does not reach its training code by itself."""

    class Plain(FakeLearner):
        executions = FakeLearner.__mro__[1].executions

    assert Plain(job("eager"), Trainer()).job.execution == "eager"
    with pytest.raises(DeclarationError, match="it names eager"):
        Plain(job("graph"), Trainer())


def test_rates_of_dropout_are_known_by_names() -> None:
    """An exponent that is called ``p`` is none."""

    class DropPath:
        def __init__(self) -> None:
            self.p, self.training = 0.5, True

    class Attention(DropPath):
        def __init__(self) -> None:
            self.attention_dropout, self.p, self.scale = 0.25, 0.5, 0.5

    class PowerPool:
        def __init__(self) -> None:
            self.p, self.drop_last, self.drops = 0.5, True, 3.0

    layers = path, attention, pool = DropPath(), Attention(), PowerPool()
    dropouts = Dropouts(layers)
    assert dropouts.switch(on=False)
    assert not dropouts.switch(on=False)
    assert (path.p, attention.attention_dropout, attention.p, attention.scale) == (0, 0, 0, 0.5)
    assert vars(pool) == vars(PowerPool())
    assert dropouts.switch(on=True)
    assert (path.p, attention.attention_dropout) == (0.5, 0.25)
