"""Training in JAX: pure functions, ``jax.value_and_grad``, and a whole step compiled by ``jit``."""

import itertools
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from fwbench.frameworks.jax.device import EXECUTIONS, donated, planned, planned_bytes
from fwbench.frameworks.jax.layers import Network
from fwbench.frameworks.learner import EPSILON_AS_DEFINED, Job, Learner, Loader, Placed
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import SGD, Adam, Batch, Optimizer, RMSprop

#: Called with results that the clock has to wait for.
Keep = Callable[[Any], None]


class State(NamedTuple):
    """All that a step changes."""

    parameters: Sequence[Sequence[Any]]
    #: What each layer keeps.
    layers: Sequence[Sequence[Any]]
    #: What the optimiser keeps.
    moments: "Moments"
    steps: Any
    learning_rate: Any


class _Batches(Loader):
    """Batches gathered by NumPy, as JAX has no loader; ahead in threads where asked for."""

    def __init__(
        self, job: Job, batch: Batch, place: Callable[[Batch], Placed], keep: Keep
    ) -> None:
        self._arrays = batch
        self._place = place
        self._keep = keep
        self._batch = job.batch
        self._workers = job.workers
        self._chosen: NDArray[Any] = np.zeros((0, job.batch), np.int64)

    def set_order(self, order: NDArray[Any]) -> None:
        self._chosen = order.reshape(-1, self._batch)

    def __iter__(self) -> Iterator[Placed]:
        for batch in self._ahead() if self._workers else map(self._take, self._chosen):
            self._keep(batch)
            yield batch

    def _take(self, chosen: NDArray[Any]) -> Placed:
        examples, labels = self._arrays
        return self._place((examples[chosen], labels[chosen].ravel()))

    def _ahead(self) -> Iterator[Placed]:
        """With as many batches under way as there are threads."""
        under_way: deque[Future[Placed]] = deque()
        with ThreadPoolExecutor(self._workers) as pool:
            for chosen in self._chosen:
                under_way.append(pool.submit(self._take, chosen))
                if len(under_way) > self._workers:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()


class JaxLearner(Learner):
    """A network of pure functions, whose state goes from step to step."""

    executions = tuple(EXECUTIONS)
    epsilon_placement = EPSILON_AS_DEFINED
    _state: State

    def __init__(self, job: Job, device: Any, keep: Keep) -> None:
        super().__init__(job)
        self._device = device
        self._keep = keep
        self._dtype = "float64" if job.dtype == "float64" else "float32"
        more = {"recompute": job.recompute, "synchronized": job.synchronized}
        self._network = Network(job.training.graph, job.dtype, **more)
        self._update = update_of(job.training.optimizer)
        self._execute = EXECUTIONS[job.execution]
        self._step = self._execute(self._train, donate_argnums=donated(0))
        self._answer = jax.jit(self._network.answer)
        self._state = self._initial(drops=False)

    def _differentiated(self, parameters: Any, state: Any, examples: Any, labels: Any) -> Any:
        """((loss, state of the layers after it), gradients)."""

        def loss_of(parameters: Any) -> Any:
            logits, later = self._network.train(parameters, state, examples)
            return cross_entropy(logits, labels), later

        return jax.value_and_grad(loss_of, has_aux=True)(parameters)

    def _train(self, state: State, examples: Any, labels: Any) -> tuple[State, Any]:
        """The state after a step, and the loss before it."""
        (loss, layers), gradients = self._differentiated(
            state.parameters, state.layers, examples, labels
        )
        return self._updated(state, layers, gradients), loss

    def _updated(self, state: State, layers: Any, gradients: Any) -> State:
        steps = state.steps + 1
        decreases, moments = self._update.decrease(
            gradients, state.moments, state.learning_rate, steps
        )
        parameters = jax.tree.map(jnp.subtract, state.parameters, decreases)
        return State(parameters, layers, moments, steps, state.learning_rate)

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step, in one compiled function; the state before it is given up."""
        self._state, loss = self._step(self._state, examples, labels)
        # All results of a compiled function are there at the same time: the state with the loss.
        self._keep(loss)
        return loss

    def reset(self, *, exact: bool) -> None:
        """A state of the same shapes, so that compiled code stays; without dropout if exact."""
        state = self._initial(drops=not exact)
        moments = self.put(self._update.start(state.parameters))
        self._state = state._replace(moments=moments)

    def put(self, tree: Any) -> Any:
        """Arrays of the state where steps take them."""
        return jax.device_put(tree, self._device)

    def _initial(self, *, drops: bool) -> State:
        state = self._state_of(self._network, self.job.training.initial(), drops=drops)
        placed: State = self.put(state)
        return placed

    def _state_of(self, network: Network, weights: Iterable[Arrays], *, drops: bool) -> State:
        """The state of a network with these weights, without an optimiser's moments."""
        return State(
            [[jnp.array(array, self._dtype) for array in arrays] for arrays in weights],
            network.initial_state(drops=drops),
            (),
            jnp.zeros((), jnp.int32),
            jnp.asarray(self.job.training.optimizer.learning_rate),
        )

    def inference(self, examples: Any) -> Callable[[], Any]:
        """All of the network in one compiled function."""
        return self._bound(self._network.answer, examples)

    def forward_backward(self, examples: Any, labels: Any) -> Callable[[], Any]:
        """``jax.value_and_grad`` of the loss, all of it in one compiled function."""
        return self._bound(self._loss_and_gradients, examples, labels)

    def _loss_and_gradients(self, *arguments: Any) -> tuple[Any, list[Any]]:
        (loss, _), gradients = self._differentiated(*arguments)
        return loss, jax.tree.leaves(gradients)

    def _bound(self, function: Callable[..., Any], *batch: Any) -> Callable[[], Any]:
        """A function of parameters, state of the layers and a batch, with the initial ones."""
        executed, keep = self._execute(function), self._keep

        def call(*arguments: Any) -> Any:
            result = executed(*arguments)
            keep(result)
            return result

        self._state = self._initial(drops=False)
        arguments = (self._state.parameters, self._state.layers, *batch)
        return planned(partial(call, *arguments), executed, *arguments)

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        """The arrays unchanged: JAX has the layouts of the definitions."""
        return [array for arrays in of_nodes for array in arrays]

    def set_learning_rate(self, learning_rate: float) -> None:
        """A part of the state."""
        rate = self.put(jnp.asarray(learning_rate))
        self._state = self._state._replace(learning_rate=rate)

    def weights(self) -> Iterator[NDArray[Any]]:
        """All parameters."""
        return map(np.asarray, self._parameters)

    @property
    def _parameters(self) -> list[Any]:
        return jax.tree.leaves(self._state.parameters)

    def placement(self) -> Mapping[str, int]:
        """By the devices of each array."""
        numbers: Counter[str] = Counter()
        for array in self._parameters:
            for shard in array.addressable_shards:
                numbers[f"{shard.device.platform}:{shard.device.id}"] += shard.data.size
        return numbers

    def place(self, batch: Batch) -> Placed:
        """The batch by ``jax.device_put``."""
        examples, labels = jax.device_put(batch, self._device)
        return examples, labels

    def loader(self, batch: Batch, steps: int) -> Loader:
        """NumPy's indexing, batch by batch."""
        return _Batches(self.job, batch, self.place, self._keep)

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """The compiled answers in every execution: they are not timed."""
        x, _ = self.place((examples, np.zeros(0, np.int32)))
        answer = self._answer(self._state.parameters, self._state.layers, x)
        return np.asarray(answer, np.float64)

    def planned_bytes(self, *, training: bool) -> int | None:
        """Bytes planned for the compiled step, or for the compiled answers, on one device."""
        if self.job.execution != "jit" or len(self.job.devices) > 1:
            return None
        (batch,) = self.job.training.check_batches(self.job.batch, 1)
        examples, labels = self.place(batch)
        state = self._state
        if training:
            return planned_bytes(self._step, state, examples, labels)
        return planned_bytes(self._answer, state.parameters, state.layers, examples)


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean softmax cross-entropy, as in Optax."""
    of_labels = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -jnp.mean(of_labels)


#: Each like the parameters: what an optimiser keeps of earlier gradients.
Moments = tuple[Any, ...]


@dataclass(frozen=True)
class Update:
    """An optimiser's step."""

    #: How many it keeps.
    moments: int
    #: From the gradients, the moments, the learning rate and the number of the step, from 1, to
    #: what is subtracted from the parameters and the new moments.
    decrease: Callable[[Any, Moments, Any, Any], tuple[Any, Moments]]

    def start(self, parameters: Any) -> Moments:
        """The moments before the first step."""
        return tuple(tree.map(jnp.zeros_like, parameters) for _ in range(self.moments))


def update_of(optimizer: Optimizer) -> Update:
    """An optimiser's step, with its constants."""
    return _UPDATES[type(optimizer)](optimizer)


def _adam(adam: Adam) -> Update:
    """Kingma and Ba 2015, algorithm 1 in the order that the end of section 2 gives."""

    def decrease(gradients: Any, moments: Moments, rate: Any, step: Any) -> tuple[Any, Moments]:
        first = _average(adam.beta_1, moments[0], gradients)
        second = _average(adam.beta_2, moments[1], tree.map(jnp.square, gradients))
        corrected = rate * jnp.sqrt(_weight(adam.beta_2, step)) / _weight(adam.beta_1, step)
        decreases = tree.map(
            lambda mean, square: corrected * mean / (jnp.sqrt(square) + adam.epsilon), first, second
        )
        return decreases, (first, second)

    return Update(2, decrease)


def _rmsprop(rmsprop: RMSprop) -> Update:
    def decrease(gradients: Any, moments: Moments, rate: Any, _: Any) -> tuple[Any, Moments]:
        squares = _average(rmsprop.rho, moments[0], tree.map(jnp.square, gradients))
        decreases = tree.map(
            lambda gradient, square: rate * gradient / jnp.sqrt(square + rmsprop.epsilon),
            gradients,
            squares,
        )
        return decreases, (squares,)

    return Update(1, decrease)


def _sgd(sgd: SGD) -> Update:
    def decrease(gradients: Any, moments: Moments, rate: Any, _: Any) -> tuple[Any, Moments]:
        if not moments:
            return tree.map(lambda gradient: rate * gradient, gradients), ()
        velocities = tree.map(lambda v, gradient: sgd.momentum * v + gradient, *moments, gradients)
        return tree.map(lambda v: rate * v, velocities), (velocities,)

    return Update(1 if sgd.momentum else 0, decrease)


def _average(decay: float, averages: Any, values: Any) -> Any:
    return tree.map(lambda mean, value: decay * mean + (1.0 - decay) * value, averages, values)


def _weight(decay: float, step: Any) -> Any:
    """``1 - decay**step``: what a moving average's values weigh together."""
    return -jnp.expm1(step * math.log(decay))


_UPDATES: dict[type[Any], Callable[[Any], Update]] = {Adam: _adam, RMSprop: _rmsprop, SGD: _sgd}


class SplittingLearner(JaxLearner):
    """Parts of a batch on each device, and copies of the state: XLA adds the exchange."""

    executions = ("jit",)

    def __init__(self, job: Job, devices: Sequence[Any], keep: Keep) -> None:
        mesh = Mesh(np.asarray(devices), ("batch",))
        self._split = NamedSharding(mesh, PartitionSpec("batch"))
        super().__init__(job, NamedSharding(mesh, PartitionSpec()), keep)
        self._step = self._execute(
            self._train, donate_argnums=donated(0), out_shardings=self._device
        )

    def place(self, batch: Batch) -> Placed:
        """By ``jax.device_put`` with a ``NamedSharding``."""
        examples, labels = jax.device_put(batch, self._split)
        return examples, labels


class DividedLearner(JaxLearner):
    """Parts of a network, each compiled for its device, between which results are put.

    A compiled function has its arguments on one device, or on all alike: so each part has its own,
    and JAX differentiates what calls them.
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
        self._update_part = jax.jit(self._updated, donate_argnums=donated(0))

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step; the states before it are given up."""

        def loss_of(parameters: Sequence[Any]) -> Any:
            x, later = examples, []
            for part, weights, state, device in zip(
                self._parts, parameters, self._states, self._devices, strict=True
            ):
                x, layers = part(weights, state.layers, jax.device_put(x, device))
                later.append(layers)
            return self._loss(x, labels), later

        differentiate = jax.value_and_grad(loss_of, has_aux=True)
        (loss, later), gradients = differentiate([state.parameters for state in self._states])
        self._states = [*map(self._update_part, self._states, later, gradients)]
        self._keep((loss, self._states))
        return loss

    def reset(self, *, exact: bool) -> None:
        """States of the same shapes, so that compiled code stays; without dropout if exact."""
        weights = iter(self.job.training.initial())
        self._states = []
        for graph, network, device in zip(self._graphs, self._networks, self._devices, strict=True):
            of_part = itertools.islice(weights, len(graph.nodes))
            state = self._state_of(network, of_part, drops=not exact)
            state = state._replace(moments=self._update.start(state.parameters))
            self._states.append(jax.device_put(state, device))

    def set_learning_rate(self, learning_rate: float) -> None:
        """A part of each state."""
        self._states = [
            state._replace(learning_rate=jax.device_put(jnp.asarray(learning_rate), device))
            for state, device in zip(self._states, self._devices, strict=True)
        ]

    @property
    def _parameters(self) -> list[Any]:
        return jax.tree.leaves([state.parameters for state in self._states])

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
