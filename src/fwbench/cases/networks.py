"""Networks without an update: their answers, and loss and gradients, against the reference.

Logits are compared one by one, gradients array by array, by the norm of the difference. Gradients
are not continuous: where rounding decides on which side of 0 the input of a ReLU is, or which
element of a window is the largest, a part of the gradient comes or goes. So gradients are computed
where no rounding decides on a ReLU (:mod:`fwbench.workloads.models.stable_weights`), and where an
array is off by more than its bound, what the choice between equal elements of windows makes of it
is allowed in addition. What TF32 or bfloat16 make of float32 exceeds the bounds.

Trained networks are timed in int8 as in wider dtypes, with the same weights and pictures in every
framework. An answer in int8 is compared with three things: each logit must be near to the float64
reference's, but not as near as floating point comes; most pictures must be classified alike; and
the file of the network must be so small that its weights can only be narrow.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import precision, verify
from fwbench.cases.epochs import whole
from fwbench.cases.forward import check_count
from fwbench.cases.inputs import Change, Inputs, check_device
from fwbench.cases.references import compare_answers
from fwbench.cases.training import ThroughputCase, data_facts
from fwbench.cases.work import RepeatedWork, Work
from fwbench.errors import WrongGradient, WrongResult
from fwbench.frameworks.contract import Array, BoundCall, Framework
from fwbench.frameworks.learner import Learner, Predictor
from fwbench.measure.limits import ITEMSIZE_BYTES, int8_features
from fwbench.records.facts import CaseFacts
from fwbench.records.units import percent
from fwbench.terms.names import DEFAULT_DTYPE, INT8
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.models import reference
from fwbench.workloads.models.layers import BatchNorm
from fwbench.workloads.models.passes import Classification
from fwbench.workloads.models.stable_weights import tie_breaks_flipped, with_stable_weights
from fwbench.workloads.objective import Classifier, Objective
from fwbench.workloads.training import order

#: What the gradient by a parameter may be off by, relative to its norm; once more for each batch
#: normalization, since they amplify errors. Seen in float32 were 1.4e-5 without any, and 1.4e-3
#: with 94 (Inception-v3 in TensorFlow; ``benchmarks/harness/deviations.py``), where windows choose
#: as the reference's do; TF32 makes 0.4. Narrower dtypes decide too often.
GRADIENT_TOLERANCES = {"float64": 1e-10, "float32": 1e-4}

#: Elements of a window are as good as equal if they differ by less, relative to the root mean
#: square of all, times the root of one and the batch normalizations, whose errors add up by chance;
#: and this many times what the choice between them makes of a gradient is allowed.
NEARLY_EQUAL = {"float64": 1e-13, "float32": 1e-5}
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
        array = self._network.place(batch)[is_labels]
        check_device(self._framework, array, self._network.job.only_device, "a batch")
        return array


class _NetworkWork(RepeatedWork):
    """A network on a batch on the device."""

    #: How many of examples and labels it takes.
    takes: int

    def __init__(self, network: Predictor, framework: Framework) -> None:
        super().__init__(framework, network.job.only_device)
        self.network = network
        self._placed = _NetworkBatch(framework, network)
        operands = self._operands(changed=False)
        self._keep(operands)
        self.run = self._first = self._bound(*map(self._placed.place, operands))

    @property
    def training(self) -> Objective:
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
        *_, batch = self.training.check_batches(self.network.job.batch, 1 + changed)
        return [*batch[: self.takes]]

    def _redrawn(self, seed: int) -> list[NDArray[Any]]:
        return [*self.training.other_batch(self.network.job.batch, seed)[: self.takes]]

    def _change(self, operands: Sequence[NDArray[Any]]) -> Change:
        self._keep(operands)
        return super()._change(operands)

    def _keep(self, operands: Sequence[NDArray[Any]]) -> None:
        """For the reference: a framework's arrays may share memory with what they were made of."""
        self._current = [np.array(operand) for operand in operands]

    def _facts(self, error: float) -> CaseFacts:
        return CaseFacts(
            parameters=self.training.parameters, max_relative_error=error, tolerance=self.allowed
        )


class Answers(_NetworkWork):
    """The logits of a batch."""

    takes = 1

    #: Allowed error of a logit of the batch that was compared last.
    allowed = 0.0

    def _bound(self, *placed: Array) -> BoundCall:
        return self.network.inference(*placed)

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        (examples,) = self._current
        check_count(on_host, [examples])
        job, (rows, places) = self.network.job, _different(examples)
        deviation, self.allowed = compare_answers(job, examples[rows], on_host[0], places)
        return self._facts(deviation.largest) | self._precision(deviation.rms) | self._exported()

    def answers(self, examples: NDArray[Any]) -> NDArray[Any]:
        """The logits of other examples, by the call that was timed."""
        (logits,) = self._read(self._change([examples])()())
        return logits

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

    @cached_property
    def _amplified(self) -> int:
        """One, and one for each batch normalization."""
        return 1 + sum(isinstance(x.layer, BatchNorm) for x in self.training.graph.nodes)

    @property
    def allowed(self) -> float:
        """Allowed error of the gradient by a parameter."""
        return self._amplified * GRADIENT_TOLERANCES[self.learner.job.dtype]

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
        training = self.training
        examples, labels = self._current
        # The mean over examples that are repeated alike is that over different ones.
        rows = _different(examples).rows
        labels = labels.reshape(len(examples), -1)[rows].ravel()
        few = _wide(training, examples[rows])
        loss, of_nodes = reference.gradients(training.graph, training.initial(), few, labels)
        mean, *gradients = on_host
        (allowed,) = verify.loss_tolerances(training, [loss], self.learner.job.dtype)
        verify.compare(mean, np.asarray(loss), allowed / loss)
        expected = self.learner.trained(of_nodes)
        verify.gradient_count(gradients, range(len(expected)))

        def otherwise() -> Sequence[NDArray[Any]]:
            nearly = NEARLY_EQUAL[self.learner.job.dtype] * self._amplified**0.5
            layer = tie_breaks_flipped(nearly)
            given = (training.graph, training.initial(), few, labels)
            return self.learner.trained(reference.gradients(*given, layer=layer)[1])

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
    """Examples that are repeated in a batch."""

    #: Where each different example is for the first time.
    rows: list[int]
    #: For each example, which of the different ones it is.
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


#: Pictures of the training set that int8 is calibrated with, and of the test set that are asked.
_CALIBRATION = 512
_TESTED = 2_000

#: The least that the root mean square of these errors must be. That of LeNet with 8 bits of the
#: weights alone is 6e-3; float16 makes 3e-4, float32 1e-7.
_LEAST_ERROR = 1e-3

#: The least share of the pictures that must be classified as by the reference. With 8 bits of the
#: weights it is 0.999, with 4 bits 0.990, with 3 bits 0.89.
_AGREEMENT = 0.985

#: The most that a file may take of what the parameters take in float32: in 16 bits it is half.
_SHARE_OF_FLOAT32 = 0.5

#: At once in float64.
_BATCH = 250


class AnswersInInt8(Answers):
    """The logits of a batch, computed in whole numbers of 8 bits."""

    def _precision(self, rms: float) -> CaseFacts:
        """Nothing: whole numbers have no mantissa. They make errors, though."""
        if rms < _LEAST_ERROR:
            raise WrongResult(
                f"{self.training.name} was asked for in int8 and computed in floating point: the "
                f"relative errors of its logits have a root mean square of {rms:.2g}, and numbers "
                f"of 8 bits make {_LEAST_ERROR:g} at least; quantize the network in the "
                "framework's predictor"
            )
        return CaseFacts()


class ClassificationCase(InferenceCase):
    """The case of a trained network's answers."""

    @cached_property
    def training(self) -> Objective:
        """The network with its trained weights, and pictures."""
        return _classifier(cast("Classification", self.cell.workload), self.data())

    def bind(self) -> Work:
        """A batch on the device, and a network with its trained weights."""
        kind = AnswersInInt8 if self.cell.dtype == INT8 else Answers
        return kind(self.predictor(), self.framework)

    def _verify_again(self, work: Work, last: Any) -> CaseFacts:
        """In addition the accuracy, by the call that was timed, and the size of the network."""
        verified = super()._verify_again(work, last)
        if not self._benchmark.enabled:
            return verified
        with self._discarded_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            classified = cast("Answers", work)
            return verified | self._tested(classified) | self._size(classified)

    def _tested(self, work: Answers) -> CaseFacts:
        """Number of pictures that are classified rightly, and as by the reference."""
        classifier = cast("Classifier", self.training)
        examples, labels = classifier.test
        batch = self.cell.batch
        # Whole batches: a network may be made for one size of them.
        starts = range(0, len(labels) - batch + 1, batch)
        classes = np.concatenate([work.answers(examples[i : i + batch]).argmax(1) for i in starts])
        tested = len(classes)
        agreement = float(np.mean(classes == _right_classes(classifier)[:tested]))
        facts = CaseFacts(
            accuracy=float(np.mean(classes == labels[:tested])),
            agreement=agreement,
            tested_examples=tested,
            data=data_facts(self.data()),
        )
        if self.cell.dtype != INT8:
            return facts
        if agreement < _AGREEMENT:
            raise WrongResult(
                f"{classifier.name} in int8 classifies {percent(agreement)} of {tested} pictures "
                f"as its float64 reference does, and {percent(_AGREEMENT)} must agree: it was "
                "quantized to fewer bits, or calibrated with other examples"
            )
        return facts | CaseFacts(int8_features=int8_features())

    def _size(self, work: Answers) -> CaseFacts:
        size_bytes = work.network.model_bytes()
        wide_bytes = self.training.parameters * ITEMSIZE_BYTES[DEFAULT_DTYPE]
        most_bytes = int(_SHARE_OF_FLOAT32 * wide_bytes)
        if self.cell.dtype == INT8 and size_bytes is not None and size_bytes >= most_bytes:
            raise WrongResult(
                f"{self.training.name} was asked for in int8, and its file of {size_bytes:,} bytes "
                f"has wider weights: its parameters take {wide_bytes:,} bytes in float32, and a "
                f"file must have less than {most_bytes:,}; quantize all weights"
            )
        return CaseFacts() if size_bytes is None else CaseFacts(model_bytes=size_bytes)


@lru_cache(maxsize=2)
def _classifier(workload: Classification, data: DataSet) -> Classifier:
    """A trained network with its pictures, once in a process for cases of all dtypes."""
    loop = workload.loop
    train, test = data.train, data.test
    chosen = order(len(train), 0, 0)[:_CALIBRATION]
    calibration, _ = whole(Split(train.x[chosen], train.y[chosen]))
    return Classifier(
        name=loop.name,
        network=loop.network,
        shape=loop.shape,
        classes=loop.classes,
        optimizer=loop.optimizer,
        weights=workload.weights(),
        test=whole(Split(test.x[:_TESTED], test.y[:_TESTED])),
        calibration=calibration,
    )


@lru_cache(maxsize=2)
def _right_classes(classifier: Classifier) -> NDArray[Any]:
    """The reference's classes of the requested pictures."""
    examples, _ = classifier.test
    parameters = classifier.initial()
    parts = [
        reference.inference(classifier.graph, parameters, examples[i : i + _BATCH].astype(float))
        for i in range(0, len(examples), _BATCH)
    ]
    return np.concatenate(parts).argmax(1)
