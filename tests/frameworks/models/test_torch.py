"""Models of users in PyTorch: sound ones are measured, and each fault fails one case."""

import re
import tomllib
from pathlib import Path

import pytest

from support.projects import Project
from support.real_training import facts_of

pytest.importorskip("torch")

_SOUND = """
import pytest
import torch
from fwbench import Input, Model

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
        return {"logits": self.last(self.dropout(x)), "hidden": (x, None)}

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
from fwbench import Input, Model

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

class NotANumber(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.last(x) / 0.0 * 0.0
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
