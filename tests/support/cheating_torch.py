"""PyTorch's replicas, each with a mistake of its own: which one, the batch of a replica says."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch.distributed as dist

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Place
from fwbench.frameworks.torch.framework import Torch
from fwbench.frameworks.torch.replicas import TorchMember
from support.cheats import skips_a_step


def exchanges_nothing(learner: Any, _: int) -> None:
    """Every replica trains alone."""
    learner._forward = learner._model


def adds_up(learner: Any, _: int) -> None:
    """Gradients are summed where they should be averaged."""

    # PyTorch looks at the annotations themselves.
    def hook(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        summed = dist.all_reduce(bucket.buffer(), async_op=True)
        assert summed is not None
        return summed.get_future().then(lambda future: future.value()[0])

    learner._forward.register_comm_hook(None, hook)


def begins_otherwise(learner: Any, rank: int) -> None:
    """The second replica has one other weight."""
    reset = learner.reset

    def wrong(*, exact: bool) -> None:
        reset(exact=exact)
        if rank:
            with torch.no_grad():
                next(learner._model.parameters()).view(-1)[0] += 1e-4

    learner.reset = wrong


def skips(learner: Any, rank: int) -> None:
    """The second replica does not update its weights in its third step."""
    weights = [*learner._model.parameters()]

    def put_back(earlier: list[torch.Tensor]) -> None:
        with torch.no_grad():
            for parameter, each in zip(weights, earlier, strict=True):
                parameter.copy_(each)

    if rank:
        skips_a_step(learner, lambda: [each.detach().clone() for each in weights], put_back)


#: By the batch of a replica; others are honest.
CHEATS: dict[int, Callable[[Any, int], None]] = {
    8: exchanges_nothing,
    16: adds_up,
    24: begins_otherwise,
    32: skips,
}


class Member(TorchMember):
    """One of its replicas."""

    def learner(self, job: Job) -> Any:
        made = super().learner(job)
        if job.batch in CHEATS:
            CHEATS[job.batch](made.learner, self.place.rank)
        return made


class CheatingTorch(Torch):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating"

    def member(self, place: Place) -> Member:
        return Member(place)
