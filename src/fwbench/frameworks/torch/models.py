"""Models of users in PyTorch: an ``nn.Module``, or one that another package knows by a name."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from fwbench.errors import DeclarationError, some
from fwbench.frameworks.learner import Dropouts
from fwbench.frameworks.models import (
    SEED,
    ModelLearner,
    Results,
    arrays_of,
    convert_attributes,
    text_of,
)
from fwbench.frameworks.torch import training
from fwbench.frameworks.torch.kernels import IMAGE_AXES, USERS_IMAGES


def _of_torchvision(name: str) -> nn.Module:
    """Without weights, also of a backbone, which torchvision would download."""
    models = import_module("torchvision.models")
    taken = inspect.signature(models.get_model_builder(name)).parameters
    without = {key: None for key in ("weights", "weights_backbone") if key in taken}
    model: nn.Module = models.get_model(name, **without)
    return model


def _of_transformers(name: str) -> nn.Module:
    """By a configuration that is on this machine, with weights that are drawn."""
    transformers = import_module("transformers")
    config = transformers.AutoConfig.from_pretrained(name, local_files_only=True)
    config.use_cache = False  # which would be among the results
    model: nn.Module = transformers.AutoModel.from_config(config)
    return model


_NAMED: Mapping[str, Callable[[str], nn.Module]] = {
    "torchvision": _of_torchvision,
    "transformers": _of_transformers,
}


_LOSSES: Mapping[bool, Callable[..., Any]] = {
    True: lambda y, target: nn.functional.cross_entropy(y.flatten(0, -2), target.flatten()),
    False: lambda result, target: nn.functional.mse_loss(result, target.reshape(result.shape)),
}


class _Counting(TorchDispatchMode):  # type: ignore[misc]
    """Counts the elements of what operators return, where they return new tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = [0]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if all(returned.alias_info is None for returned in func._schema.returns):  # noqa: SLF001
            tensors = (x for x in arrays_of(result) if isinstance(x, torch.Tensor))
            self.sizes += [tensor.numel() for tensor in tensors]
        return result


#: Of a dtype narrower than float64, the wide one.
_WIDE = {torch.float32: torch.float64, torch.complex64: torch.complex128}


def _widened(result: Any) -> Any:
    """A tensor in float64 or complex128, if it is one of half of these bits."""
    is_narrow = isinstance(result, torch.Tensor) and result.dtype in _WIDE
    return result.to(_WIDE[result.dtype]) if is_narrow else result


class _Widening(TorchFunctionMode):  # type: ignore[misc]
    """Widens what is made of no tensors, such as zeros.

    With float64 as the default dtype, random numbers would be others than in float32.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_made = not any(isinstance(x, torch.Tensor) for x in arrays_of([args, kwargs]))
        return _widened(result) if is_made else result


def _is_sparse(module: nn.Module) -> bool:
    """True if gradients hold only the rows that occurred."""
    return isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse


def _compiled_part(model: nn.Module) -> nn.Module | None:
    """A module that is compiled: a part by ``torch.compile``, or the whole by TorchScript."""
    if isinstance(model, torch.jit.ScriptModule):
        return model
    for module in model.modules():
        is_compiled = getattr(module, "_compiled_call_impl", None) is not None
        if is_compiled or hasattr(module.forward, "_torchdynamo_orig_callable"):
            return module
    return None


class TorchModelLearner(ModelLearner):
    """An ``nn.Module`` that is trained by ``torch.optim``."""

    framework = "torch"
    takes = "an nn.Module"
    remedy = (
        "make tensors in the dtype of the inputs (`x.new_zeros(...)`, or `dtype=x.dtype`), and "
        "register constants as buffers"
    )
    executions = tuple(training.EXECUTIONS)

    def _build(self) -> None:
        job = self.job
        self._device = training.device_of(job)
        self._dtype = training.parameters_dtype(job)
        torch.manual_seed(SEED)
        built = self.built(torch, _NAMED)
        if (compiled := _compiled_part(built)) is not None:
            self.refuse_compiled(compiled, ["compile"])
        self.check_precision(parameter.dtype for parameter in built.parameters())
        self._module = self._in_dtype(built)
        self._forward = training.EXECUTIONS[job.execution](self._module)
        self._dropouts = Dropouts(self._module.modules())
        self._precision = training.precision_of(job)

    def _in_dtype(self, module: nn.Module) -> nn.Module:
        """A module in the dtype of the job; what is complex stays complex."""
        is_wide = self._dtype is torch.float64
        module = module.to(device=self._device)
        if USERS_IMAGES is not torch.preserve_format:  # which lazy parameters refuse, as any
            module = module.to(memory_format=USERS_IMAGES)
        module = module.double() if is_wide else module.float()
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_complex():
                tensor.data = tensor.data.to(self._dtype.to_complex())
        if is_wide:
            convert_attributes(module.modules(), torch.Tensor, _widened)
        return module

    def _call_first(self) -> None:
        """A second time where it needs tensors in float64 that it makes itself."""
        try:
            super()._call_first()
        except DeclarationError:
            if not self.job.as_reference:
                raise
            self._precision = _Widening
            super()._call_first()

    def _is_model(self, given: Any) -> bool:
        return isinstance(given, nn.Module)

    def state(self) -> dict[str, NDArray[Any]]:
        """``state_dict``.

        Raises:
            DeclarationError: something else than a tensor is in it.
        """
        state = self._module.state_dict()
        other = [f"{name} ({x})" for name, x in state.items() if not isinstance(x, torch.Tensor)]
        if other:
            raise DeclarationError(
                f"{self.model.name} in torch has in its state what is no tensor, as quantized "
                f"modules have, and cannot be set back to it: {some(other, 1, '; ')}; give a model "
                "of floating-point numbers, or measure this one as a function (fwbench.function)"
            )
        return {name: np.array(x.cpu().numpy()) for name, x in state.items()}

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def load(self, values: Iterable[NDArray[Any]]) -> None:
        """In place, so that compiled code stays."""
        for tensor, array in zip(self._module.state_dict().values(), values, strict=True):
            tensor.copy_(torch.from_numpy(np.asarray(array)))

    def trained_names(self) -> list[str]:
        """The parameters that require a gradient."""
        named = self._module.named_parameters()
        return [name for name, parameter in named if parameter.requires_grad]

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _answer(self, inputs: Sequence[Any]) -> Any:
        self._module.eval()
        with self._precision():
            return self._module(*inputs)

    def placed(self, array: NDArray[Any]) -> Any:
        """``torch.tensor``, which copies."""
        tensor = torch.tensor(array, device=self._device)
        if tensor.ndim == IMAGE_AXES:
            tensor = tensor.to(memory_format=USERS_IMAGES)
        return tensor.to(self._dtype) if tensor.is_floating_point() else tensor

    def on_host(self, array: Any) -> NDArray[Any]:
        """By way of the host, and of float32 for bfloat16."""
        array = array.detach().cpu()
        values: NDArray[Any] = (array.float() if array.dtype is torch.bfloat16 else array).numpy()
        return values

    def inference(self, examples: Any) -> Callable[[], Any]:
        """``eval`` and ``inference_mode``."""
        self.load(self.initial.values())
        self._module.eval()
        return partial(self._answered, *examples)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _answered(self, *inputs: Any) -> Any:
        with self._precision():
            return arrays_of(self._forward(*inputs))

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step, by the usual five lines of PyTorch."""
        self._optimizer.zero_grad()
        with self._precision():
            loss = self.loss_of(_LOSSES, self._forward(*examples), labels)
        loss.backward()
        try:
            self._optimizer.step()
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, TypeError) as error:
            raise self._refused(error) from error
        return loss.detach()

    def _refused(self, error: Exception) -> DeclarationError:
        form = "".join(name for name in ("foreach", "fused") if self._optimizer.defaults.get(name))
        return DeclarationError(
            f"{type(self._optimizer).__name__} of PyTorch ({form or 'its own choice of a form'}) "
            f"refuses the gradients of {self.model.name}: {text_of(error)}; choose another form "
            "(--fw-toggle optimizer=foreach) or another `optimizer` of the Model"
        )

    def reset(self, *, exact: bool) -> None:
        """Weights in place, and a new optimiser."""
        self.check_trained()
        self.load(self.initial.values())
        self._module.train()
        self._dropouts.switch(on=not exact)
        torch.manual_seed(SEED)
        self._optimizer = self._new_optimizer()
        if exact:
            training.make_exact(self._optimizer, self.model.optimizer)

    def _new_optimizer(self) -> Any:
        """In PyTorch's own choice of a form where the fused one refuses the gradients."""
        parameters = [p for p in self._module.parameters() if p.requires_grad]
        fuses = not any(p.is_complex() for p in parameters)
        fuses = fuses and not any(map(_is_sparse, self._module.modules()))
        form = "fused" if fuses else ""
        optimizer = training.new_optimizer(self.model.optimizer, parameters, form)
        for group in optimizer.param_groups:
            if group.get("fused") and group.get("momentum"):
                # Of all, as the fused form crashes where one begins later; PyTorch's begin as 0.
                for parameter in parameters:
                    state = optimizer.state[parameter]
                    state["momentum_buffer"] = torch.zeros_like(parameter)
        return optimizer

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate in every group of the optimiser."""
        training.set_learning_rate(self._optimizer, learning_rate)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The loss of each step as NumPy's number."""
        return torch.stack([loss.double() for loss in losses]).cpu().numpy()

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def results(self, shapes: Sequence[tuple[tuple[int, ...], str]]) -> Results | None:
        """By fake tensors, which have no memory."""
        self._module.eval()
        try:
            with FakeTensorMode(allow_non_fake_inputs=True), _Counting() as counting:
                fakes = [
                    torch.empty(
                        shape,
                        dtype=self._dtype if "float" in dtype else getattr(torch, dtype),
                        device=self._device,
                    )
                    for shape, dtype in shapes
                ]
                counting.sizes.clear()
                self._module(*fakes)
        except Exception:  # noqa: BLE001 (a model may need values)
            return None
        return Results(sum(counting.sizes), max(counting.sizes, default=0))

    def flops(self, batch: Any, *, training: bool) -> float | None:
        """By ``FlopCounterMode``: of products, convolutions and attention."""
        inputs, targets = batch
        with FlopCounterMode(display=False) as counter:
            if training:
                self.step(inputs, targets)
            else:
                self._answer(inputs)
        return float(counter.get_total_flops()) or None
