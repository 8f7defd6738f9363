"""Models that users bring as cases: their answers, and a training step, against float64."""

import math
from collections.abc import Sequence
from typing import Any, cast

from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.cases.inputs import Inputs, check_device, check_room
from fwbench.cases.networks import InferenceCase
from fwbench.cases.references import InFloat64, Reference
from fwbench.cases.training import StepCase, TrainingCase
from fwbench.cases.work import RepeatedWork, Work
from fwbench.errors import WrongResult
from fwbench.frameworks.contract import Array, Framework
from fwbench.frameworks.learner import Learner, Predictor
from fwbench.frameworks.models import ModelLearner
from fwbench.records.facts import CaseFacts
from fwbench.records.units import count
from fwbench.workloads.model import ModelObjective


class _ModelBatch(Inputs):
    """Inputs as a learner places them."""

    def __init__(self, framework: Framework, learner: ModelLearner) -> None:
        super().__init__(framework, learner.job.device, learner.job.dtype)
        self._learner = learner

    def _placed(self, operand: NDArray[Any]) -> Array:
        array = self._learner.placed(operand)
        check_device(self._framework, array, self._device, "an input")
        return array


class _Answers(RepeatedWork):
    """A model in use, on a batch on the device."""

    def __init__(self, learner: ModelLearner, framework: Framework) -> None:
        super().__init__(framework, learner.job.only_device)
        self._learner = learner
        self._reference = InFloat64(framework, learner)
        self._placed = _ModelBatch(framework, learner)
        self._changed = False
        placed = [self._placed.place(x) for x in self._operands(changed=False)]
        self.run = self._first = learner.inference(tuple(placed))

    @property
    def allowed(self) -> float:
        return verify.LOGIT_TOLERANCES[self._learner.job.dtype] * self._learner.model.tolerance

    def _operands(self, *, changed: bool) -> list[NDArray[Any]]:
        self._changed = changed
        batch = self._learner.job.batch
        *_, (inputs, _) = self._learner.objective.check_batches(batch, 1 + changed)
        return self._learner.laid(inputs)

    def _redrawn(self, seed: int) -> list[NDArray[Any]]:
        inputs, _ = self._learner.objective.other_batch(self._learner.job.batch, seed)
        return self._learner.laid(inputs)

    def _data(self, operands: Sequence[NDArray[Any]]) -> list[int]:
        """All: none of the inputs is a weight."""
        return [*range(len(operands))]

    def _compare(self, on_host: Sequence[NDArray[Any]]) -> CaseFacts:
        expected = self._reference.answers(changed=self._changed)
        if len(on_host) != len(expected):
            raise WrongResult(
                f"the model returned {count(len(on_host), 'result')}, and {len(expected)} in "
                f"{self._reference.by}; return the same"
            )
        errors = [
            self._reference.deviation(actual, right, self.allowed).largest
            for actual, right in zip(self._learner.restored(on_host), expected, strict=True)
        ]
        return self._reference.facts() | CaseFacts(
            parameters=self._reference.parameters,
            max_relative_error=max(errors, default=0.0),
            tolerance=self.allowed,
        )


class _ModelCase(TrainingCase):
    #: How often there is a number for each parameter: in the dtype of the case, and in float64.
    copies = 2

    def learner(self) -> Learner:
        """The framework's version of the model, where there is room for the batch.

        Raises:
            TooLargeToVerify: it is estimated not to fit into memory.
        """
        model, batch = cast("ModelObjective", self.training).model, self.cell.batch
        given = [*model.taken, *([] if model.targets is None else [model.targets])]
        what = f"{model.name} with a batch of {batch:,}"
        inputs = float(sum(math.prod(declared.shape_of(batch)) for declared in given))
        check_room(what, inputs)
        learner = self.framework.model_learner(self.job)
        parameters = float(sum(array.size for array in learner.initial.values()))
        check_room(what, inputs + self.copies * parameters + self._results(learner))
        return learner

    def predictor(self) -> Predictor:
        """The same version in use: its layers are not known, so no network can be built of them."""
        return self.learner()

    def _results(self, learner: ModelLearner) -> int:
        """Elements of results that are in memory at the same time, as far as that is known."""
        results = learner.results(learner.shapes(self.cell.batch))
        return 0 if results is None else results.largest


class ModelInferenceCase(_ModelCase, InferenceCase):
    """The case of the answers of a user's model."""

    def bind(self) -> Work:
        """A batch on the device, and a model with its initial weights."""
        return _Answers(cast("ModelLearner", self.learner()), self.framework)


class ModelStepCase(_ModelCase, StepCase):
    """The case of a training step of a user's model."""

    #: And gradients and momenta.
    copies = 6

    def _results(self, learner: ModelLearner) -> int:
        """All, as gradients need them."""
        results = learner.results(learner.shapes(self.cell.batch))
        return 0 if results is None else results.elements

    def reference(self, learner: Learner) -> Reference:
        """Its own run in float64."""
        return InFloat64(self.framework, cast("ModelLearner", learner))
