"""Models of users in PyTorch: sound ones are measured, and each fault fails one case."""

from __future__ import annotations

import re

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
answering = Model("answering", Input("batch", 3), batches=(2,))
answering.implement("torch")(lambda torch: torch.nn.Linear(3, 2))
own_loss = Model("own_loss", Input("batch", 3), batches=(2,), training_batches=(2,))

@own_loss.implement("torch", loss=lambda result: (result - 3).square().mean())
def _(torch):
    return torch.nn.Linear(3, 2)

@pytest.mark.fwbench(normalized, regression, answering, own_loss)
def test_sound(case):
    case.measure()
"""

#: What is declared, and what its one failed case says.
_FAULTS: dict[str, tuple[str, str]] = {
    "output shape": (
        "faulty(linear, output=('batch', 7)).inference",
        (
            r"first result of faulty in torch \S+ in float64 has the shape \(2, 2\), and the model "
            r"declares \(2, 7\); correct the model or `output`"
        ),
    ),
    "NaN": (
        "faulty(NotANumber, targets=Input('batch', 2)).step",
        r"the first loss of faulty in torch \S+ in float64 is nan, before any update",
    ),
    "NaN, in use": (
        "faulty(NotANumber).inference",
        r"results of faulty in torch \S+ in float64 hold 8 NaNs; correct the model or the range",
    ),
    "inputs": (
        "faulty(linear, Input('batch', 9)).inference",
        r"faulty in torch refuses what it is declared to take \(\(2, 9\) float32\): RuntimeError",
    ),
    "no parameters": (
        "faulty(torch.nn.ReLU, targets=Input('batch', 3)).step",
        r"faulty has no parameters in torch, and cannot be trained; measure faulty\.inference",
    ),
    "targets": (
        "faulty(linear, targets=Input('batch', 4, below=2)).step",
        r"has the shape \(2, 2\), which does not answer targets of the shape \(2, 4\)",
    ),
    "not a model": (
        "faulty(lambda torch: 3).inference",
        r"faulty for torch is of the type int; give an nn\.Module, or a function",
    ),
    "weights": (
        "faulty(linear, weights={'weight': np.zeros((3, 2)), 'b': np.zeros(2)}).inference",
        (
            r"bias \(2,\) is missing; weight is \(2, 3\), and was given \(3, 2\); "
            r"b \(2,\) is not a parameter of it; give them by this framework's names"
        ),
    ),
    "a batch of inputs": (
        "faulty(linear, Input('batch', 3000), batches=(10**9,)).inference",
        (
            r"faulty with a batch of 1,000,000,000 has arrays of 3,000,000,000,000 elements: "
            r"drawn in float64 they take .* of memory, and .* are free; measure a smaller size"
        ),
    ),
    "a batch of results": (
        "faulty(Wide, batches=(10**6,)).inference",
        r"faulty with a batch of 1,000,000 has arrays of 200,00\d,\d{3},\d{3} elements",
    ),
    "a package that is not there": (
        "faulty('torchvision:no').inference",
        r"faulty is 'torchvision:no', and torchvision cannot be imported: .*; install a build",
    ),
    "a name": (
        "faulty('zoo:resnet18').inference",
        r"named 'zoo:resnet18'; known are 'torchvision:<name>', 'transformers:<name>'",
    ),
}

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
    result.assert_outcomes(passed=8)
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
    tests = "".join(
        f"\n@pytest.mark.fwbench({declared})\ndef test_{place}(case):\n    case.measure()\n"
        for place, (declared, _) in enumerate(_FAULTS.values())
    )
    project.write("test_faulty.py", _FAULTY + tests)
    result = project.run("--fw-threads=1", "--junitxml=junit.xml", fw="torch")
    result.assert_outcomes(failed=len(_FAULTS))
    texts = {name.partition("[")[0]: outcome.text for name, outcome in project.outcomes().items()}
    for place, (_, says) in enumerate(_FAULTS.values()):
        assert re.search(says, texts[f"test_{place}"]), texts[f"test_{place}"]
