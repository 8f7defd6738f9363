"""Models of users in JAX: a function and its parameters."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.jax.device import donated, planned
from fwbench.frameworks.jax.training import Keep, update_of
from fwbench.frameworks.learner import Job
from fwbench.frameworks.models import ModelLearner, arrays_of

#: A function and its parameters.
_PARTS = 2


def _cross_entropy(result: Any, target: Any) -> Any:
    logits = jax.nn.log_softmax(result.reshape(-1, result.shape[-1]))
    return -jnp.mean(jnp.take_along_axis(logits, target.reshape(-1, 1), axis=1))


_LOSSES: Mapping[bool, Callable[..., Any]] = {
    True: _cross_entropy,
    False: lambda result, target: jnp.mean(jnp.square(result - target.reshape(result.shape))),
}


class JaxModelLearner(ModelLearner):
    """A function of parameters and inputs, whose parameters go from step to step."""

    framework = "jax"
    takes = "a tuple of a function and its parameters: function(parameters, *inputs)"
    remedy = "make arrays in the dtype of the inputs (`jnp.zeros(shape, x.dtype)`)"
    executions = ("jit",)
    plain = "jit"

    def __init__(self, job: Job, device: Any, keep: Keep) -> None:
        self._device = device
        self._keep = keep
        super().__init__(job)

    def _build(self) -> None:
        self._dtype = self.job.dtype
        self._function, parameters = self.built(jax)
        leaves, self._structure = jax.tree_util.tree_flatten_with_path(parameters)
        self._names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
        self.check_precision(np.asarray(leaf).dtype for _, leaf in leaves)
        self._parameters = self._as_tree(np.asarray(leaf) for _, leaf in leaves)
        self._update = update_of(self.job.training.optimizer)
        self._trained: Any = ()
        self._step = jax.jit(self._train, donate_argnums=donated(0))
        self._answers = jax.jit(self._results)

    def _is_model(self, given: Any) -> bool:
        return isinstance(given, tuple) and len(given) == _PARTS and callable(given[0])

    def _as_tree(self, values: Iterable[NDArray[Any]]) -> Any:
        """Parameters of the model's form, on the device."""
        return jax.tree.unflatten(self._structure, [self.placed(array) for array in values])

    def _results(self, parameters: Any, *inputs: Any) -> Any:
        return arrays_of(self._function(parameters, *inputs))

    def _train(self, state: Any, inputs: Any, targets: Any) -> Any:
        """The state after a step, and the loss before it."""
        parameters, moments, steps, rate = state

        def loss_of(parameters: Any) -> Any:
            return self.loss_of(_LOSSES, self._function(parameters, *inputs), targets)

        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        slopes = jax.tree.map(_parts, jax.tree.map(jnp.conj, gradients))  # by JAX's convention
        decreases, moments = self._update.decrease(slopes, moments, rate, steps + 1)
        return (jax.tree.map(_decreased, parameters, decreases), moments, steps + 1, rate), loss

    def state(self) -> dict[str, NDArray[Any]]:
        """The parameters, by their places: ``layers.0.kernel``."""
        leaves = jax.tree.leaves(self._parameters)
        return dict(zip(self._names, map(self.on_host, leaves), strict=True))

    def load(self, values: Iterable[NDArray[Any]]) -> None:
        """New arrays."""
        self._parameters = self._as_tree(values)

    def trained_names(self) -> list[str]:
        """All."""
        return self._names

    def _answer(self, inputs: Sequence[Any]) -> Any:
        return self._answers(self._parameters, *inputs)

    def placed(self, array: NDArray[Any]) -> Any:
        """``jnp.array``, which copies."""
        by_kind = {"f": self._dtype, "c": "complex128" if self._dtype == "float64" else "complex64"}
        dtype = by_kind.get(array.dtype.kind)
        return jax.device_put(jnp.array(array, dtype), self._device)

    def on_host(self, array: Any) -> NDArray[Any]:
        """By way of float32 for bfloat16."""
        return np.asarray(array.astype("float32") if array.dtype == jnp.bfloat16 else array)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """All of the model in one compiled function."""
        self.load(self.initial.values())
        answers, keep = self._answers, self._keep

        def call(*arguments: Any) -> Any:
            results = answers(*arguments)
            keep(results)
            return results

        arguments = (self._parameters, *examples)
        return planned(partial(call, *arguments), answers, *arguments)

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step, in one compiled function; the state before it is given up."""
        self._trained, loss = self._step(self._trained, examples, labels)
        self._parameters = self._trained[0]
        self._keep(loss)
        return loss

    def reset(self, *, exact: bool) -> None:
        """A state of the same shapes, so that compiled code stays."""
        self.check_trained()
        self.load(self.initial.values())
        rate = jnp.asarray(self.job.training.optimizer.learning_rate)
        moments = self._update.start(jax.tree.map(_parts, self._parameters))
        state = (self._parameters, moments, jnp.zeros((), int), rate)
        self._trained = jax.device_put(state, self._device)

    def set_learning_rate(self, learning_rate: float) -> None:
        """A part of the state."""
        rate = jax.device_put(jnp.asarray(learning_rate), self._device)
        self._trained = (*self._trained[:-1], rate)

    def flops(self, batch: Any, *, training: bool) -> float | None:
        """Operations by XLA's cost analysis."""
        inputs, targets = batch
        if training:
            lowered = self._step.lower(self._trained, inputs, targets)
        else:
            lowered = self._answers.lower(self._parameters, *inputs)
        counted = lowered.compile().cost_analysis() or {}
        return float(counted.get("flops", 0.0)) or None


def _parts(array: Any) -> Any:
    """An array as optimizers take it: a complex one as its real and its imaginary part."""
    return (array.real, array.imag) if jnp.iscomplexobj(array) else array


def _decreased(parameter: Any, decrease: Any) -> Any:
    return parameter - (jax.lax.complex(*decrease) if isinstance(decrease, tuple) else decrease)
