"""Training in JAX: pure functions, ``jax.value_and_grad``, and a whole step compiled by ``jit``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.jax import planning
from fwbench.frameworks.jax.layers import Network
from fwbench.frameworks.jax.updates import Moments, update_of
from fwbench.frameworks.learner import EPSILON_AS_DEFINED, Job, Learner, Loader, Placed
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import Batch

#: Called with results that the clock has to wait for.
Keep = Callable[[Any], None]

#: What is made of a function, which may overwrite the arguments that ``donate_argnums`` names.
#: Loaders, which call none, are ``eager``.
_EXECUTIONS: dict[str, Callable[..., Any]] = {
    "eager": lambda function, **_: function,
    "jit": jax.jit,
}


class State(NamedTuple):
    """All that a step changes.

    Attributes:
        parameters: of each layer.
        layers: what each layer keeps.
        moments: what the optimiser keeps.
        steps: how many there were.
        learning_rate: of the steps to come.
    """

    parameters: Sequence[Sequence[Any]]
    layers: Sequence[Sequence[Any]]
    moments: Moments
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
    """A network of pure functions, whose state goes from step to step.

    Args:
        job: what to train, and how.
        device: JAX's own object.
        keep: called with results that the clock has to wait for.
    """

    executions = tuple(_EXECUTIONS)
    epsilon_placement = EPSILON_AS_DEFINED
    _state: State

    def __init__(self, job: Job, device: Any, keep: Keep) -> None:
        super().__init__(job)
        self._device = device
        self._keep = keep
        self._dtype = "float64" if job.dtype == "float64" else "float32"
        self._network = Network(job.training.graph, job.dtype, recompute=job.recompute)
        self._update = update_of(job.training.optimizer)
        self._execute = _EXECUTIONS[job.execution]
        self._step = self._execute(self._train, donate_argnums=0)
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
        steps = state.steps + 1
        decreases, moments = self._update.decrease(
            gradients, state.moments, state.learning_rate, steps
        )
        parameters = jax.tree.map(jnp.subtract, state.parameters, decreases)
        return State(parameters, layers, moments, steps, state.learning_rate), loss

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
        """Of a network that nothing is trained with."""
        training = self.job.training
        parameters = [
            [jnp.array(array, self._dtype) for array in arrays] for arrays in training.initial()
        ]
        state = State(
            parameters,
            self._network.initial_state(drops=drops),
            (),
            jnp.zeros((), jnp.int32),
            jnp.asarray(training.optimizer.learning_rate),
        )
        placed: State = self.put(state)
        return placed

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
        return planning.planned(partial(call, *arguments), executed, *arguments)

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        """As they are: JAX has the layouts of the definitions."""
        return [array for arrays in of_nodes for array in arrays]

    def set_learning_rate(self, learning_rate: float) -> None:
        """A part of the state."""
        rate = self.put(jnp.asarray(learning_rate))
        self._state = self._state._replace(learning_rate=rate)

    def weights(self) -> Iterator[NDArray[Any]]:
        """All parameters."""
        return map(np.asarray, jax.tree.leaves(self._state.parameters))

    def place(self, batch: Batch) -> Placed:
        """The batch by ``jax.device_put``."""
        examples, labels = jax.device_put(batch, self._device)
        return examples, labels

    def loader(self, batch: Batch, steps: int) -> Loader:
        """NumPy's indexing, batch by batch."""
        return _Batches(self.job, batch, self.place, self._keep)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The loss of each step as NumPy's number."""
        return np.asarray([float(loss) for loss in losses])

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """Compiled, whatever the execution: it is not timed."""
        x, _ = self.place((examples, np.zeros(0, np.int32)))
        answer = self._answer(self._state.parameters, self._state.layers, x)
        return np.asarray(answer, np.float64)

    def planned_bytes(self, *, training: bool) -> int | None:
        """Of the compiled step, or of the compiled answers."""
        if self.job.execution != "jit":
            return None
        (batch,) = self.job.training.check_batches(self.job.batch, 1)
        examples, labels = self.place(batch)
        state = self._state
        if training:
            return planning.planned_bytes(self._step, state, examples, labels)
        return planning.planned_bytes(self._answer, state.parameters, state.layers, examples)


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean softmax cross-entropy, as in Optax."""
    of_labels = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
    return -jnp.mean(of_labels)
