"""A network whose layers are on several devices, in JAX: a compiled function for each of them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.jax.layers import Network
from fwbench.frameworks.jax.training import JaxLearner, Keep, State, cross_entropy
from fwbench.frameworks.learner import Job, Placed
from fwbench.workloads.objective import Batch


class DividedLearner(JaxLearner):
    """Parts of a network, each compiled for its device, between which results are put.

    A compiled function has its arguments on one device, or on all alike: so each part has its own,
    and JAX differentiates what calls them.

    Args:
        job: what to train, and how.
        devices: JAX's own objects.
        keep: called with results that the clock has to wait for.
    """

    executions = ("jit",)
    _states: list[State]

    def __init__(self, job: Job, devices: Sequence[Any], keep: Keep) -> None:
        self._devices = devices
        self._graphs = job.training.graph.divided(len(devices))
        networks = [Network(graph, job.dtype) for graph in self._graphs]
        self._parts = [jax.jit(network.train) for network in networks]
        self._answers = [jax.jit(network.answer) for network in networks]
        self._networks = networks
        self._loss = jax.jit(cross_entropy)
        super().__init__(job, devices[0], keep)
        self._updated = jax.jit(self._update_of, donate_argnums=0)

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step; the states before it are given up."""

        def loss_of(parameters: Sequence[Any]) -> Any:
            x, later = examples, []
            for part, own, state, device in zip(
                self._parts, parameters, self._states, self._devices, strict=True
            ):
                x, layers = part(own, state.layers, jax.device_put(x, device))
                later.append(layers)
            return self._loss(x, labels), later

        differentiate = jax.value_and_grad(loss_of, has_aux=True)
        (loss, later), gradients = differentiate([state.parameters for state in self._states])
        self._states = [*map(self._updated, self._states, later, gradients)]
        self._keep((loss, self._states))
        return loss

    def _update_of(self, state: State, layers: Any, gradients: Any) -> State:
        """The state of a part after a step."""
        steps = state.steps + 1
        decreases, moments = self._update.decrease(
            gradients, state.moments, state.learning_rate, steps
        )
        parameters = jax.tree.map(jnp.subtract, state.parameters, decreases)
        return State(parameters, layers, moments, steps, state.learning_rate)

    def reset(self, *, exact: bool) -> None:
        """States of the same shapes, so that compiled code stays; without dropout if exact."""
        self._states = self._placed_states(drops=not exact)

    def _placed_states(self, *, drops: bool) -> list[State]:
        training = self.job.training
        arrays = iter(training.initial())
        states = []
        for graph, network, device in zip(self._graphs, self._networks, self._devices, strict=True):
            parameters = [
                [jnp.array(array, self._dtype) for array in of_node]
                for of_node in itertools.islice(arrays, len(graph.nodes))
            ]
            state = State(
                parameters,
                network.initial_state(drops=drops),
                self._update.start(parameters),
                jnp.zeros((), jnp.int32),
                jnp.asarray(training.optimizer.learning_rate),
            )
            states.append(jax.device_put(state, device))
        return states

    def set_learning_rate(self, learning_rate: float) -> None:
        """A part of each state."""
        self._states = [
            state._replace(learning_rate=jax.device_put(jnp.asarray(learning_rate), device))
            for state, device in zip(self._states, self._devices, strict=True)
        ]

    def weights(self) -> Iterator[NDArray[Any]]:
        """All parameters."""
        return map(np.asarray, self._parameters)

    @property
    def _parameters(self) -> list[Any]:
        return jax.tree.leaves([state.parameters for state in self._states])

    def placement(self) -> Mapping[str, int]:
        """By the device of each array."""
        names = dict(zip(self._devices, self.job.devices, strict=True))
        numbers: Counter[str] = Counter()
        for array in self._parameters:
            (device,) = array.devices()
            numbers[names.get(device, str(device))] += array.size
        return numbers

    def place(self, batch: Batch) -> Placed:
        """Examples where the first layers are, and labels where the answers are."""
        examples, labels = batch
        return (
            jax.device_put(examples, self._devices[0]),
            jax.device_put(labels, self._devices[-1]),
        )

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """Part by part."""
        x, _ = self.place((examples, np.zeros(0, np.int32)))
        for answer, state, device in zip(self._answers, self._states, self._devices, strict=True):
            x = answer(state.parameters, state.layers, jax.device_put(x, device))
        return np.asarray(x, np.float64)

    def planned_bytes(self, *, training: bool) -> int | None:
        """Nobody plans for all devices."""
        return None
