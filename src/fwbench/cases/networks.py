"""Networks without an update: their answers, and loss and gradients, against the reference.

Logits are compared one by one, gradients array by array, by the norm of the difference. Gradients
are not continuous: where rounding decides on which side of 0 the input of a ReLU is, or which
element of a window is the largest, a part of the gradient comes or goes. So gradients are computed
where no rounding decides on a ReLU (:mod:`fwbench.workloads.models.stable_weights`), and where an
array is off by more than its bound, what the choice between equal elements of windows makes of it
is allowed in addition. What TF32 or bfloat16 make of float32 exceeds the bounds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import precision, verify
from fwbench.cases.forward import check_count
from fwbench.cases.inputs import Inputs
from fwbench.cases.training import ThroughputCase
from fwbench.cases.work import RepeatedWork, Work
from fwbench.errors import WrongGradient
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.frameworks.learner import Learner, Predictor
from fwbench.records.facts import CaseFacts
from fwbench.workloads.models import reference
from fwbench.workloads.models.layers import BatchNorm
from fwbench.workloads.models.stable_weights import with_stable_weights, with_tie_breaks_flipped
from fwbench.workloads.objective import Objective

#: What a logit may be off by, relative to the larger of itself and their root mean square.
LOGIT_TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2, "bfloat16": 1e-1}

#: What the gradient by a parameter may be off by, relative to its norm; once more for each batch
#: normalization, since they amplify errors. Seen in float32 were 1.4e-5 without any, and 1.4e-3
#: with 94 (Inception-v3 in TensorFlow; ``benchmarks/harness/deviations.py``), where windows choose
#: as the reference's do; TF32 makes 0.4. Narrower dtypes decide too often.
GRADIENT_TOLERANCES = {"float64": 1e-10, "float32": 1e-4}

#: Elements of a window are as good as equal if they differ by less, relative to the root mean
#: square of all; and so many times what the choice between them makes of a gradient is allowed.
_NEARLY_EQUAL = {"float64": 1e-13, "float32": 1e-5}
_CHOICES = 2.0

#: In place of examples or labels where the others alone are placed.
_NONE = np.zeros(0, np.int32)


class _NetworkBatch(Inputs):
    """A batch as a network's framework places it, in its own layout."""

    def __init__(self, framework: Framework, network: Predictor) -> None:
        super().__init__(framework, network.job.device, network.job.dtype)
        self._network = network

    def _placed(self, operand: NDArray[Any]) -> Array:
        is_labels = operand.ndim == 1
        batch = (_NONE, operand) if is_labels else (operand, _NONE)
        return self._network.place(batch)[is_labels]


class _NetworkWork(RepeatedWork):
    """A network on a batch that lies on the device."""

    #: How many of examples and labels it takes.
    takes: int

    def __init__(self, network: Predictor, framework: Framework) -> None:
        super().__init__(framework)
        self.network = network
        self._batch = _NetworkBatch(framework, network)
        operands = self._operands(changed=False)
        self._keep(operands)
        self.run = self._bound(*map(self._batch.place, operands))

    @property
    def training(self) -> Objective:
        """The network, with its loss."""
        return self.network.job.training

    @property
    @abstractmethod
    def allowed(self) -> float:
        """Allowed error of a result."""

    @abstractmethod
    def _bound(self, *placed: Array) -> BoundCall:
        """The call on a batch."""

    def verify(self, result: Any) -> CaseFacts:
        """And the network has as many parameters as its description."""
        verify.parameters(self.network.parameters(), self.training.parameters)
        return super().verify(result)

    def _operands(self, *, changed: bool) -> list[NDArray[Any]]:
        """The first batch of the check, or the second."""
        *_, batch = self.training.check_batches(self.network.job.batch, 1 + changed)
        return [*batch[: self.takes]]

    def _change(self, operands: Sequence[NDArray[Any]]) -> BoundCall:
        self._keep(operands)
        return self._batch.change(self.run, operands)

    def _keep(self, operands: Sequence[NDArray[Any]]) -> None:
        """For the reference: a framework's arrays may share memory with what they were made of."""
        self._current = [np.array(operand) for operand in operands]

    def _check_inputs(self) -> None:
        self._batch.check()

    def _facts(self, error: float) -> CaseFacts:
        return CaseFacts(
            parameters=self.training.parameters, max_relative_error=error, tolerance=self.allowed
        )


class Answers(_NetworkWork):
    """The logits of a batch."""

    takes = 1

    @property
    def allowed(self) -> float:
        """Allowed error of a logit."""
        return LOGIT_TOLERANCES[self.network.job.verified_as]

    def _bound(self, *placed: Array) -> BoundCall:
        return self.network.inference(*placed)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The logits are the reference's."""
        training = self.training
        (examples,) = self._current
        different = _different(examples)
        few = reference.inference(
            training.graph, training.initial(), _wide(training, examples[different.rows])
        )
        each = training.labels_per_example
        expected = few.reshape(len(different.rows), each, -1)[different.places]
        expected = expected.reshape(len(examples) * each, -1)
        check_count(on_host, [expected])
        deviation = verify.compare(on_host[0], expected, self.allowed)
        return self._facts(deviation.largest) | self._precision(deviation.rms) | self._exported()

    def _precision(self, rms: float) -> CaseFacts:
        """The bits of mantissa that it was computed in, by the root mean square of the errors."""
        bits = precision.bits(self.network.job.dtype, rms, 0.0, self.training.graph.terms)
        return CaseFacts(precision_bits=bits)

    def _exported(self) -> CaseFacts:
        """Where the network was exported from, and how large it is."""
        network = self.network
        if network.exported_from is None:
            return CaseFacts()
        return CaseFacts(exported_from=network.exported_from, model_bytes=network.model_bytes())


class Gradients(_NetworkWork):
    """The loss of a batch, and its gradients by all parameters."""

    takes = 2

    def __init__(self, network: Learner, framework: Framework) -> None:
        self.learner = network
        super().__init__(network, framework)

    @property
    def allowed(self) -> float:
        """Allowed error of the gradient by a parameter."""
        nodes = self.training.graph.nodes
        normalizations = sum(isinstance(node.layer, BatchNorm) for node in nodes)
        return (1 + normalizations) * GRADIENT_TOLERANCES[self.learner.job.dtype]

    def _bound(self, *placed: Array) -> BoundCall:
        return self.learner.forward_backward(*placed)

    def arrays(self, result: Any) -> Sequence[Array]:
        """The loss, and the gradients.

        Raises:
            WrongGradient: it is something else.
        """
        match result:
            case [loss, [*gradients]]:
                return [loss, *gradients]
        raise WrongGradient(
            f"the call returned a {type(result).__name__}, and not the loss with the gradients; "
            "return (loss, [gradient, ...])"
        )

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        """The loss is the reference's, and so are the gradients."""
        training = self.training
        examples, labels = self._current
        # The mean over examples that are repeated alike is that over different ones.
        rows = _different(examples).rows
        own = labels.reshape(len(examples), -1)[rows].ravel()
        few = _wide(training, examples[rows])
        loss, of_nodes = reference.gradients(training.graph, training.initial(), few, own)
        mean, *gradients = on_host
        (allowed,) = verify.loss_tolerances(training, [loss], self.learner.job.dtype)
        verify.compare(mean, np.asarray(loss), allowed / loss)
        expected = self.learner.trained(of_nodes)
        verify.count(gradients, range(len(expected)))

        def otherwise() -> Sequence[NDArray[Any]]:
            nearly = _NEARLY_EQUAL[self.learner.job.dtype]
            graph = with_tie_breaks_flipped(training.graph, nearly)
            return self.learner.trained(reference.gradients(graph, training.initial(), few, own)[1])

        error, tolerance = compare_gradients(gradients, expected, self.allowed, otherwise)
        return self._facts(error) | CaseFacts(tolerance=tolerance)


def compare_gradients(
    gradients: Sequence[NDArray[Any]],
    expected: Sequence[NDArray[Any]],
    allowed: float,
    otherwise: Callable[[], Sequence[NDArray[Any]]],
) -> tuple[float, float]:
    """Compare gradients with the reference's, each by the norm of the difference.

    Relative to the gradient's norm that is the most that a derivative in any direction is off by.

    Args:
        expected: the same in float64.
        otherwise: the reference's where windows choose the other one of two elements that are as
            good as equal; called where an error is larger than allowed.

    Returns:
        The relative error of the gradient that comes closest to what is allowed, and what is.

    Raises:
        WrongGradient: a shape differs, or one is off by more than allowed.
    """
    for place, (actual, right) in enumerate(zip(gradients, expected, strict=True)):
        verify.gradient_shape(place, actual, right)
    errors = np.array([*map(_distance, gradients, expected)])
    limits = np.full_like(errors, allowed)
    if not (errors <= limits).all():
        limits += _CHOICES * np.array([*map(_distance, otherwise(), expected)])
    for place in np.flatnonzero(~(errors <= limits)):
        right = expected[place]
        raise WrongGradient(
            f"the gradient by parameter {place} of the shape {right.shape} is wrong: it has "
            f"the norm {np.linalg.norm(gradients[place]):.9g}, and that of the float64 reference "
            f"{np.linalg.norm(right):.9g}; the norm of their difference is {errors[place]:.3g} of "
            f"that, {limits[place]:.3g} is allowed"
        )
    worst = int(np.argmax(errors / limits))
    return float(errors[worst]), float(limits[worst])


def _distance(actual: NDArray[Any], right: NDArray[Any]) -> float:
    """The norm of the difference, relative to that of the right gradient."""
    norm = float(np.linalg.norm(right))
    return float(np.linalg.norm(actual.astype(np.float64) - right)) / (norm or 1.0)


class _Different(NamedTuple):
    """Examples that are repeated in a batch.

    Attributes:
        rows: where each different example is for the first time.
        places: for each example, which of the different ones it is.
    """

    rows: list[int]
    places: list[int]


def _different(examples: NDArray[Any]) -> _Different:
    known: dict[bytes, int] = {}
    places = [known.setdefault(example.tobytes(), len(known)) for example in examples]
    return _Different([places.index(place) for place in range(len(known))], places)


def _wide(training: Objective, examples: NDArray[Any]) -> NDArray[Any]:
    """Images in float64; tokens as they are."""
    return examples if training.vocabulary is not None else examples.astype(np.float64)


class InferenceCase(ThroughputCase):
    """The case of a network's answers."""

    def bind(self) -> Work:
        """A batch on the device, and a network with its initial weights."""
        return Answers(self.predictor(), self.framework)


class ForwardBackwardCase(ThroughputCase):
    """The case of a network's loss and gradients."""

    def bind(self) -> Work:
        """Examples and labels on the device, and weights at which no rounding decides on a ReLU."""
        job = replace(self.job, training=with_stable_weights(self.training, self.cell.batch))
        return Gradients(self.framework.learner(job), self.framework)
