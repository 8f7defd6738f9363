"""Models of users in PyTorch: sound ones are measured, and each fault fails one case."""

import re
import tomllib
from pathlib import Path

import pytest

from support.projects import Project
from support.real_training import facts_of

pytest.importorskip("torch")

_SOUND = """
from dataclasses import dataclass
import pytest
import torch
from fwbench import Input, Model

@dataclass
class Hidden:
    states: torch.Tensor
    attentions: tuple | None = None

class Normalized(torch.nn.Module):
    "Several inputs and results, batch normalization, dropout."

    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(20, 6)
        self.norm = torch.nn.BatchNorm1d(6)
        self.dropout = torch.nn.Dropout(0.5)
        self.last = torch.nn.Linear(6, 5)

    def forward(self, tokens, scale):
        x = self.norm((self.table(tokens) * scale[:, None, None]).mean(1))
        return {"logits": self.last(self.dropout(x)), "hidden": Hidden(x)}

normalized = Model(
    "normalized",
    (Input("batch", 7, below=20), Input("batch")),
    targets=Input("batch", below=5),
    models={"torch": Normalized},
    batches=(1, 4), training_batches=(4,), output=("batch", 5),
)
regression = Model("regression", Input("batch", 3), targets=Input("batch", 2),
                   batches=(2,), training_batches=(2,), models={"torch": torch.nn.Linear(3, 2)})
class PowerPool(torch.nn.Module):
    "An exponent that has the name of a rate of dropout."

    def __init__(self):
        super().__init__()
        self.p, self.last = 0.5, torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.last(x.abs() ** self.p)

pooling = Model("pooling", Input("batch", 3), targets=Input("batch", 2), batches=(2,),
                training_batches=(2,), models={"torch": PowerPool})
answering = Model("answering", Input("batch", 3), batches=(2,))
answering.implement("torch")(lambda torch: torch.nn.Linear(3, 2))
own_loss = Model("own_loss", Input("batch", 3), batches=(2,), training_batches=(2,))

@own_loss.implement("torch", loss=lambda result: (result - 3).square().mean())
def _(torch):
    return torch.nn.Linear(3, 2)

@pytest.mark.fwbench(normalized, regression, pooling, answering, own_loss)
def test_sound(case):
    case.measure()
"""

#: What is declared, and what its one failed case says.
_FAULTS = tomllib.loads(Path(__file__).with_name("faults.toml").read_text(encoding="utf-8"))

_FAULTY = """
import numpy as np
import pytest
import torch
from fwbench import Adam, Input, Model

linear = torch.nn.Linear(3, 2)

def faulty(given, inputs=Input("batch", 3), batches=(2,), **more):
    return Model("faulty", inputs, models={"torch": given}, batches=batches,
                 training_batches=(2,), **more)

class Wide(torch.nn.Sequential):
    def __init__(self):
        layers = torch.nn.Linear(3, 1), torch.nn.Linear(1, 200_000), torch.nn.ReLU()
        super().__init__(*layers, torch.nn.Flatten(0))

class Kept(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tower, self.last = torch.nn.Linear(64, 512), torch.nn.Linear(3, 2)
        self.kept = {}

    def forward(self, x, other):
        key = other.numpy().tobytes()
        if key not in self.kept:
            self.kept[key] = self.tower(other).tanh().mean((1, 2))
        return self.last(x) + self.kept[key][:, None]

class Noisy(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 3)

    def forward(self, x):
        return super().forward(x) + (torch.rand_like(x) if self.training else 0)

class Packed(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)

    def get_extra_state(self):
        return torch.qint8

    def set_extra_state(self, state):
        pass

class NotANumber(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.last(x) / 0.0 * 0.0

class Cast(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return super().forward(x).float()

class Narrow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.last(x) @ self.last.bias.new_ones(2, 2).float()
"""

#: Models that make tensors themselves: which are complex, in float32, or not of their state.
_MAKING = """
import pytest
import torch
from fwbench import SGD, Adam, Input, Model, RMSprop
from torch import nn

TAKEN = {nn.Embedding: Input("batch", 4, below=20), nn.LSTM: Input("batch", 5, 4)}

def model(made, optimizer=SGD(1e-3), first=None):
    name = f"{made.__name__}_{type(optimizer).__name__}".lower()
    return Model(name, TAKEN.get(first, Input("batch", 4)), targets=Input("batch", below=3),
                 models={"torch": made}, batches=(3,), training_batches=(3,), optimizer=optimizer)

class Making(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = nn.Linear(4, 3)

class Complex(Making):
    def __init__(self):
        super().__init__()
        self.factors = nn.Parameter(torch.randn(3, dtype=torch.cfloat))
        self.register_buffer("turns", torch.polar(torch.ones(4), torch.arange(4.0)))

    def forward(self, x):
        both = {torch.float32: torch.complex64, torch.float64: torch.complex128}[x.dtype]
        assert self.factors.dtype == self.turns.dtype == both
        spectrum = torch.fft.rfft((x * self.turns).real)
        return self.last(torch.fft.irfft(spectrum * self.factors, 4))

class Zeros(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 3)

    def forward(self, x):
        zeros = torch.zeros(1, len(x), 4)
        return self.last(self.lstm(x, (zeros, zeros))[0][:, -1])

class Attribute(Making):
    def __init__(self):
        super().__init__()
        self.waves = torch.randn(4, 4)

    def forward(self, x):
        return self.last(torch.sin(x @ self.waves))

class Drawing(Making):
    "Random numbers are those of float32 in float64, too."

    def forward(self, x):
        return self.last(x @ (torch.randn(4, 4) if self.training else torch.eye(4)))

class Expert(Making):
    "The second expert is asked by the second batch first."

    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.register_buffer("asked", torch.tensor(0))

    def forward(self, x):
        expert = self.experts[int(self.asked) % 2]
        self.asked += self.training
        return self.last(expert(x))

class Sparse(Making):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 4, sparse=True)

    def forward(self, x):
        return self.last(self.table(x).mean(1))

class Lazy(nn.Sequential):
    def __init__(self):
        super().__init__(nn.LazyLinear(3))

optimizers = [SGD(1e-3), Adam(1e-3), RMSprop(1e-3)]
models = [model(Complex, each) for each in optimizers]
models += [model(each) for each in (Attribute, Drawing, Expert, Lazy)]
models += [model(Zeros, first=nn.LSTM), model(Sparse, first=nn.Embedding)]

@pytest.mark.fwbench(*models)
def test_it(case):
    case.measure()
"""


def test_sound_models_are_measured(project: Project) -> None:
    """Verified against their own runs in float64, with a framework's count of operations."""
    project.write("test_sound.py", _SOUND)
    result, records = project.measure("--fw-threads=1", fw="torch")
    result.assert_outcomes(passed=10)
    facts = {name: facts_of(entry) for name, entry in records.items()}
    assert all(fact["verified_against"].endswith("in float64") for fact in facts.values())
    assert all(fact["verified_against"].startswith("torch ") for fact in facts.values())
    step = facts["normalized_step-torch-cpu-eager-train-float32-4"]
    assert step["parameters"] == 20 * 6 + 2 * 6 + 6 * 5 + 5
    assert step["checked_steps"] == 4
    assert step["flops"] >= 3 * 2 * 4 * 6 * 5 - 1
    answers = facts["normalized_inference-torch-cpu-eager-forward-float32-4"]
    assert answers["flops"] == 2 * 4 * 6 * 5
    assert answers["max_relative_error"] <= answers["tolerance"]
    assert answers["examples_per_s"] > 0
    assert "answering_step" not in "".join(facts)


def test_models_may_make_tensors_themselves(project: Project) -> None:
    """Complex ones stay so; what is made in float32 is made in float64 where it is the reference.

    Gradients may be sparse or begin in a later step.
    """
    project.write("test_making.py", _MAKING)
    result = project.run("--fw-threads=1", "--fw-execution=eager", fw="torch")
    result.assert_outcomes(passed=18)


def test_memory_is_measured_of_inference_and_of_steps(project: Project) -> None:
    """Though the layers of a user's model are not known; in processes of their own."""
    project.write("test_sound.py", _SOUND)
    selected = ("-k", "normalized and float32-4", "--fw-execution=eager")
    result, records = project.measure("--fw-threads=1", "--fw-memory", *selected, fw="torch")
    result.assert_outcomes(passed=2)
    for entry in records.values():
        facts = facts_of(entry)
        measured = [facts[name] for name in ("memory", "forward_memory") if name in facts]
        assert len(measured) == (2 if facts["direction"] == "train" else 1)
        for memory in measured:
            assert "gap" not in memory
            assert memory["bound_bytes"] >= memory["before_bytes"]


def test_each_fault_fails_one_case(project: Project) -> None:
    test = "\n@pytest.mark.fwbench({})\ndef test_{}(case):\n    case.measure()\n"
    faults = enumerate(_FAULTS.values())
    tests = "".join(test.format(fault["declared"], place) for place, fault in faults)
    project.write("test_faulty.py", _FAULTY + tests)
    result = project.run("--fw-threads=1", "--junitxml=junit.xml", fw="torch")
    result.assert_outcomes(failed=len(_FAULTS))
    texts = {name.partition("[")[0]: outcome.text for name, outcome in project.outcomes().items()}
    for place, fault in enumerate(_FAULTS.values()):
        assert re.search(fault["says"], texts[f"test_{place}"]), texts[f"test_{place}"]
