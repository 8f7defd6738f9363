"""Several processes in PyTorch: torch.distributed over gloo, and DistributedDataParallel."""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import psutil
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch.nn.parallel import DistributedDataParallel

from fwbench.frameworks.learner import Job
from fwbench.frameworks.member import Member, Place, ReplicatedLearner
from fwbench.frameworks.torch.training import TorchLearner

#: By their names from PyTorch 2.13 on, or by those before, which warn since.
_REDUCE_SCATTER = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_ALL_GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


class TorchMember(Member):
    """A rank of a process group whose store is the first one's."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._store: Any = None
        self._port = 0
        if place.rank == 0:
            # A listener of our own: PyTorch's would listen on every interface.
            listener = socket.create_server((place.host, 0))
            _, self._port = listener.getsockname()
            self._store = dist.TCPStore(
                place.host,
                self._port,
                place.replicas,
                is_master=True,
                wait_for_workers=False,
                master_listen_fd=listener.detach(),
            )

    @property
    def address(self) -> str:
        """Host and port of the store."""
        return f"{self.place.host}:{self._port}"

    def join(self, addresses: Sequence[str]) -> None:
        """``init_process_group``, on the interface of this host's address alone."""
        host, _, port = addresses[0].rpartition(":")
        place = self.place
        store = self._store or dist.TCPStore(host, int(port), place.replicas, is_master=False)
        os.environ["GLOO_SOCKET_IFNAME"] = _interface(place.host)
        dist.init_process_group("gloo", store=store, rank=place.rank, world_size=place.replicas)
        self.barrier()

    def barrier(self) -> None:
        """``torch.distributed.barrier``."""
        dist.barrier()

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        """``torch.distributed.all_reduce`` of a copy, as it works in place."""
        return partial(_all_reduced, torch.empty_like(source), source)

    def reduce_scatter(self, source: Any) -> Callable[[], Any]:
        """``torch.distributed.reduce_scatter_single``."""
        part = source.new_empty(len(source) // self.place.replicas)
        return partial(_into, _REDUCE_SCATTER, part, source)

    def all_gather(self, source: Any) -> Callable[[], Any]:
        """``torch.distributed.all_gather_single``."""
        whole = source.new_empty(len(source) * self.place.replicas)
        return partial(_into, _ALL_GATHER, whole, source)

    def broadcast(self, source: Any) -> Callable[[int], Any]:
        """``torch.distributed.broadcast``, which only reads the array of its source."""
        return partial(_broadcast, self.place.rank, torch.empty_like(source), source)

    def learner(self, job: Job) -> ReplicatedLearner:
        """A model within ``DistributedDataParallel``, which averages gradients."""
        return _Replicated(_Learner(job))

    def close(self) -> None:
        """``destroy_process_group``."""
        dist.destroy_process_group()


def _all_reduced(buffer: Any, source: Any) -> Any:
    buffer.copy_(source)
    dist.all_reduce(buffer)
    return buffer


def _into(exchange: Callable[[Any, Any], Any], result: Any, source: Any) -> Any:
    exchange(result, source)
    return result


def _broadcast(rank: int, buffer: Any, source: Any, root: int) -> Any:
    sent = source if rank == root else buffer  # the source's own is only read
    dist.broadcast(sent, root)
    return sent


def _interface(host: str) -> str:
    """The network interface that has an address."""
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address == host for address in addresses):
            return name
    raise OSError(f"no network interface has the address {host}")


class _Learner(TorchLearner):
    """The usual five lines, with a model that exchanges gradients in its backward pass."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._forward = DistributedDataParallel(self._model)

    def grads(self) -> list[NDArray[Any]]:
        """The gradients that the latest backward pass has left, averaged."""
        grads = (parameter.grad for parameter in self._parameters)
        return [grad.to_dense().cpu().numpy() for grad in grads]

    def no_sync(self) -> AbstractContextManager[Any]:
        """``DistributedDataParallel.no_sync``."""
        context: AbstractContextManager[Any] = self._forward.no_sync()
        return context


class _Replicated(ReplicatedLearner):
    def gradients(self) -> Sequence[NDArray[Any]]:
        grads: Sequence[NDArray[Any]] = self.learner.grads()
        return grads

    def without_exchange(self) -> AbstractContextManager[Any]:
        context: AbstractContextManager[Any] = self.learner.no_sync()
        return context
