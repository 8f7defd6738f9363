"""References of a training: parameters and first losses, by NumPy or in float64.

Networks of fwbench's have a reference in NumPy. A model that a user brings is verified against a
run of it in float64, called as simply as can be, with the same weights and batches.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.cases import verify
from fwbench.errors import (
    DeclarationError,
    Diverged,
    FwbenchError,
    WrongResult,
    WrongTraining,
    some,
)
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.learner import Job, Learner
from fwbench.frameworks.models import ModelLearner
from fwbench.records.facts import CaseFacts
from fwbench.workloads.input import BATCH
from fwbench.workloads.models import reference, trajectories
from fwbench.workloads.models.gradients import FORMATS, Rounded, untrained
from fwbench.workloads.models.layers import Dense, Dropout
from fwbench.workloads.objective import SGD, check_rows


class Reference(ABC):
    """Reference of a learner."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Number of trained parameters."""

    @property
    @abstractmethod
    def losses(self) -> Sequence[float]:
        """The first losses from the initial weights on, at least as many as are checked."""

    #: Deviation of each by rounding in mixed precision; None of other dtypes, or if unknown.
    rounding: Any = None

    @property
    @abstractmethod
    def differs_in_training(self) -> bool:
        """True if a model's answers are not those that a step computes its loss from."""

    @property
    @abstractmethod
    def drops_out(self) -> bool:
        """True if steps drop out what they draw."""

    @abstractmethod
    def check_answers(self, learner: Learner) -> None:
        """Compare answers by the initial weights: losses show little of digits that are missing.

        Raises:
            WrongResult: a result is off by more than the dtype's rounding.
        """

    #: Advice where losses differ, behind a sentence.
    advice = ""

    def facts(self) -> CaseFacts:
        """Facts of the reference, for the record."""
        return CaseFacts()


class InNumPy(Reference):
    """The reference of fwbench's networks."""

    def __init__(self, learner: Learner) -> None:
        self._job = learner.job
        self._update = learner.notes().get("update", "dense")

    @property
    def parameters(self) -> int:
        """Parameters of the graph."""
        return self._job.training.parameters

    @property
    def losses(self) -> Sequence[float]:
        """Stored, or computed in NumPy."""
        job = self._job
        return trajectories.expected_losses(job.training, job.batch, update=self._update)

    @cached_property
    def rounding(self) -> Any:
        """Emulated in float64."""
        of = self._job
        return trajectories.rounding_errors(of.training, of.batch, of.verified_as, self._update)

    @property
    def differs_in_training(self) -> bool:
        """With dropout and batch normalization."""
        return any(node.layer.differs_in_training for node in self._job.training.graph.nodes)

    @property
    def drops_out(self) -> bool:
        """With dropout."""
        return any(isinstance(node.layer, Dropout) for node in self._job.training.graph.nodes)

    def check_answers(self, learner: Learner) -> None:
        """Logits, and in mixed precision the first update of gradient descent.

        Raises:
            WrongTraining: the update is much longer or shorter than the reference's.
        """
        training = learner.job.training
        ((rows, labels),) = training.check_batches(check_rows(learner.job.batch), 1)
        compare_answers(learner.job, rows, learner.logits(rows))
        if self.rounding is not None:
            _check_first_update(learner, (rows, labels))


class InFloat64(Reference):
    """A user's model in float64, in the framework that is measured.

    It is built when it is asked for the first time, and given up with its answers known: nothing of
    it is in memory while a case is timed. Where versions share weights, it is the run of the first
    framework that was measured.

    Raises:
        DeclarationError: other frameworks' versions have other parameters.
    """

    def __init__(self, framework: Framework, learner: ModelLearner) -> None:
        self._framework = framework
        self._learner = learner
        #: The framework that has run, with its version; empty before.
        self.by = ""
        self._answers: tuple[list[NDArray[Any]], list[NDArray[Any]]] | None = None
        check_parameters(learner)
        self._flops: float | None = None

    @property
    def parameters(self) -> int:
        """Parameters of the measured version, which has no other description."""
        return self._learner.parameters()

    @property
    def differs_in_training(self) -> bool:
        """It may: nothing is known of its layers."""
        return True

    drops_out = differs_in_training
    advice = (
        ". Where the model draws random numbers, draw them in layers of dropout, or at a rate in "
        "an attribute with `drop` in its name: the check sets these rates to 0. Where it computes "
        "in a narrower dtype by itself, as under autocast, declare tolerance= of the Model"
    )

    @cached_property
    def losses(self) -> Sequence[float]:
        """Losses of the checked steps.

        Raises:
            Diverged: the first loss is not a number.
        """
        run = self._run("step", self._own_losses)
        losses = [float(loss) for loss in run[0]]
        if not np.isfinite(losses[0]):
            raise Diverged(
                f"the first loss of {self._learner.model.name} in {self.by} is {losses[0]}, "
                "before any update; correct the model, the loss or the range of its inputs and "
                "targets"
            )
        return losses

    def _own_losses(self) -> list[NDArray[Any]]:
        learner = self._learner
        batches = learner.objective.check_batches(
            learner.job.batch, learner.objective.checked_steps
        )
        with self._scope():
            wide = self._wide()
            wide.reset(exact=True)
            losses = wide.losses([wide.step(*wide.place(batch)) for batch in batches])
            self._flops = wide.flops(wide.place(batches[0]), training=True)
        return [losses]

    def answers(self, *, changed: bool) -> list[NDArray[Any]]:
        """The results for the first batch, or for the second if it is changed.

        Raises:
            WrongResult: the first result does not have the shape that the model declares, or there
                are NaNs in one, which any other NaN would be right by.
        """
        if self._answers is None:
            every = self._run("inference", self._own_answers)
            half = len(every) // 2
            self._answers = every[:half], every[half:]
            self._check_shape(every[:half])
            self._check_numbers(every)
        return self._answers[changed]

    def check_answers(self, learner: Learner) -> None:
        """The first result."""
        of, dtype = self._learner, learner.job.dtype
        ((inputs, _),) = of.objective.check_batches(of.job.batch, 1)
        flops, expected = self._flops, self.answers(changed=False)
        self._flops = flops  # of steps
        allowed = verify.LOGIT_TOLERANCES[dtype] * of.model.tolerance
        self.deviation(learner.logits(inputs), expected[0], allowed)

    def deviation(
        self, actual: NDArray[Any], expected: NDArray[Any], allowed: float
    ) -> verify.Deviation:
        """Deviation of a result from that of the run in float64.

        Raises:
            WrongResult: it is larger than allowed.
        """
        try:
            return verify.compare(actual, expected, allowed, f"run of {self.by}")
        except WrongResult as error:
            raise WrongResult(
                f"{error}; if the model computes in a narrower dtype by itself, as under autocast, "
                "declare tolerance= of the Model"
            ) from None

    def _own_answers(self) -> list[NDArray[Any]]:
        """For both batches, one after the other."""
        learner = self._learner
        results: list[NDArray[Any]] = []
        with self._scope():
            wide = self._wide()
            for batch in learner.objective.check_batches(learner.job.batch, 2):
                inputs, _ = wide.place(batch)
                results += wide.restored([wide.on_host(x) for x in wide.inference(inputs)()])
            self._flops = wide.flops(wide.place(batch), training=False)
        return results

    def _run(self, what: str, compute: Callable[[], list[NDArray[Any]]]) -> list[NDArray[Any]]:
        by = f"{self._framework.name} {self._framework.version} in float64"
        try:
            self.by, arrays = shared_run(self._learner, what, by, compute)
        except (FwbenchError, MemoryError):
            raise
        except Exception as error:
            raise self._learner.fails_as_reference(error) from error
        return arrays

    def _check_shape(self, results: Sequence[NDArray[Any]]) -> None:
        model, batch = self._learner.model, self._learner.job.batch
        if model.output is None:
            return
        expected = tuple(batch if length == BATCH else length for length in model.output)
        actual = results[0].shape if results else None
        if actual != expected:
            raise WrongResult(
                f"the first result of {model.name} in {self.by} has the shape {actual}, and the "
                f"model declares {expected}; correct the model or `output`"
            )

    def _check_numbers(self, results: Sequence[NDArray[Any]]) -> None:
        wrong = sum(int(np.isnan(array).sum()) for array in results)
        if wrong:
            raise WrongResult(
                f"the results of {self._learner.model.name} in {self.by} hold {wrong:,} NaNs; "
                "correct the model or the range of its inputs"
            )

    def _scope(self) -> AbstractContextManager[Any]:
        return self._framework.scope(self._learner.job.device, "float64")

    def _wide(self) -> ModelLearner:
        plain = replace(
            self._learner.job, dtype="float64", execution=self._learner.plain, as_reference=True
        )
        wide = self._framework.model_learner(plain)
        wide.begin_with(self._learner.initial)
        return wide

    def facts(self) -> CaseFacts:
        """Name of the reference, and the operations that the framework counts."""
        facts = CaseFacts(verified_against=self.by)
        return facts if self._flops is None else facts | CaseFacts(flops=self._flops)


#: The environment variable with the folder; not set where a session has one version of each model.
VARIABLE = "FWBENCH_VERSIONS"

Shapes = Mapping[str, Sequence[int]]


def check_parameters(learner: ModelLearner) -> None:
    """Check that other frameworks' versions have as many parameters, and as large ones.

    Raises:
        DeclarationError: one differs.
    """
    folder = _folder()
    if folder is None:
        return
    state = learner.state()
    shapes = {name: list(state[name].shape) for name in learner.trained_names()}
    file = folder / f"{learner.model.name}.json"
    known: dict[str, Shapes] = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for framework, others in known.items():
        _check_equal(learner, shapes, framework, others)
    file.write_text(json.dumps({**known, learner.framework: shapes}), "utf-8")


def _check_equal(learner: ModelLearner, shapes: Shapes, framework: str, others: Shapes) -> None:
    counts = [sum(map(math.prod, version.values())) for version in (shapes, others)]
    if counts[0] == counts[1]:
        return
    only = f"{_only(learner.framework, shapes, others)}, {_only(framework, others, shapes)}"
    raise DeclarationError(
        f"{learner.model.name} has {counts[0]:,} parameters in {learner.framework} and "
        f"{counts[1]:,} in {framework}: {only}; make them the same model, or declare two models"
    )


def _only(framework: str, shapes: Shapes, others: Shapes) -> str:
    """The parameters whose shapes another version lacks, in any order of their axes."""
    left = Counter(tuple(sorted(shape)) for shape in others.values())
    extra = []
    for name, shape in shapes.items():
        axes = tuple(sorted(shape))
        if left[axes]:
            left[axes] -= 1
        else:
            extra.append(f"{name} {tuple(shape)}")
    return f"{some(extra, separator='; ') or 'nothing'} in {framework} alone"


def shared_run(
    learner: ModelLearner, what: str, by: str, run: Callable[[], list[NDArray[Any]]]
) -> tuple[str, list[NDArray[Any]]]:
    """Reference of a version: another framework's run where weights are shared, or its own.

    Args:
        what: tells the run from others of the model.
        run: the version's own run in float64.

    Returns:
        The framework of the run with its version, and the results or losses.
    """
    folder = _folder()
    if folder is None or learner.model.shared is None:
        return by, run()
    file = folder / f"{learner.model.name}-{learner.job.batch}-{what}.npz"
    if file.exists():
        with np.load(file) as stored:
            places = range(len(stored.files) - 1)
            return str(stored["by"]), [stored[f"array{place}"] for place in places]
    arrays = run()
    named = {f"array{place}": array for place, array in enumerate(arrays)}
    np.savez(file, by=np.array(by), **named)
    return by, arrays


def _folder() -> Path | None:
    folder = os.environ.get(VARIABLE)
    return None if folder is None else Path(folder)


#: How many times the emulation's root mean squares of errors are allowed, and the length of the
#: reference's first update. Seen were 0.6 to 1.3 of all layers, 0.98 to 1.01 of the last one, where
#: sums in float16 make 4.3 and more, and 0.88 to 1.10 of the length.
_TIMES, _WHOSE = 2.0, ("all layers", "the last layer")


def compare_answers(
    job: Job, rows: NDArray[Any], actual: NDArray[Any], places: Any = slice(None)
) -> tuple[verify.Deviation, float]:
    """Errors of logits, and what is allowed of one; ``places`` says which row each example is.

    Raises:
        WrongResult: a logit is off by more, or computed in fewer digits than the dtype has.
    """
    training, dtype = job.training, job.verified_as
    wide, parameters = rows if training.vocabulary else rows.astype(np.float64), training.initial()

    def answers(*layer: Any) -> NDArray[Any]:
        logits = reference.inference(training.graph, parameters, wide, *layer)
        each = logits.reshape(len(rows), training.labels_per_example, -1)[places]
        return each.reshape(-1, logits.shape[-1])

    exact, terms = answers(), training.recurrent_terms
    allowed = verify.logit_tolerance(dtype, terms)
    if dtype not in FORMATS:
        return verify.compare(actual, exact, allowed), allowed
    floor = verify.logit_tolerance("float32", terms)
    emulated = answers(partial(untrained, trained=Rounded(dtype).forward))
    largest = verify.relative(emulated, exact, 0.0).largest
    allowed = min(allowed, floor + verify.ROUNDING * largest)
    errors = verify.compare(actual, exact, allowed)
    is_dense = isinstance(training.graph.nodes[-1].layer, Dense)
    passed_on, _ = np.linalg.qr(parameters[-1][0].T if is_dense else np.eye(exact.shape[-1]))

    def parts(logits: NDArray[Any]) -> tuple[float, float]:
        """All errors, and those that none of the last layer's inputs makes by its kernel."""
        off = logits - exact
        own = np.linalg.norm(off - off @ passed_on @ passed_on.T) / np.linalg.norm(exact)
        return verify.relative(logits, exact, 0.0).rms, float(own)

    for whose, error, seen in zip(_WHOSE, parts(actual), parts(emulated), strict=True):
        if not error <= (limit := floor + _TIMES * seen):
            raise WrongResult(
                f"the logits have fewer digits than {dtype}: the root mean square of the relative "
                f"errors of {whose} is {error:.3g}, {limit:.3g} is allowed; find a sum or layer in "
                "fewer"
            )
    return errors, allowed


def _check_first_update(learner: Learner, rows: Any) -> None:
    training, optimizer = learner.job.training, learner.job.training.optimizer
    if not isinstance(optimizer, SGD):  # updates of the others depend on no factor
        return
    _, of_nodes = reference.mean_gradients(training, training.initial(), [rows])
    norms = [np.linalg.norm(array) for arrays in of_nodes for array in arrays]
    right = optimizer.learning_rate * math.hypot(*norms)
    (batch,) = training.check_batches(learner.job.batch, 1)
    before = [*map(np.array, learner.weights())]
    learner.step(*learner.place(batch))
    made = math.hypot(*map(np.linalg.norm, map(np.subtract, learner.weights(), before)))
    if not right / _TIMES <= made <= right * _TIMES:
        raise WrongTraining(
            f"the first update has the length {made:.3g}, and the reference's {right:.3g}: scale "
            "the loss, and divide gradients by the same number"
        )
