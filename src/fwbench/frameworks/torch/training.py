"""Training in PyTorch: nn.Module, DataLoader, torch.optim; and torch.compile when asked for."""

import io
import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from fwbench.frameworks.learner import ConvertedPredictor, Job, Learner, Loader, Order, Placed
from fwbench.frameworks.torch import gpus
from fwbench.frameworks.torch.kernels import IMAGE_AXES, IMAGES, selected
from fwbench.frameworks.torch.layers import BATCH_NORMS, Network
from fwbench.workloads.models.gradients import LOSS_SCALE
from fwbench.workloads.models.layer import Arrays
from fwbench.workloads.objective import DROPOUT_SEED, SGD, Adam, Batch, Optimizer, RMSprop
from fwbench.workloads.photos import CROP, MEAN, RESIZED, STD, PhotoJob, PhotoLoader


def _compiled(model: nn.Module) -> Any:
    # Without a reset the first call may find an earlier case's code, or hit the recompile limit.
    torch.compiler.reset()
    return torch.compile(model, dynamic=False)


#: Modules that compute something else while they are trained.
_DIFFERS = (nn.Dropout, *BATCH_NORMS)

#: The executions that can train, each with what it makes of the model.
EXECUTIONS: dict[str, Callable[[nn.Module], Any]] = {
    "eager": lambda model: model,
    "compile": _compiled,
}


class _Batches(Loader):
    def __init__(self, job: Job, tensors: Placed, steps: int) -> None:
        self._order = Order(steps * job.batch)
        self._device = device_of(job)
        self._label_for_each_token = bool(job.training.labels_shape)
        self._of_images = tensors[0].ndim == IMAGE_AXES
        self._loader: Any = DataLoader(
            TensorDataset(*tensors),
            batch_size=job.batch,
            sampler=self._order,
            num_workers=job.workers,
            pin_memory=self._device.type == "cuda",
        )

    def set_order(self, order: NDArray[Any]) -> None:
        self._order.indices = order.tolist()

    def __iter__(self) -> Iterator[Placed]:
        batches = iter(self._loader)
        if self._label_for_each_token:
            batches = ((x, y.flatten()) for x, y in batches)
        if self._of_images:
            batches = ((x.to(memory_format=IMAGES), y) for x, y in batches)
        if self._device.type == "cpu":
            return batches
        to_device = partial(torch.Tensor.to, device=self._device, non_blocking=True)
        return ((to_device(x), to_device(y)) for x, y in batches)


class _Photos(Dataset):  # type: ignore[misc]
    """Photos that Pillow decodes and cuts, as torchvision's transforms have it do."""

    _mean, _std = (torch.tensor(values).div(255).view(3, 1, 1) for values in (MEAN, STD))

    def __init__(self, job: PhotoJob) -> None:
        self._job = job

    def __len__(self) -> int:
        return len(self._job.paths)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image  # here, as Pillow may be missing

        with Image.open(self._job.paths[index]) as file:
            photo = file.convert("RGB")
        if self._job.augmented:
            left, top = (int(torch.randint(side - CROP + 1, (1,))) for side in photo.size)
        else:
            sides = [side * RESIZED // min(photo.size) for side in photo.size]
            photo = photo.resize(sides, Image.Resampling.BILINEAR)
            left, top = ((side - CROP) // 2 for side in sides)
        photo = photo.crop((left, top, left + CROP, top + CROP))
        if self._job.augmented and torch.rand(1) < 0.5:  # noqa: PLR2004 (a half)
            photo = photo.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        image = torch.from_numpy(np.array(photo)).permute(2, 0, 1).contiguous()
        return image.float().div(255).sub_(self._mean).div_(self._std), index


def photo_loader(job: PhotoJob) -> PhotoLoader:
    """``DataLoader``, whose processes stay from pass to pass."""
    loader = DataLoader(
        _Photos(job),
        batch_size=job.batch,
        shuffle=job.augmented,
        num_workers=job.workers,
        persistent_workers=job.workers > 0,
    )
    return PhotoLoader(
        lambda: ((x.to(memory_format=IMAGES), y) for x, y in loader),
        f"Pillow {metadata.version('pillow')}",
        channels_first=True,
    )


class TorchLearner(Learner):
    """A model of ``nn.Module`` that is trained by ``torch.optim``."""

    executions = tuple(EXECUTIONS)
    epsilon_placement: ClassVar = {
        Adam: "added to the root of the corrected second moment",
        RMSprop: "sqrt(epsilon) added to the root of the mean square",
    }
    sparse_update = "lazy"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._device = device_of(job)
        self._dtype = parameters_dtype(job)
        model = Network(job.training.graph, job)
        self._model = model.to(device=self._device, dtype=self._dtype, memory_format=IMAGES)
        self._loss = nn.CrossEntropyLoss()
        self._forward = EXECUTIONS[job.execution](self._model)
        self._precision = precision_of(job)
        self._update = self._scaled_update if job.dtype == "float16" else self._plain_update

    def step(self, examples: Any, labels: Any) -> Any:
        """The loss of one step, by the usual five lines of PyTorch."""
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        with self._precision():
            loss = self._loss(self._forward(examples), labels)
        self._update(loss)
        return loss.detach()

    def _plain_update(self, loss: Any) -> None:
        loss.backward()
        for optimizer in self._optimizers:
            optimizer.step()

    def _scaled_update(self, loss: Any) -> None:
        """By ``GradScaler``, as the gradients of float16 would vanish otherwise."""
        self._scaler.scale(loss).backward()
        for optimizer in self._optimizers:
            self._scaler.step(optimizer)
        self._scaler.update()

    def reset(self, *, exact: bool) -> None:
        """Weights in place, so that compiled code stays; new optimisers."""
        self._begin(dropout=not exact)
        torch.manual_seed(DROPOUT_SEED)
        self._optimizers = self._new_optimizers()
        if self.job.dtype == "float16":
            self._scaler = torch.amp.GradScaler(self._device.type, init_scale=LOSS_SCALE)
        if exact:
            for optimizer in self._optimizers:
                make_exact(optimizer, self.job.training.optimizer)

    def _begin(self, *, dropout: bool) -> None:
        pairs = self._in_layout(self.job.training.initial())
        with torch.no_grad():
            for parameter, array in pairs:
                parameter.copy_(torch.from_numpy(np.ascontiguousarray(array)))
        self._model.train()
        for module in self._model.modules():
            if isinstance(module, nn.Dropout):
                module.train(dropout)
            elif isinstance(module, BATCH_NORMS):
                module.reset_running_stats()

    def _in_layout(self, of_nodes: Sequence[Arrays]) -> Iterator[tuple[Any, NDArray[Any]]]:
        converted = self.job.training.graph.channels_first(of_nodes)
        arrays = [array for arrays in converted for array in arrays]
        return zip(self._model.parameters(), arrays, strict=True)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """``eval`` and ``inference_mode``."""
        self.in_use()
        return partial(self._answer, examples)

    def in_use(self) -> nn.Module:
        """The module with its initial weights, in ``eval``."""
        self._begin(dropout=False)
        return self._model.eval()

    def model_bytes(self) -> int:
        """By ``torch.save``."""
        return saved_bytes(self._model)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _answer(self, examples: Any) -> Any:
        with self._precision():
            return self._forward(examples)

    def forward_backward(self, examples: Any, labels: Any) -> Callable[[], Any]:
        """``torch.autograd.grad``, which returns gradients instead of adding them up."""
        self._begin(dropout=False)
        return partial(self._differentiated, self._parameters, examples, labels)

    def _differentiated(self, parameters: Sequence[Any], examples: Any, labels: Any) -> Any:
        with self._precision():
            loss = self._loss(self._forward(examples), labels)
        return loss.detach(), torch.autograd.grad(loss, parameters)

    @property
    def _parameters(self) -> list[Any]:
        return [parameter for parameter in self._model.parameters() if parameter.requires_grad]

    def trained(self, of_nodes: Sequence[Arrays]) -> list[NDArray[Any]]:
        """Channels first."""
        return [array for parameter, array in self._in_layout(of_nodes) if parameter.requires_grad]

    def _new_optimizers(self) -> list[Any]:
        constants, parameters = self.job.training.optimizer, self._parameters
        tables = [m.weight for m in self._model.modules() if isinstance(m, nn.Embedding)]
        if not (isinstance(constants, Adam) and self.job.sparse and tables):
            return [new_optimizer(constants, parameters)]
        dense = [p for p in parameters if all(p is not table for table in tables)]
        sparse = torch.optim.SparseAdam(tables, **adam(constants))
        return [sparse, new_optimizer(constants, dense)]

    def save(self, folder: Path) -> None:
        """``torch.save`` of the ``state_dict`` of all."""
        states = {name: part.state_dict() for name, part in self._stateful().items()}
        torch.save(states, folder / "checkpoint.pt")

    def restore(self, folder: Path) -> None:
        """``torch.load``, by default of weights only, and ``load_state_dict``."""
        states = torch.load(folder / "checkpoint.pt", map_location=self._device)
        for name, part in self._stateful().items():
            part.load_state_dict(states[name])

    def _stateful(self) -> dict[str, Any]:
        optimizers = {f"optimizer{i}": each for i, each in enumerate(self._optimizers)}
        scaler = {"scaler": self._scaler} if self.job.dtype == "float16" else {}
        return {"model": self._model, **optimizers, **scaler}

    def set_learning_rate(self, learning_rate: float) -> None:
        """Set the learning rate in every group of every optimiser."""
        for optimizer in self._optimizers:
            set_learning_rate(optimizer, learning_rate)

    def weights(self) -> Iterator[NDArray[Any]]:
        """The parameters that have a gradient."""
        return (parameter.detach().cpu().numpy() for parameter in self._parameters)

    def placement(self) -> Mapping[str, int]:
        """By the device of each parameter."""
        numbers: Counter[str] = Counter()
        for parameter in self._parameters:
            where = parameter.device
            kind = "gpu" if where.type == gpus.kind() else where.type
            numbers[f"{kind}:{where.index or 0}"] += parameter.numel()
        return numbers

    def _tensors(self, batch: Batch) -> Placed:
        x, y = batch
        if x.ndim == IMAGE_AXES:
            images = torch.from_numpy(x.transpose(0, 3, 1, 2))
            return images.to(self._dtype, memory_format=IMAGES), torch.from_numpy(y).long()
        return torch.from_numpy(x), torch.from_numpy(y).long()

    def place(self, batch: Batch) -> Placed:
        """Channels first; labels as int64, which the loss takes."""
        examples, labels = self._tensors(batch)
        return examples.to(self._device), labels.to(self._device)

    def loader(self, batch: Batch, steps: int) -> Loader:
        """``DataLoader`` over a ``TensorDataset``: example by example, then stacked."""
        return _Batches(self.job, self._tensors(batch), steps)

    def losses(self, losses: Sequence[Any]) -> NDArray[Any]:
        """The loss of each step as NumPy's number."""
        return torch.stack(list(losses)).double().cpu().numpy()

    def logits(self, examples: NDArray[Any]) -> NDArray[Any]:
        """Eagerly: compiled code would be compiled again for the last, shorter batch."""
        x, _ = self.place((examples, np.zeros(0, np.int32)))
        modes = [(m, m.training) for m in self._model.modules() if isinstance(m, _DIFFERS)]
        for module, _ in modes:
            module.eval()
        with torch.no_grad(), self._precision():
            logits = self._model(x).double().cpu().numpy()
        for module, mode in modes:
            module.train(mode)
        return cast("NDArray[Any]", logits)


def saved_bytes(module: nn.Module) -> int:
    """Size of the file that ``torch.save`` writes of a module's state."""
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    return len(file.getvalue())


def device_of(job: Job) -> torch.device:
    """PyTorch's device of a job."""
    return torch.device(gpus.named(job.device))


def parameters_dtype(job: Job) -> torch.dtype:
    """The dtype of a job's parameters: float32 where the computation is narrower."""
    return torch.float64 if job.dtype == "float64" else torch.float32


def precision_of(job: Job) -> Callable[[], AbstractContextManager[Any]]:
    """``torch.autocast`` to a dtype narrower than float32."""
    if job.dtype in ("float32", "float64"):
        return nullcontext
    return partial(torch.autocast, device_of(job).type, dtype=getattr(torch, job.dtype))


def set_learning_rate(optimizer: Any, learning_rate: float) -> None:
    """Set the learning rate in every group of an optimiser."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate


def new_optimizer(constants: Optimizer, parameters: Iterable[Any], form: str = "fused") -> Any:
    """PyTorch's own; unless another is asked for, in the fused form that is faster with a state.

    Args:
        form: unless another is asked for; empty for PyTorch's own choice.
    """
    return _OPTIMIZERS[type(constants)](constants, parameters, form)


def adam(constants: Adam) -> dict[str, Any]:
    """The arguments of Adam, and of SparseAdam."""
    return {
        "lr": constants.learning_rate,
        "betas": (constants.beta_1, constants.beta_2),
        "eps": constants.epsilon,
    }


def _adam(constants: Adam, parameters: Iterable[Any], form: str) -> Any:
    return torch.optim.Adam(parameters, **adam(constants), **selected(form))


def _rmsprop(constants: RMSprop, parameters: Iterable[Any], _: str) -> Any:
    """PyTorch adds epsilon to the root: its own root does there, where v is small, what it must."""
    return torch.optim.RMSprop(
        parameters,
        lr=constants.learning_rate,
        alpha=constants.rho,
        eps=math.sqrt(constants.epsilon),
        **selected(),
    )


def _sgd(constants: SGD, parameters: Iterable[Any], form: str) -> Any:
    rate, momentum = constants.learning_rate, constants.momentum
    return torch.optim.SGD(parameters, rate, momentum, **selected(form if momentum else ""))


_OPTIMIZERS: dict[type[Any], Callable[[Any, Iterable[Any], str], Any]] = {
    Adam: _adam,
    RMSprop: _rmsprop,
    SGD: _sgd,
}


def make_exact(optimizer: Any, constants: Optimizer) -> None:
    """Let a new optimiser add epsilon where the definition does."""
    _EXACT.get(type(optimizer), _as_it_is)(optimizer, constants)


def _as_it_is(optimizer: Any, constants: Any) -> None:
    """Gradient descent has no epsilon, and SparseAdam adds it where the other frameworks do."""


def _exact_adam(optimizer: Any, constants: Adam) -> None:
    """PyTorch adds epsilon after the bias correction; undone, step by step."""

    def correct(*_: Any) -> None:
        # By the state: a checkpoint may have been restored.
        steps = 1 + max((int(state["step"]) for state in optimizer.state.values()), default=0)
        for group in optimizer.param_groups:
            group["eps"] = constants.epsilon / math.sqrt(1.0 - constants.beta_2**steps)

    optimizer.register_step_pre_hook(correct)


def _exact_rmsprop(optimizer: Any, constants: RMSprop) -> None:
    """Epsilon inside the root: kept in the mean square, which loses a share of it every step."""
    for group in optimizer.param_groups:
        group["eps"] = 0.0
    lost = constants.epsilon * (1.0 - constants.rho) / constants.rho

    def correct(*_: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                state = optimizer.state[parameter]
                both = 1 + 1j if parameter.is_complex() else 1.0  # which are two real numbers
                if not state:
                    state["step"] = torch.zeros(())
                    state["square_avg"] = torch.full_like(parameter, constants.epsilon * both)
                state["square_avg"].add_(lost * both)

    optimizer.register_step_pre_hook(correct)


_EXACT: dict[type[Any], Callable[[Any, Any], None]] = {
    torch.optim.Adam: _exact_adam,
    torch.optim.RMSprop: _exact_rmsprop,
}


#: Kernels of x86 (oneDNN and FBGEMM), and of ARM.
_ENGINES = ("x86", "qnnpack")


class TorchInt8(ConvertedPredictor):
    """A network whose activations and weights are int8, by ``torch.ao.quantization``.

    PyTorch has announced its removal in favour of torchao, whose int8 kernels need
    ``torch.compile``. Until then this is what computes in int8 as it is called.
    """

    def __init__(self, job: Job) -> None:
        from torch.ao.quantization import get_default_qconfig_mapping
        from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

        super().__init__(job)
        self._learner = TorchLearner(job)
        examples = self.calibration_examples()
        engine = next(
            name for name in _ENGINES if name in torch.backends.quantized.supported_engines
        )
        torch.backends.quantized.engine = engine
        with warnings.catch_warnings(action="ignore"):  # of its removal
            configuration = get_default_qconfig_mapping(engine)
            prepared = prepare_fx(self._learner.in_use(), configuration, (examples[:1],))
            with torch.inference_mode():
                prepared(examples)
            self._module = convert_fx(prepared)

    def inference(self, examples: Any) -> Callable[[], Any]:
        """The quantized module in ``inference_mode``."""
        return partial(self._answer, examples)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def _answer(self, examples: Any) -> Any:
        return self._module(examples)

    def model_bytes(self) -> int:
        """By ``torch.save``."""
        return saved_bytes(self._module)
