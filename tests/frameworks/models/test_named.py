"""Models that another package knows by a name: that package is a stand-in here."""

import pytest

from support.projects import Project

pytest.importorskip("torch")

#: As in torchvision: builders that take weights, and weights of a backbone.
_TORCHVISION = """
import torch

def small(*, weights="DEFAULT", weights_backbone="DEFAULT"):
    assert weights is None and weights_backbone is None, "would be downloaded"
    return torch.nn.Linear(3, 2)

def get_model_builder(name):
    if name != "small":
        raise ValueError(f"Unknown model {name}")
    return small

def get_model(name, **config):
    return get_model_builder(name)(**config)
"""

#: As in Transformers: results are a mapping, and configurations may come from the network.
_TRANSFORMERS = """
import torch

class AutoConfig:
    @staticmethod
    def from_pretrained(name, *, local_files_only=False):
        assert local_files_only, "would be downloaded"
        if name != "small/bert":
            raise OSError(f"{name} is not in the cache")
        return AutoConfig()

class Bert(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(20, 4)

    def forward(self, tokens):
        hidden = self.table(tokens)
        return {"last_hidden_state": hidden, "pooler_output": hidden.mean(1)}

class AutoModel:
    @staticmethod
    def from_config(config):
        assert config.use_cache is False
        return Bert()
"""

#: As torchvision, where it was built for another PyTorch.
_BROKEN = 'raise RuntimeError("operator torchvision::nms does not exist")'

_TEST = """
import pytest
from fwbench import Input, Model

def named(name, given, *inputs):
    return Model(name, inputs, models={"torch": given}, batches=(2,))

@pytest.mark.fwbench(
    named("small", "torchvision:small", Input("batch", 3)),
    named("bert", "transformers:small/bert", Input("batch", 5, below=20)),
    named("unknown", "torchvision:larger", Input("batch", 3)),
    named("absent", "transformers:large/bert", Input("batch", 5, below=20)),
)
def test_named(case):
    case.measure()
"""


def test_names_of_other_packages_stand_for_their_models(project: Project) -> None:
    """Built without weights that would be downloaded; a name that is not known fails its case."""
    project.write("packages/torchvision/__init__.py", "")
    project.write("packages/torchvision/models.py", _TORCHVISION)
    project.write("packages/transformers.py", _TRANSFORMERS)
    project.write("test_named.py", _TEST)
    result = project.run("--fw-threads=1", "--junitxml=junit.xml", fw="torch")
    result.assert_outcomes(passed=2, failed=2)
    texts = "".join(
        outcome.text for outcome in project.outcomes().values() if outcome.kind == "failure"
    )
    assert (
        "unknown is 'torchvision:larger', and torchvision does not have it here: ValueError: "
        "Unknown model larger; fwbench downloads nothing"
    ) in texts
    assert "transformers does not have it here: OSError: large/bert is not in the cache" in texts


def test_a_package_that_cannot_be_imported_is_said_to_be_unusable(project: Project) -> None:
    """Whatever its import raises: the model is not looked for, and no name is blamed."""
    project.write("packages/torchvision/__init__.py", _BROKEN)
    project.write("test_named.py", _TEST)
    result = project.run("--fw-threads=1", "-k", "small", "--junitxml=junit.xml", fw="torch")
    result.assert_outcomes(failed=1)
    (failure,) = project.outcomes().values()
    assert (
        "small is 'torchvision:small', and torchvision cannot be imported: RuntimeError: operator "
        "torchvision::nms does not exist; install a build of it that fits the installed torch"
    ) in failure.text
