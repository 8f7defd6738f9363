"""Networks as ONNX models, exported in a process of its own, which may import other frameworks.

Networks are exported with their initial weights, by the exporter that each framework documents and
that is quick: PyTorch's on top of TorchScript (the one on top of Dynamo takes seconds for LeNet),
and Keras' own, which is tf2onnx.
"""

import io
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self

from fwbench.frameworks.learner import Job
from fwbench.workloads.models.graph import Graph
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import SGD, Objective

_INPUT, _OUTPUT = "examples", "logits"


class Export(NamedTuple):
    """A network to export; it can be sent to another process, unlike a network's function."""

    #: The framework that builds and exports it.
    source: str
    name: str
    graph: Graph
    classes: int
    batch: int
    #: That it begins with; None where they are drawn.
    weights: Sequence[Arrays] | None = None

    @classmethod
    def from_job(cls, job: Job, source: str) -> Self:
        """The network of a job."""
        training = job.training
        described = (training.name, training.graph, training.classes)
        return cls(source, *described, job.batch, training.weights)

    @property
    def job(self) -> Job:
        """The job for the source."""
        layers = [node.layer for node in self.graph.nodes]
        objective = Objective(
            name=self.name,
            network=partial(self.graph.evaluate, layers),
            shape=self.graph.shape,
            classes=self.classes,
            optimizer=SGD(),
            weights=self.weights,
        )
        return Job(objective, "cpu", "eager", "float32", self.batch)


class Exported(NamedTuple):
    """A network as a model of ONNX's."""

    model: bytes
    #: How many numbers the source trains; exporters fold some into others.
    parameters: int


class Refused(NamedTuple):
    """Why there is no model."""

    reason: str


def exported(export: Export) -> Exported | Refused:
    """A network from the source's exporter."""
    try:
        return _EXPORTERS[export.source](export.job)
    except Exception as error:  # noqa: BLE001 (exporters raise exceptions of every kind)
        (first, *_) = str(error).splitlines() or [""]
        return Refused(f"{type(error).__name__}: {first}")


def _from_torch(job: Job) -> Exported:
    import torch

    from fwbench.frameworks.torch.training import TorchLearner

    learner = TorchLearner(job)
    (batch,) = job.training.check_batches(job.batch, 1)
    examples, _ = learner.place(batch)
    file = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):  # that there is a newer exporter
        torch.onnx.export(
            learner.in_use(),
            (examples,),
            file,
            input_names=[_INPUT],
            output_names=[_OUTPUT],
            opset_version=EXPORTED_OPSET,
            dynamo=False,
        )
    return Exported(file.getvalue(), learner.parameters())


def _from_tensorflow(job: Job) -> Exported:
    import tensorflow as tf

    from fwbench.frameworks.tensorflow.training import TensorFlowLearner

    learner = TensorFlowLearner(job)
    (batch,) = job.training.check_batches(job.batch, 1)
    examples, _ = learner.place(batch)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        learner.in_use().export(
            str(file),
            format="onnx",
            verbose=False,
            input_signature=[tf.TensorSpec(examples.shape, examples.dtype, name=_INPUT)],
            opset_version=EXPORTED_OPSET,
        )
        return Exported(file.read_bytes(), learner.parameters())


_EXPORTERS: Mapping[str, Callable[[Job], Exported]] = {
    "torch": _from_torch,
    "tensorflow": _from_tensorflow,
}


#: The version of ONNX's operators: the newest that tf2onnx 1.17 writes; PyTorch's exporter writes
#: up to 20.
EXPORTED_OPSET = 18


class Source(NamedTuple):
    """A framework that networks are exported from."""

    framework: str
    #: Whether its images have the channels first.
    channels_first: bool


#: By execution.
SOURCES: Mapping[str, Source] = {
    "from_torch": Source("torch", channels_first=True),
    "from_tensorflow": Source("tensorflow", channels_first=False),
}
