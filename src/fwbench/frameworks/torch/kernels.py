"""PyTorch's implementations of operations that are more than a path, by family."""

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fwbench.frameworks.layout import Arrays, Layout, channels_last, reset_first
from fwbench.frameworks.table import Call, Laid
from fwbench.terms.toggles import value_of
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.convolution import Window
from fwbench.workloads.operations.normalisation import BATCH_EPSILON, EPSILON, GROUPS
from fwbench.workloads.operations.optimisers import RATE

# Memory formats of images: channels last, as PyTorch recommends it (its tutorial "Channels Last
# Memory Format in PyTorch", its Performance Tuning Guide), or contiguous (``layout=nchw``).

#: Of a batch of images.
IMAGE_AXES = 4

#: Of tensors with as many axes: images and volumes.
_FORMATS = {IMAGE_AXES: torch.channels_last, 5: torch.channels_last_3d}

_LAYOUT = value_of("layout")

CHANNELS_LAST = _LAYOUT != "nchw"

#: Of the parameters and batches of networks.
IMAGES = torch.channels_last if CHANNELS_LAST else torch.contiguous_format

#: Of those of users' models, which are as they bring them unless a layout is asked for.
USERS_IMAGES = IMAGES if _LAYOUT else torch.preserve_format


def laid(entry: Laid) -> Laid:
    """An implementation with its images in the format of this process."""
    return Laid(entry.entry, channels_last(entry.layout)) if CHANNELS_LAST else entry


def like(values: NDArray[Any], tensor: Any) -> Any:
    """The tensor with its channels last in memory, where those of NumPy's values are."""
    if values.ndim not in _FORMATS or values.flags.c_contiguous:
        return tensor
    return tensor.contiguous(memory_format=_FORMATS[values.ndim])


# Vectors and matrices


class ScaledMatmul(Call):
    """A product of float8 with a scale of 1 for either factor, on their device."""

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        """The product of the first factor and the second one transposed."""
        product, whole = super().__call__(namespace), namespace.nn.functional.ScalingType.TensorWise
        scales: list[Any] = []

        def run(x: Any, y: Any) -> Any:
            if not scales:
                scales.append(namespace.ones((), device=x.device))
            (scale,) = scales
            return product(x, y.t(), scale, whole, scale, whole, output_dtype=namespace.bfloat16)

        return run


# Convolution


def convolution(name: str) -> Implementation:
    """``nn.functional.<name>`` with the arguments that differ from PyTorch's defaults."""

    def implementation(torch: Any, window: Window) -> Any:
        given = {"stride": window.stride, "dilation": window.dilation, "groups": window.groups}
        changed = {key: value for key, value in given.items() if value != 1}
        return partial(getattr(torch.nn.functional, name), padding=window.padding, **changed)

    return implementation


# Normalisation


def batch_norm(x: Any, gamma: Any, beta: Any) -> Any:
    """Without running statistics, which it would change."""
    return functional.batch_norm(x, None, None, gamma, beta, training=True, eps=BATCH_EPSILON)


def batch_norm_inference(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
    return functional.batch_norm(x, mean, variance, gamma, beta, eps=BATCH_EPSILON)


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.layer_norm(x, gamma.shape, gamma, beta, EPSILON)


def rms_norm(x: Any, gamma: Any) -> Any:
    return functional.rms_norm(x, gamma.shape, gamma, EPSILON)


def group_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.group_norm(x, GROUPS, gamma, beta, EPSILON)


def instance_norm(x: Any, gamma: Any, beta: Any) -> Any:
    return functional.instance_norm(x, None, None, gamma, beta, eps=EPSILON)


# Softmax and losses


def ctc_loss(torch: Any, n: int, times: int, labels: int) -> Any:
    """Loss of log-probabilities, time first."""
    log_softmax, ctc_loss = torch.log_softmax, torch.nn.functional.ctc_loss
    lengths = torch.full((n,), times), torch.full((n,), labels)
    return lambda x, y: ctc_loss(log_softmax(x, -1), y, *lengths, reduction="none")


# Recurrent layers, by what ``torch.nn``'s call in training


def recurrent_layer(name: str, *, cells: bool = False) -> Implementation:
    """An implementation by ``torch.<name>``; the first states are made in every call, as there."""

    def implementation(torch: Any, units: int) -> Callable[..., Any]:
        function = getattr(torch, name)

        def layer(x: Any, *weights: Any) -> Any:
            zeros = x.new_zeros(1, len(x), units)
            first = (zeros, zeros) if cells else zeros
            return function(x, first, weights, True, 1, 0.0, True, False, True)[0]

        return layer

    return implementation


def _place_recurrent(arrays: Arrays) -> list[Any]:
    """Weights have a row for every unit, and there is a second bias, which is zero here."""
    x, w, u, b = arrays
    return [x, w.T.copy(), u.T.copy(), b, np.zeros_like(b)]


def _restore_recurrent(arrays: Arrays) -> list[Any]:
    x, w, u, b, _ = arrays
    return [x, w.T, u.T, b]


RECURRENT = Layout(place=_place_recurrent, restore=_restore_recurrent)


GRU = Layout(
    place=lambda arrays: [
        arrays[0],
        *(reset_first(array).T.copy() for array in arrays[1:3]),
        *map(reset_first, arrays[3:]),
    ],
    restore=lambda arrays: [
        arrays[0],
        *(reset_first(array.T) for array in arrays[1:3]),
        *map(reset_first, arrays[3:]),
    ],
)


def dynamic_rnn(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> tuple[Any, Any]:
    """A loop of Python's: PyTorch's own operators for loops are prototypes.

    ``torch.compile`` unrolls it.
    """
    import torch

    state = cell = x.new_zeros(len(x), w.shape[0])
    places = torch.arange(x.shape[1], device=x.device)
    within = (places[:, None] < lengths)[..., None]
    states = []
    for now, inside in zip((x @ w + b).unbind(1), within.unbind(), strict=True):
        entry, keep, new, exit_ = torch.addmm(now, state, u).chunk(4, -1)
        after = torch.sigmoid(keep) * cell + torch.sigmoid(entry) * torch.tanh(new)
        cell = torch.where(inside, after, cell)
        state = torch.where(inside, torch.sigmoid(exit_) * torch.tanh(after), state)
        states.append(torch.where(inside, state, 0.0))
    return torch.stack(states, 1), state


# Indexing


def sequence_mask(torch: Any, d: int) -> Any:
    def mask(x: Any, lengths: Any) -> Any:
        return torch.where(torch.arange(d, device=x.device) < lengths[:, None], x, 0.0)

    return mask


# Shapes and orders of elements. What PyTorch has as a view is copied.


def pad(mode: str) -> Call:
    """The last axes come first: columns, then rows."""
    return Call("nn.functional.pad", pad=(2, 2, 1, 1), mode=mode)


# Random numbers


def drawn(draw: Callable[..., Any]) -> Implementation:
    """An implementation of ``draw(torch, n, dtype=..., device=...)``."""
    return lambda torch, n: lambda like: draw(torch, n, dtype=like.dtype, device=like.device)


def places(x: Any, dtype: Any) -> Any:
    """The places of a vector's elements in a random order."""
    return torch.randperm(len(x), dtype=dtype, device=x.device)


# Optimisers, the objects of ``torch.optim``


def selected(default: str = "") -> dict[str, bool]:
    """The arguments that select an optimiser's implementation: the requested or the default one."""
    name = value_of("optimizer") or default
    return {"foreach": False} if name == "loop" else {name: True} if name else {}


#: Earlier steps, enough for Adam's corrections of its bias to be 1.
_STEPS_BEFORE = 1_000_000.0


def _unable_to_fuse(optimiser: Any, x: Any) -> bool:
    """Where the fused form does not work: as found in PyTorch 2.11 and 2.13.

    SGD's leaves most weights in half precision as they are on a CPU; Adagrad has none on a GPU.
    """
    if x.is_cuda:
        return optimiser is torch.optim.Adagrad
    return optimiser is torch.optim.SGD and x.dtype in (torch.float16, torch.bfloat16)


class OptimiserSteps:
    """Steps of an optimiser; the first one makes it, of the arrays that all of them get.

    Args:
        states: what it calls the arrays behind the gradients.
    """

    def __init__(self, optimiser: Any, states: tuple[str, ...], options: dict[str, Any]) -> None:
        self._new = optimiser
        self._states = states
        self._options = options
        self._compile: Callable[[Any], Any] = lambda step: step
        self._step: Any = None

    def compiled(self, compile_: Callable[[Any], Any]) -> Self:
        """The same steps, by the compiled method ``step`` of the optimiser."""
        self._compile = compile_
        return self

    def __call__(self, x: Any, g: Any, *arrays: Any) -> None:
        """One step, which overwrites weights and state."""
        if self._step is None:
            options = dict(self._options)
            if _unable_to_fuse(self._new, x) and not value_of("optimizer"):
                options["fused"] = False
            optimiser = self._new([x], lr=RATE, **options)
            x.grad = g
            fused = options.get("fused")  # counts on the device
            step = torch.tensor(_STEPS_BEFORE, device=x.device if fused else "cpu")
            state = zip(self._states, arrays, strict=True)
            optimiser.state[x].update(state, step=step)
            self._step = self._compile(optimiser.step)
        self._step()


def optimiser(name: str, *states: str, **options: Any) -> Implementation:
    return lambda torch: OptimiserSteps(getattr(torch.optim, name), states, options)


# Images, channels first


def resize(mode: str) -> Implementation:
    return lambda torch, h, w: Call("nn.functional.interpolate", size=(h, w), mode=mode)(torch)


def im2col(torch: Any, h: int, w: int) -> Any:
    return lambda x: torch.nn.functional.unfold(x, 3).unflatten(2, (h, w))
