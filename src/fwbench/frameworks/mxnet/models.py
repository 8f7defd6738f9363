"""Models of users in MXNet: a Gluon block."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from numpy.typing import NDArray

from fwbench.frameworks.learner import Dropouts, Job
from fwbench.frameworks.models import SEED, ModelLearner, arrays_of, convert_attributes
from fwbench.frameworks.mxnet import openmp
from fwbench.frameworks.mxnet.training import new_optimizer

#: The executions, each with what it does to a block.
_EXECUTIONS: dict[str, Callable[[Any], None]] = {
    "eager": lambda block: block.hybridize(False),
    "hybridize": lambda block: block.hybridize(static_alloc=True, static_shape=True),
}


def _cross_entropy(result: Any, target: Any) -> Any:
    logits = result.reshape((-1, result.shape[-1]))
    return gluon.loss.SoftmaxCrossEntropyLoss()(logits, target.reshape((-1,))).mean()


_LOSSES: Mapping[bool, Callable[..., Any]] = {
    True: _cross_entropy,
    False: lambda result, target: (result - target.reshape(result.shape)).square().mean(),
}


class MXNetModelLearner(ModelLearner):
    """A Gluon block that is trained by ``autograd`` and a ``Trainer``."""

    framework = "mxnet"
    takes = "a Gluon block"
    remedy = (
        "make arrays in the dtype of the inputs (`mx.nd.zeros(shape, dtype=x.dtype)`), and "
        "constants by `params.get_constant`"
    )
    executions = tuple(_EXECUTIONS)

    def __init__(self, job: Job, context: Any) -> None:
        self._context = context
        super().__init__(job)

    def _build(self) -> None:
        mx.random.seed(SEED)
        self._net = self.built(mx)
        if self.job.execution == "eager" and not self.job.as_reference:
            for block in _blocks(self._net):
                if isinstance(block, gluon.SymbolBlock):  # which MXNet calls as a graph
                    self.refuse_compiled(block, ["hybridize"])
        with warnings.catch_warnings(action="ignore"):  # of what the user has initialised
            self._net.initialize(ctx=self._context)
        self.check_precision(np.dtype(each.dtype).name for each in self._parameters.values())
        self._net.cast(self.job.dtype)
        if self.job.dtype == "float64":
            convert_attributes(_blocks(self._net), mx.nd.NDArray, _widened)
        self._dropouts = Dropouts(_blocks(self._net))
        self._compile()

    def _compile(self) -> None:
        _EXECUTIONS[self.job.execution](self._net)

    def _is_model(self, given: Any) -> bool:
        return isinstance(given, gluon.Block)

    @property
    def _parameters(self) -> dict[str, Any]:
        named: dict[str, Any] = self._net._collect_params_with_prefix()  # noqa: SLF001 (names alike)
        return named

    def state(self) -> dict[str, NDArray[Any]]:
        """By the names that ``save_parameters`` gives them."""
        return {
            name: openmp.copied(array.data().asnumpy) for name, array in self._parameters.items()
        }

    def load(self, values: Iterable[NDArray[Any]]) -> None:
        """In place, so that cached operators stay."""
        for parameter, array in zip(self._parameters.values(), values, strict=True):
            if not isinstance(parameter, gluon.Constant):
                parameter.set_data(
                    openmp.copied(mx.nd.array, array, ctx=self._context, dtype=parameter.dtype)
                )

    def trained_names(self) -> list[str]:
        """The parameters that have a gradient."""
        return [name for name, array in self._parameters.items() if array.grad_req != "null"]

    def _answer(self, inputs: Sequence[Any]) -> Any:
        answered = self._net(*inputs)
        mx.nd.waitall()  # errors of the work appear there
        return answered

    def placed(self, array: NDArray[Any]) -> Any:
        """``mx.nd.array``, which copies."""
        dtype = self.job.dtype if array.dtype.kind == "f" else array.dtype
        return openmp.copied(mx.nd.array, array, ctx=self._context, dtype=dtype)

    def on_host(self, array: Any) -> NDArray[Any]:
        """By ``asnumpy``."""
        values: NDArray[Any] = openmp.copied(array.asnumpy)
        return values

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The block outside ``record``."""
        self.load(self.initial.values())
        return partial(self._answered, *examples)

    def _answered(self, *inputs: Any) -> Any:
        return arrays_of(self._net(*inputs))

    def step(self, examples: Any, labels: Any) -> Any:
        """``record``, ``backward`` and the trainer's step; the loss is a mean already."""
        with autograd.record():
            loss = self.loss_of(_LOSSES, self._net(*examples), labels)
        loss.backward()
        self._trainer.step(1)
        return loss

    def reset(self, *, exact: bool) -> None:
        """Weights in place; a new trainer."""
        self.check_trained()
        self.load(self.initial.values())
        if self._dropouts.switch(on=not exact):
            self._compile()
        mx.random.seed(SEED)
        self._trainer = gluon.Trainer(
            self._net.collect_params(), new_optimizer(self.model.optimizer)
        )

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate of the trainer."""
        self._trainer.set_learning_rate(learning_rate)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The loss of each step as NumPy's number."""
        return np.asarray([float(loss.asscalar()) for loss in losses])


def _widened(array: Any) -> Any:
    return array.astype("float64") if array.dtype == np.float32 else array


def _blocks(block: Any) -> Iterator[Any]:
    yield block
    for child in block._children.values():  # noqa: SLF001 (no other way)
        yield from _blocks(child)
