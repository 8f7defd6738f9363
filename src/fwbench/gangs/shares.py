"""One replica's share of a case: its step, and its checks."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from fwbench import workloads
from fwbench.cases import learning, networks, verify
from fwbench.cases.references import InNumPy
from fwbench.errors import WrongGradient, WrongTraining
from fwbench.frameworks.contract import Framework
from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Member
from fwbench.measure.resources import sent_bytes
from fwbench.workloads.models import reference
from fwbench.workloads.models.stable_weights import tie_breaks_flipped, to_share
from fwbench.workloads.objective import Batch
from fwbench.workloads.training import Trains

#: What the gradient of the first step may be off by, relative to its norm: from the initial weights
#: rounding may decide on a ReLU, which is more than it does elsewhere. A gradient that was added up
#: instead of averaged, or not exchanged, is off by a half and more.
_GRADIENT_TOLERANCES = {"float64": 1e-8, "float32": 1e-2}

#: As many times of it where examples are normalized by the batch. That of a few enlarges rounding:
#: with GoogLeNet's four a share the error was 1.8e-2.
_NORMALIZED = 5


@dataclass(frozen=True)
class Task:
    """A case, as the controller sends it to replicas."""

    workload: str
    #: Of all replicas together; of a collective, of each.
    size: int
    device: str
    execution: str
    dtype: str
    #: Whether gradients of embeddings hold only rows that occurred.
    sparse: bool
    #: The size in full, where a number cannot tell it; the batch size is then ``size``.
    shape: str = ""
    #: Whether the backward pass computes results once more.
    recompute: bool = False
    #: Whether replicas normalize by the whole batch.
    synchronized: bool = False
    #: The replica that is late in every timed step, as a :class:`~fwbench.terms.replicas.Straggler`
    #: as JSON; None for no replica.
    late: Mapping[str, Any] | None = None
    #: A :class:`~fwbench.gangs.loops.ReplicaLoop` as JSON; None for work without epochs.
    loop: Mapping[str, Any] | None = None


class Share(ABC):
    """One replica's share of a case."""

    run: Callable[[], Any]

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        self.task = task
        self.framework = framework
        self.member = member

    def check(self, steps: int) -> dict[str, Any]:
        """Take steps from the beginning whose results are known.

        Returns:
            The findings, with ``sent_bytes`` of all steps and of the barrier after them, None if
            the system does not count them.
        """
        sent = sent_bytes()
        findings = self._check(steps)
        # A replica that has its result may still have bytes to send; at the barrier none has.
        self.member.barrier()
        now = sent_bytes()
        return findings | {"sent_bytes": None if sent is None or now is None else now - sent}

    @abstractmethod
    def _check(self, steps: int) -> dict[str, Any]:
        """Take steps from the beginning, and return the findings."""

    @abstractmethod
    def verify_last(self) -> dict[str, Any]:
        """Verify the last timed step."""

    def waiter(self) -> Callable[[], Any] | None:
        """Function that waits until the steps are done; None if they are done when they return."""
        return self.framework.waiter(self.task.device)

    def without_exchange(self) -> AbstractContextManager[Any] | None:
        """A context in which steps exchange nothing; None without any. The last thing to do."""
        return None

    def checksum(self) -> int:
        """A number that changes with the weights; 0 without any."""
        return 0


class TrainedShare(Share):
    """A copy of a model, trained on a share of every batch."""

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        super().__init__(task, framework, member)
        self._build()
        self._batches = self._shards(learning.TURNS)
        self._placed = [self._learner.place(batch) for batch in self._batches]
        self._made = 0
        self.run = self._step

    def _step(self) -> Any:
        """A step on the batch whose turn it is: one on that of the step before could be kept."""
        placed = self._placed[self._made % learning.TURNS]
        self._made += 1
        return self._learner.step(*placed)

    def _build(self) -> None:
        task = self.task
        workload = cast("Trains", getattr(workloads, task.workload))
        size = workload.size_of(task.shape or task.size)
        assert size is not None, task  # noqa: S101 (the controller has the same workload)
        self._training = to_share(workload.at(size), *self._checked_as)
        job = Job(
            self._training,
            task.device,
            task.execution,
            task.dtype,
            task.size // self.member.place.replicas,
            sparse=task.sparse,
            recompute=task.recompute,
            synchronized=task.synchronized,
        )
        self._model = self.member.learner(job)
        self._learner = self._model.learner
        self._learner.reset(exact=False)
        self._begun = self._learner.checksum()

    @property
    def _checked_as(self) -> tuple[int, int]:
        """The batch size, and the number of parts of it that are normalized in the check."""
        return self.task.size, 1 if self.task.synchronized else self.member.place.replicas

    def _shards(self, steps: int) -> list[Any]:
        place = self.member.place
        return self._training.check_shards(self.task.size, steps, place.replicas, place.rank)

    def _check(self, steps: int) -> dict[str, Any]:
        """The losses of this share, and the weights before the first step and after each."""
        learner = self._learner
        verify.parameters(learner.parameters(), self._training.parameters)
        (first,) = self._shards(1)
        self._model.warm_start(*learner.place(first))
        learner.reset(exact=True)
        weights = [learner.checksum()]
        losses: list[Any] = []
        exchanged: dict[str, Any] = {}
        for batch in self._shards(steps):
            losses += self._trained([batch])
            weights.append(learner.checksum())
            exchanged = exchanged or self._exchanged()
        values = learner.losses(losses).tolist()
        learner.reset(exact=False)
        self._made = 0
        return {"losses": values, "weights": weights, **exchanged, "notes": learner.notes()}

    def _trained(self, shares: Sequence[Batch]) -> Sequence[Any]:
        """Train on shares of batches, as they are timed; returns their losses."""
        return [self._learner.step(*self._learner.place(share)) for share in shares]

    def _exchanged(self) -> dict[str, Any]:
        """Error of the first step's gradient against the reference, and whether it is too large.

        One replica compares; that the others have the same shows in their weights.
        """
        if self.member.place.rank or self.task.dtype not in _GRADIENT_TOLERANCES:
            return {"gradient_error": None, "wrong_gradient": ""}
        training = self._training
        least, parts = training.reduced(*self._checked_as)
        (shares,) = training.shards(least, 1, parts)
        enlarged = _NORMALIZED if training.normalized else 1
        allowed = enlarged * _GRADIENT_TOLERANCES[self.task.dtype]
        flipped = tie_breaks_flipped(networks.NEARLY_EQUAL[self.task.dtype])

        def expected(**layer: Any) -> Sequence[Any]:
            given = (training, training.initial(), shares)
            return self._learner.trained(reference.mean_gradients(*given, **layer)[1])

        gradients = self._model.gradients()
        if gradients is None:
            return {"gradient_error": None, "wrong_gradient": ""}
        try:
            otherwise = partial(expected, layer=flipped)
            error, _ = networks.compare_gradients(gradients, expected(), allowed, otherwise)
        except WrongGradient as mismatch:  # the others are still taking steps
            return {"gradient_error": None, "wrong_gradient": str(mismatch)}
        return {"gradient_error": error, "wrong_gradient": ""}

    def without_exchange(self) -> AbstractContextManager[Any] | None:
        """The framework's own, if it has any."""
        return self._model.without_exchange()

    def checksum(self) -> int:
        """The learner's."""
        return self._learner.checksum()

    def verify_last(self) -> dict[str, Any]:
        """The weights before all timed steps and after them, and what is wrong with these steps."""
        weights = [self._begun, self._learner.checksum()]
        wrong = self._wrong_steps(), self._wrong_step()  # others wait for both
        return {"weights": weights, "wrong": next(filter(None, wrong), "")}

    def _wrong_steps(self) -> str:
        """The difference of the timed steps from the same ones on batches placed anew, as text.

        All replicas repeat all steps, whatever each finds. Sums of more than two gradients depend
        on their order, so that only the lengths of both ways are compared.
        """
        if not self._made:  # but epochs, all of whose losses are compared
            return ""
        learner, random = self._learner, InNumPy(self._learner).drops_out
        batches = [self._batches[turn % learning.TURNS] for turn in range(self._made)]
        try:
            learning.check_repeated(learner, batches, is_exact=not random and self._is_pair)
        except WrongTraining as error:
            return str(error)
        return ""

    @property
    def _is_pair(self) -> bool:
        return self.member.place.replicas <= 2  # noqa: PLR2004 (of which sums have one order)

    def _wrong_step(self) -> str:
        """The difference of a step's loss from that of the answers to this share, as text.

        Empty if there is none, or where layers answer otherwise in training. All replicas take the
        step, whatever each finds.
        """
        learner, training = self._learner, self._training
        batch = training.other_batch(learner.job.batch, secrets.randbits(32))
        answers = not any(node.layer.differs_in_training for node in training.graph.nodes)
        try:
            learning.check_update(learner, 1, batch, self._trained, answers=answers)
        except WrongTraining as error:
            return str(error)
        return ""


class AsynchronousShare(TrainedShare):
    """A model that workers train without waiting for each other, by way of servers.

    What they compute together is another thing every time. What one of them computes alone, while
    the others wait, is the work of one process on batches of the size of a share.
    """

    def __init__(self, task: Task, framework: Framework, member: Member) -> None:
        Share.__init__(self, task, framework, member)
        self._build()
        self.run = self._model.bound(self._own_shards())

    def waiter(self) -> Callable[[], Any]:
        """Until all updates are made."""
        return self._model.synchronize

    @property
    def _checked_as(self) -> tuple[int, int]:
        """A share of one worker."""
        return self.task.size // self.member.place.replicas, 1

    def _own_shards(self) -> list[Any]:
        """The shares of the check's first batch of all workers whose steps this process takes."""
        replicas = self.member.place.replicas
        shards = self._training.check_shards
        return [shards(self.task.size, 1, replicas, rank)[0] for rank in self.member.ranks]

    def _check(self, steps: int) -> dict[str, Any]:
        """Steps of one worker after another, then steps of all at once on the same examples."""
        learner = self._learner
        verify.parameters(learner.parameters(), self._training.parameters)
        share = self.task.size // self.member.place.replicas
        ((examples, labels),) = self._training.check_batches(share, 1)
        self._model.warm_start(*learner.place((examples, labels)))
        self._reset(exact=True)
        alone = self._alone(steps) if 0 in self.member.ranks else {}
        # From here on, and not from the beginning: while an optimiser has no second moment yet, and
        # it is not locked, a worker may divide by zero what another has added to the first.
        self._settle()
        losses = [
            [learner.step(*learner.place(batch)) for batch in self._own_shards()]
            for _ in range(steps)
        ]
        self._settle()
        together = {
            "losses": [learner.losses(step_losses).tolist() for step_losses in losses],
            "updates": self._model.updates(),
            "notes": learner.notes(),
        }
        self._reset(exact=False)
        return alone | together

    def _alone(self, steps: int) -> dict[str, Any]:
        """The losses of updates each of which was made before the next begins, and weights."""
        learner = self._learner
        share = self.task.size // self.member.place.replicas
        losses, weights = [], [learner.checksum()]
        exchanged: dict[str, Any] = {}
        for batch in self._training.check_batches(share, steps):
            losses.append(learner.step(*learner.place(batch)))
            self._model.synchronize()
            weights.append(learner.checksum())
            exchanged = exchanged or self._exchanged()
        return {"alone": learner.losses(losses).tolist(), "weights": weights, **exchanged}

    def _reset(self, *, exact: bool) -> None:
        """Begin again; no worker takes a step before all have done so."""
        self._settle()
        self._learner.reset(exact=exact)
        self.member.barrier()

    def _settle(self) -> None:
        """Wait until the updates of all workers are made."""
        self._model.synchronize()
        self.member.barrier()

    def verify_last(self) -> dict[str, Any]:
        """The updates of all steps that were timed."""
        self._settle()
        return {"updates": self._model.updates()}
