"""Users' models under the compilers of PyTorch and TensorFlow."""

import pytest

from support.projects import Project
from support.real_training import facts_of, if_installed

#: Dropout and batch normalization have the compilers look at random numbers and at moving averages.
_TEST = """
import pytest
from fwbench import Adam, Input, Model, RMSprop

def in_torch(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))

def in_tensorflow(tf):
    layers = tf.keras.layers
    return tf.keras.Sequential([
        tf.keras.Input((6,)), layers.Dense(8), layers.BatchNormalization(), layers.ReLU(),
        layers.Dropout(0.5), layers.Dense(3)])

def trained_by(optimizer):
    return Model(
        type(optimizer).__name__.lower(), Input("batch", 6), targets=Input("batch", below=3),
        models={"torch": in_torch, "tensorflow": in_tensorflow},
        training_batches=(4,), optimizer=optimizer)

adam, rmsprop = trained_by(Adam(1e-3)), trained_by(RMSprop(1e-3))

@pytest.mark.fwbench(adam.step, rmsprop.step)
def test_it(case):
    case.measure()
"""


@pytest.mark.parametrize(
    ("framework", "execution", "optimizer"),
    [
        if_installed("torch", "compile", "adam", nightly=True),
        if_installed("tensorflow", "xla", "rmsprop"),
    ],
)
def test_a_step_is_that_of_the_eager_run_in_float64(
    project: Project, framework: str, execution: str, optimizer: str
) -> None:
    """The compiled model in PyTorch; in XLA the whole step, with the state of its optimizer."""
    project.write("test_it.py", _TEST)
    arguments = ("--fw-threads=1", f"--fw-execution={execution}", "-k", optimizer)
    result, records = project.measure(*arguments, fw=framework)
    result.assert_outcomes(passed=1)
    (record,) = records.values()
    facts = facts_of(record)
    assert (facts["execution"], facts["checked_steps"]) == (execution, 4)
