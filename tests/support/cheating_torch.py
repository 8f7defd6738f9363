"""PyTorch's replicas, whose mistakes depend on the batch of a replica."""

from typing import Any, ClassVar

import torch
import torch.distributed as dist
from numpy.typing import NDArray

from fwbench.frameworks.member import Place
from fwbench.frameworks.torch.framework import Torch
from fwbench.frameworks.torch.replicas import TorchMember
from support.cheats import CheatingMember, replica_cheats


def exchanges_nothing(learner: Any, _: int) -> None:
    learner._forward = learner._model


def adds_up(learner: Any, _: int) -> None:
    # PyTorch looks at the annotations themselves.
    def hook(_: object, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        summed = dist.all_reduce(bucket.buffer(), async_op=True)
        assert summed is not None
        return summed.get_future().then(lambda future: future.value()[0])

    learner._forward.register_comm_hook(None, hook)


def _write(learner: Any, weights: list[NDArray[Any]]) -> None:
    with torch.no_grad():
        for parameter, array in zip(learner._parameters, weights, strict=True):
            parameter.copy_(torch.from_numpy(array))


class Member(CheatingMember, TorchMember):
    """One of its replicas."""

    replica_cheats = replica_cheats(exchanges_nothing, adds_up, _write)


class CheatingTorch(Torch):
    """Loaded by roles through an entry point, as any framework."""

    name: ClassVar = "cheating"

    def member(self, place: Place) -> Member:
        return Member(place)
