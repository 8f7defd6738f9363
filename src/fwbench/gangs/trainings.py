"""Training steps that replicas share, or take without waiting for each other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, cast

from fwbench.cases import learning
from fwbench.gangs import judgement
from fwbench.gangs.case import GangCase
from fwbench.gangs.clock import GangClock, Round
from fwbench.gangs.gang import Gang
from fwbench.gangs.judgement import Answers
from fwbench.records.facts import CaseFacts, Checked
from fwbench.workloads.training import Trains

#: A failure is shown where the test stands; ``pytest --full-trace`` shows these frames too.
__tracebackhide__ = True

#: How often steps are timed without an exchange.
_ROUNDS_ALONE = 3

#: How often a role has each parameter. Seen were 10.9, in PyTorch with momentum, of 10.8 million
#: parameters: weights, gradients, buckets of the exchange, momenta, the initial weights, and those
#: of the reference with their gradients in float64. Adam has one more.
_PARAMETERS = 12.0

#: A result of a layer, and its gradient.
_RESULTS = 2.0


class SharedStepCase(GangCase):
    """A training step that replicas share."""

    @property
    def _objective(self) -> Any:
        return cast("Trains", self.cell.workload).at(self.cell.size)

    @property
    def _is_sparse(self) -> bool:
        return self.cell.toggle("sparse") == "on"

    @property
    def elements(self) -> int:
        """The parameters, of each of which a gradient is exchanged."""
        return int(self._objective.parameters)

    @property
    def held(self) -> float:
        """The parameters, and what the layers answer to a share of the batch."""
        answers = sum(math.prod(node.output) for node in self._objective.graph.nodes)
        share = self.cell.batch / self.cell.replicas
        return _PARAMETERS * self.elements + _RESULTS * share * answers

    @property
    def checked_steps(self) -> int:
        """As many as of one worker's."""
        timed = self._benchmark.enabled
        return int(self._objective.checked_steps) if timed else learning.CHECKED_UNTIMED

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """The mean losses are the reference's, and all weights equal."""
        batch, dtype = self.cell.batch, self.cell.dtype
        found = judgement.training(
            answers, self._objective, batch, dtype, when, sparse=self._is_sparse
        )
        return self._known(*found)

    def _known(self, found: CaseFacts, checked: Checked) -> tuple[CaseFacts, Checked]:
        """With what the record of one worker has, too."""
        model = CaseFacts(parameters=self.elements, checked_steps=checked.steps)
        return found | model, checked

    def throughput(self, rounds: Sequence[Round]) -> CaseFacts:
        """Images or tokens."""
        objective = self._objective
        units = self.cell.batch * objective.units_per_example * sum(each.steps for each in rounds)
        seconds = sum(each.steps * each.step_s for each in rounds)
        rate: dict[str, Any] = {f"{objective.unit}_per_s": units / seconds}
        return CaseFacts(**rate)

    def alone_s(self, gang: Gang) -> float | None:
        """By a few rounds; the copies of the model differ afterwards."""
        clock = cast("GangClock", self._clock)
        steps, step_s = clock.rounds[-1].steps, clock.rounds[-1].step_s
        limit_s = gang.limits.of(steps * step_s)
        doing = "taking steps without an exchange"
        rounds = [
            gang.ask("alone", steps, limit_s=limit_s, doing=doing) for _ in range(_ROUNDS_ALONE)
        ]
        if None in rounds[0]:
            return None
        return statistics.median(Round(steps, ranks).step_s for ranks in rounds)

    def judge_left(self, answers: Answers) -> None:
        """All weights are equal after the timing."""
        judgement.same_weights(answers, "after the timing")


class AsynchronousStepCase(SharedStepCase):
    """A training step of workers that do not wait for each other."""

    def judge(self, answers: Answers, when: str) -> tuple[CaseFacts, Checked]:
        """One worker alone has the reference's losses, and all together learn."""
        share = self.cell.batch // self.cell.replicas
        found = judgement.asynchronous(
            answers, self._objective, share, self.cell.dtype, when, sparse=self._is_sparse
        )
        return self._known(*found)

    def updates(self, steps: int, *, checked: bool = False) -> int:
        """Each worker makes one in a step; in the check, one of them takes as many steps alone."""
        return steps * (self.cell.replicas + checked)

    def judge_left(self, answers: Answers) -> None:
        """All timed updates were made."""
        judgement.all_made(answers, "after the timing")
