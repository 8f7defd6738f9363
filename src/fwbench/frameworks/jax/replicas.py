"""Several processes in JAX: ``jax.distributed``, whose collectives on the CPU are gloo's."""

import socket
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax._src import distributed, xla_bridge
from jax.extend.backend import clear_backends, register_backend_factory
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax
from numpy.typing import NDArray

from fwbench.frameworks.jax.device import donated
from fwbench.frameworks.jax.layers import AXIS
from fwbench.frameworks.jax.training import JaxLearner, Keep, State
from fwbench.frameworks.learner import Job, Placed
from fwbench.frameworks.member import (
    Member,
    Place,
    ReplicatedLearner,
    TracedLearner,
    address_of,
    reserved,
)
from fwbench.workloads.objective import Batch

_SPLIT = PartitionSpec(AXIS)
_SAME = PartitionSpec()


class JaxMember(Member):
    """A process of ``jax.distributed``, with one device in a mesh of all of them."""

    def __init__(self, place: Place, keep: Keep) -> None:
        super().__init__(place)
        self._keep = keep
        self._keeper: socket.socket | None = None
        if place.rank == 0:
            self._keeper = reserved(place.host)  # for gRPC

    @property
    def address(self) -> str:
        """Host and port of the coordinator, which the first process has; others need nothing."""
        return "" if self._keeper is None else address_of(self._keeper)

    def join(self, addresses: Sequence[str]) -> None:
        """``jax.distributed.initialize``, and a device that knows of those of the others.

        JAX connects processes before there are devices. Counting its threads has made some, which
        are given up here: nothing is on them yet.
        """
        clear_backends()
        register_backend_factory(
            "cpu", partial(_cpu_client, self.place.host), priority=0, fail_quietly=False
        )
        jax.distributed.initialize(
            addresses[0],
            self.place.replicas,
            self.place.rank,
            cluster_detection_method="deactivate",
            coordinator_bind_address=addresses[0],
        )
        if self._keeper is not None:
            self._keeper.close()
        self._mesh = Mesh(np.asarray(jax.devices("cpu")), (AXIS,))
        (self._device,) = self._mesh.local_devices
        self._ready = self.all_reduce(jax.device_put(np.ones(1, np.float32), self._device))
        self.barrier()

    def barrier(self) -> None:
        """A sum of one number, complete when all replicas have called."""
        self._ready()

    def all_reduce(self, source: Any) -> Callable[[], Any]:
        """``lax.psum`` within ``jax.shard_map``, compiled."""
        return self._exchange(partial(lax.psum, axis_name=AXIS), source)

    def reduce_scatter(self, source: Any) -> Callable[[], Any]:
        """``lax.psum_scatter``, likewise."""
        return self._exchange(partial(lax.psum_scatter, axis_name=AXIS, tiled=True), source)

    def all_gather(self, source: Any) -> Callable[[], Any]:
        """``lax.all_gather``, likewise."""
        return self._exchange(partial(lax.all_gather, axis_name=AXIS, tiled=True), source)

    def _exchange(self, collective: Callable[[Any], Any], source: Any) -> Callable[[], Any]:
        # What comes of it counts as split, so that each replica looks at its own.
        everywhere = jax.jit(
            jax.shard_map(collective, mesh=self._mesh, in_specs=_SPLIT, out_specs=_SPLIT)
        )
        return partial(_own_part, everywhere, _global(self._mesh, _SPLIT, source))

    def learner(self, job: Job) -> ReplicatedLearner:
        """A model whose state is on all devices of the mesh."""
        return _Replicated(ReplicatedJaxLearner(job, self._mesh, self._keep))

    def close(self) -> None:
        """``jax.distributed.shutdown``."""
        jax.distributed.shutdown()


def _cpu_client(host: str) -> Any:
    """JAX's usual client of CPUs, whose gloo is at an address of its own.

    JAX has no public way to say the address, and then takes that of the machine's name: often
    127.0.0.1 or 127.0.1.1, which do not reach this process from a network namespace or another
    machine, and otherwise one that may be outside of loopback.
    """
    gloo = _jax.make_gloo_tcp_collectives(
        distributed_client=distributed.global_state.client, hostname=host
    )
    return xla_bridge.make_cpu_client(gloo)


def _own_part(everywhere: Callable[[Any], Any], values: Any) -> Any:
    return everywhere(values).addressable_data(0).block_until_ready()


def _global(mesh: Mesh, spec: PartitionSpec, local: Any) -> Any:
    """The array of all devices of which this process has a part, or one of equal copies."""
    shape = local.shape
    if spec == _SPLIT:
        shape = (mesh.size * shape[0], *shape[1:])
    return jax.make_array_from_single_device_arrays(shape, NamedSharding(mesh, spec), [local])


class ReplicatedJaxLearner(JaxLearner):
    """The usual step in ``jax.shard_map``: on each device a share of the batch."""

    executions = ("jit",)

    def __init__(self, job: Job, mesh: Mesh, keep: Keep) -> None:
        self._mesh = mesh
        (device,) = mesh.local_devices
        super().__init__(job, device, keep)
        self.build()

    def build(self) -> None:
        """Compile the step of all replicas."""
        # Unchecked: JAX would add up the gradients of what is the same everywhere by itself, and
        # this step asks for their mean.
        shared = jax.shard_map(
            self._share,
            mesh=self._mesh,
            in_specs=(_SAME, _SPLIT, _SPLIT),
            out_specs=(_SAME, _SPLIT),
            check_vma=False,
        )
        self._step = jax.jit(shared, donate_argnums=donated(0))

    def _share(self, state: State, examples: Any, labels: Any) -> tuple[State, Any]:
        """The state after a step, and its loss: a part of an array."""
        later, loss = self._train(state, examples, labels)
        return later, loss[None]

    def _differentiated(self, parameters: Any, state: Any, examples: Any, labels: Any) -> Any:
        """With the mean gradients of all replicas."""
        loss, gradients = super()._differentiated(parameters, state, examples, labels)
        return loss, self.exchanged(gradients)

    def exchanged(self, gradients: Any) -> Any:
        """The mean over all replicas."""
        return lax.pmean(gradients, AXIS)

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of this replica's share; the state before it is given up."""
        self._state, losses = self._step(self._state, examples, labels)
        loss = losses.addressable_data(0)
        self._keep(loss)
        return loss

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The loss of each step as NumPy's number."""
        return np.asarray([loss.item() for loss in losses])

    def put(self, tree: Any) -> Any:
        """Copies of which every device has one; what was made of such copies is there already."""
        return jax.tree.map(self._copied, tree)

    def _copied(self, array: Any) -> Any:
        if not array.is_fully_addressable:
            return array
        return _global(self._mesh, _SAME, super().put(array))

    def place(self, batch: Batch) -> Placed:
        """This replica's share of what all devices have."""
        examples, labels = jax.tree.map(partial(_global, self._mesh, _SPLIT), super().place(batch))
        return examples, labels

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """By this process' copy alone."""
        arrays = self._state.parameters, self._state.layers
        local = jax.tree.map(lambda array: array.addressable_data(0), arrays)
        x, _ = super().place((examples, np.zeros(0, np.int32)))
        return np.asarray(self._answer(*local, x), np.float64)

    @property
    def moments(self) -> Any:
        """The first moments that the optimiser keeps, like the parameters."""
        return self._state.moments[0]


class _Replicated(TracedLearner):
    def state(self) -> Sequence[NDArray[Any]]:
        """The first part of what the optimiser keeps."""
        return [*map(np.asarray, jax.tree.leaves(self.learner.moments))]
