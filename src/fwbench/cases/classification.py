"""Trained networks: how fast they answer, and how often rightly, in int8 as in wider dtypes.

Every framework has the same weights, and is asked about the same pictures. An answer in int8 is
compared with three things: each logit must be near to the float64 reference's, but not as near as
floating point comes; most pictures must be classified alike; and the file of the network must be
so small that its weights can only be narrow.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fwbench.cases.epochs import whole
from fwbench.cases.networks import Answers, InferenceCase
from fwbench.cases.training import data_facts
from fwbench.cases.work import Work
from fwbench.errors import WrongResult
from fwbench.measure.limits import ITEMSIZE_BYTES, int8_features
from fwbench.records.facts import CaseFacts
from fwbench.records.units import percent
from fwbench.terms.names import DEFAULT_DTYPE, INT8
from fwbench.workloads.data import DataSet, Split
from fwbench.workloads.models import reference
from fwbench.workloads.models.passes import Classification
from fwbench.workloads.objective import Classifier, Objective
from fwbench.workloads.training import order

#: Pictures of the training set that int8 is calibrated with, and of the test set that are asked.
_CALIBRATION = 512
_TESTED = 2_000

#: What a logit in int8 may be off by, as in :data:`fwbench.cases.networks.LOGIT_TOLERANCES`. Seen
#: were 0.16 at most; 8 bits of the weights alone make 0.03, 4 bits 0.4, 3 bits 1.8.
_TOLERANCE = 0.3

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


class Classified(Answers):
    """The logits of a batch by a trained network."""

    def answers(self, examples: NDArray[Any]) -> NDArray[Any]:
        """The logits of other examples, by the call that was timed."""
        (logits,) = self._read(self._change([examples])())
        return logits


class ClassifiedInInt8(Classified):
    """The same in whole numbers of 8 bits."""

    @property
    def allowed(self) -> float:
        """Allowed error of a logit."""
        return _TOLERANCE

    def _precision(self, rms: float) -> CaseFacts:
        """Nothing: whole numbers have no mantissa. They make errors, though.

        Raises:
            WrongResult: the errors are smaller than those of int8 can be.
        """
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
        kind = ClassifiedInInt8 if self.cell.dtype == INT8 else Classified
        return kind(self.predictor(), self.framework)

    def _verify_again(self, work: Work, last: Any) -> CaseFacts:
        """In addition the accuracy, by the call that was timed, and the size of the network."""
        verified = super()._verify_again(work, last)
        if not self._benchmark.enabled:
            return verified
        with self._discarded_on_failure(), self.framework.scope(self.cell.device, self.cell.dtype):
            classified = cast("Classified", work)
            return verified | self._tested(classified) | self._size(classified)

    def _tested(self, work: Classified) -> CaseFacts:
        """Number of pictures that are classified rightly, and as by the reference.

        Raises:
            WrongResult: too few are, for int8, as by the reference.
        """
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

    def _size(self, work: Classified) -> CaseFacts:
        """Size of the network's file, where there is one.

        Raises:
            WrongResult: it is too large for weights of 8 bits.
        """
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
