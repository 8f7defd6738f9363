"""MXNet's implementations of operations that are more than a path, by family."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fwbench.frameworks.layout import CHANNELS_FIRST, Arrays, Layout
from fwbench.frameworks.table import Call, Composed, Laid, Table
from fwbench.workloads.operation import Implementation
from fwbench.workloads.operations.convolution import Window
from fwbench.workloads.operations.normalisation import EPSILON, GROUPS
from fwbench.workloads.operations.optimisers import BETA1, BETA2, DECAY, RATE, TINY

# Operators of ``mx.np``. Only the classes of arrays differ: an array becomes the other class by a
# call that shares its memory, so they need no switch of the whole process (``npx.set_np``), which
# would change how all others see shapes. Names in ``mx.np.fallback`` are NumPy's functions, which
# compute on the host, cannot be hybridized, and would measure NumPy.


class NumPyCall(Call):
    """An operator of ``mx.np`` by its path: ``linalg.solve`` for ``mx.np.linalg.solve``."""

    def __init__(self, path: str, **keywords: Any) -> None:
        super().__init__(f"np.{path}", **keywords)

    def __call__(self, namespace: Any) -> Callable[..., Any]:
        """The operator, for the arrays of ``mx.nd`` or the symbols of ``mx.sym``.

        Raises:
            AttributeError: the namespace does not have it.
        """
        return of_numpy(super().__call__(namespace))


def of_numpy(operator: Callable[..., Any]) -> Callable[..., Any]:
    """An operator of ``mx.np`` for the arrays of ``mx.nd`` or the symbols of ``mx.sym``."""

    def call(*operands: Any) -> Any:
        results = operator(*(operand.as_np_ndarray() for operand in operands))
        if isinstance(results, list | tuple):
            return [result.as_nd_ndarray() for result in results]
        return results.as_nd_ndarray()

    return call


# Functions of ``F``, which is ``mx.nd`` or ``mx.sym``, and of arrays


def bound(function: Callable[..., Any]) -> Composed:
    """An implementation by a function of the namespace and the arrays."""
    return Composed(partial, function)


def composed(*functions: Callable[..., Any]) -> Table:
    """Rows for operations that these functions of their names compose."""
    return {function.__name__: bound(function) for function in functions}


# Activations


def selu(F: Any, x: Any) -> Any:
    """By elu: the operator for selu is slow, and its gradient wrong where x is negative."""
    return 1.0507009873554805 * F.LeakyReLU(x, act_type="elu", slope=1.6732632423543772)


def gelu_tanh(F: Any, x: Any) -> Any:
    """By the logistic function: sigmoid(2 y) is (1 + tanh(y)) / 2."""
    within = x * (1.5957691216057308 + 0.07135481627159744 * F.square(x))
    return x * F.Activation(within, act_type="sigmoid")


# Elementwise arithmetic


def as_numbers(count: int) -> Layout:
    """The first operands are 0 and 1 in the dtype of the case: operators refuse booleans."""
    return Layout(
        place=lambda arrays: [*(x.astype(np.float32) for x in arrays[:count]), *arrays[count:]],
        restore=lambda arrays: [*(x != 0 for x in arrays[:count]), *arrays[count:]],
    )


#: An operand with as many axes as the other.
AS_ROW = Layout(
    place=lambda arrays: [arrays[0], arrays[1][np.newaxis]],
    restore=lambda arrays: [arrays[0], arrays[1][0]],
)


def arctan2(F: Any) -> Any:
    """It is in MXNet's NumPy alone, which has arrays of its own that share the memory."""
    arctan2 = F.np.arctan2
    return lambda y, x: arctan2(y.as_np_ndarray(), x.as_np_ndarray()).as_nd_ndarray()


def around(F: Any) -> Any:
    """``around`` of MXNet's NumPy: F.round and F.rint round halves otherwise."""
    around = F.np.around
    return lambda x: around(x.as_np_ndarray()).as_nd_ndarray()


# Reductions


def variance(F: Any, x: Any) -> Any:
    """In parts: a function for it is wrong in each namespace of MXNet 1.9.1.

    ``F.moments`` is when it is hybridized and the mean not used, the gradient of ``np.var`` always.
    """
    return F.mean(F.square(F.broadcast_sub(x, F.mean(x, axis=1, keepdims=True))), axis=1)


def norm(F: Any, x: Any) -> Any:
    """By a product, as ``gluon.utils.clip_global_norm`` adds up squares."""
    vector = F.reshape(x, shape=(-1,))
    return F.sqrt(F.dot(vector, vector))


def logsumexp(F: Any, x: Any) -> Any:
    """The number that log_softmax subtracts; max and sum take many times as long."""
    before, after = (F.slice_axis(y, axis=1, begin=0, end=1) for y in (x, F.log_softmax(x)))
    return F.reshape(before - after, shape=(-1,))


# Vectors and matrices


def exchanged(results: Arrays) -> Any:
    """The other order."""
    return [*reversed(results)]


def restored_eigh(results: Arrays) -> Any:
    """Vectors are rows, and come first."""
    vectors, values = results
    return [values, vectors.T]


def placed_eigh(results: Arrays) -> Any:
    values, vectors = results
    return [vectors.T, values]


# Convolution


def convolution(F: Any, window: Window, operator: str = "Convolution") -> Any:
    """A convolution with its arguments; MXNet wants one for each axis."""
    return partial(
        getattr(F, operator),
        kernel=window.kernel,
        stride=(window.stride,) * window.rank,
        pad=(window.padding,) * window.rank,
        dilate=(window.dilation,) * window.rank,
        num_filter=window.filters,
        num_group=window.groups,
        no_bias=True,
    )


# Normalisation


def with_vectors(elements: Sequence[int | None], shape: tuple[int, ...] = (-1,)) -> Layout:
    """Images with the channels first, vectors in another shape, and zeros and ones behind them.

    Args:
        elements: of the zeros and the ones; None for one for each channel.
    """

    def place(arrays: Arrays) -> list[NDArray[Any]]:
        x, *vectors = CHANNELS_FIRST.place(arrays)
        ones = [np.full(n or x.shape[1], i, x.dtype) for i, n in enumerate(elements)]
        return [x, *(vector.reshape(shape) for vector in vectors), *ones]

    def restore(arrays: Arrays) -> list[NDArray[Any]]:
        x, *vectors = CHANNELS_FIRST.restore(arrays[:3])
        return [x, *(vector.reshape(-1) for vector in vectors)]

    return Layout(place, restore, CHANNELS_FIRST.place_results, CHANNELS_FIRST.restore_results)


def group_norm(F: Any, x: Any, gamma: Any, beta: Any, zeros: Any, ones: Any) -> Any:
    """Its own factors and offsets are the groups', not the channels'."""
    standard = F.GroupNorm(x, ones, zeros, num_groups=GROUPS, eps=EPSILON)
    return F.broadcast_add(F.broadcast_mul(standard, gamma), beta)


def rms_norm(F: Any, x: Any, gamma: Any) -> Any:
    mean = F.mean(F.square(x), axis=-1, keepdims=True)
    return F.broadcast_mul(F.broadcast_mul(x, F.rsqrt(mean + EPSILON)), gamma)


# Softmax and losses


def cross_entropy(F: Any, x: Any, labels: Any) -> Any:
    """Written as in Gluon's loss; the operator of that name sums."""
    return -F.mean(F.pick(F.log_softmax(x), labels))


def binary_cross_entropy(F: Any, x: Any, answers: Any) -> Any:
    """Written as in Gluon's loss, but for relu."""
    tail = F.Activation(-F.abs(x), act_type="softrelu")
    return F.mean(F.Activation(x, act_type="relu") - x * answers + tail)


# Attention, by the formula


def _future(F: Any, positions: Any) -> Any:
    """Minus infinity, nearly, for every pair of a position and a later one."""
    at = F.contrib.arange_like(positions, axis=2)
    ours, theirs = (F.reshape(at, shape=shape) for shape in ((1, 1, -1, 1), (1, 1, 1, -1)))
    return -1e9 * F.broadcast_lesser(ours, theirs)


def _scores(F: Any, q: Any, k: Any) -> Any:
    return F.linalg.gemm2(F.contrib.div_sqrt_dim(q), k, transpose_b=True)


def attention(F: Any, q: Any, k: Any, v: Any) -> Any:
    return F.linalg.gemm2(F.softmax(_scores(F, q, k)), v)


def attention_causal(F: Any, q: Any, k: Any, v: Any) -> Any:
    scores = F.broadcast_add(_scores(F, q, k), _future(F, q))
    return F.linalg.gemm2(F.softmax(scores), v)


# Recurrent layers, by one operator that has all weights and biases in one vector. The operator's
# sequences have time before the batch; the first states are operands, as ``gluon.rnn`` gives
# them. There are two biases; where the definition has one the second is zero.


def _by_time(arrays: Arrays) -> list[NDArray[Any]]:
    """Time before the batch, or the batch before time: one is the inverse of the other."""
    return [np.ascontiguousarray(x.swapaxes(0, 1)) for x in arrays]


def _place_recurrent(
    states: int, order: Callable[[NDArray[Any]], NDArray[Any]], arrays: Arrays
) -> list[NDArray[Any]]:
    x, *weights = arrays
    w, u, *biases = map(order, weights)
    second = biases[1] if len(biases) > 1 else np.zeros_like(biases[0])
    packed = np.concatenate([w.T.ravel(), u.T.ravel(), biases[0], second])
    zeros = np.zeros((1, len(x), len(u)), x.dtype)
    return [*_by_time([x]), packed, *[zeros] * states]


def _restore_recurrent(
    biases: int, order: Callable[[NDArray[Any]], NDArray[Any]], arrays: Arrays
) -> list[NDArray[Any]]:
    """There are as many inputs as units, which tells how many columns there are."""
    x, packed = arrays[:2]
    units = x.shape[-1]
    columns = len(packed) // (2 * units + 2)
    w, u = (part.reshape(columns, units).T for part in np.split(packed[: -2 * columns], 2))
    both = np.split(packed[-2 * columns :], 2)
    return [*_by_time([x]), *map(order, (w, u, *both[:biases]))]


def recurrent_layer(
    mode: str,
    states: int = 1,
    biases: int = 1,
    order: Callable[[NDArray[Any]], NDArray[Any]] = np.asarray,
) -> Laid:
    layout = Layout(
        partial(_place_recurrent, states, order),
        partial(_restore_recurrent, biases, order),
        _by_time,
        _by_time,
    )
    return Laid(lambda F, units: partial(F.RNN, state_size=units, num_layers=1, mode=mode), layout)


def _python_foreach(F: Any, steps: int) -> Callable[..., Any]:
    """``F.contrib.foreach`` by a loop of Python's, which a symbol unrolls."""

    def split(x: Any) -> Any:
        parts = F.SliceChannel(x, num_outputs=steps, axis=0, squeeze_axis=True)
        return parts if steps > 1 else [parts]

    def foreach(body: Callable[..., Any], data: Any, states: Any) -> tuple[Any, Any]:
        results = []
        for now in zip(*map(split, data), strict=True):
            result, states = body([*now], states)
            results.append(result)
        return F.stack(*results, axis=0), states

    return foreach


def dynamic_rnn(F: Any, steps: int, loop: str) -> Callable[..., Any]:
    """An LSTM over sequences of different lengths, with time before the batch within the loop."""
    foreach = F.contrib.foreach if loop == "native" else _python_foreach(F, steps)
    sigmoid, tanh = (partial(F.Activation, act_type=name) for name in ("sigmoid", "tanh"))

    def call(x: Any, w: Any, u: Any, b: Any, lengths: Any) -> Any:
        x = F.swapaxes(x, dim1=0, dim2=1)
        within = F.SequenceMask(F.ones_like(x), lengths, use_sequence_length=True)
        first = F.squeeze(F.slice_axis(x, axis=0, begin=0, end=1), axis=0)
        zeros = [F.zeros_like(first) for _ in range(2)]  # foreach refuses one symbol twice

        def step(now: Any, states: Any) -> tuple[Any, Any]:
            (sums, within), (state, cell) = now, states
            entry, keep, new, exit_ = F.SliceChannel(sums + F.dot(state, u), num_outputs=4)
            after = sigmoid(keep) * cell + sigmoid(entry) * tanh(new)
            cell = F.where(within, after, cell)
            state = F.where(within, sigmoid(exit_) * tanh(after), state)
            return state * within, [state, cell]

        sums = F.broadcast_add(F.dot(x, w), b)
        results, (state, _) = foreach(step, [sums, within], zeros)
        return F.swapaxes(results, dim1=0, dim2=1), state

    return call


# Indexing


def _row_coordinates(arrays: Arrays) -> list[NDArray[Any]]:
    """The row of each index, and the index: ``mx.np.take_along_axis`` is NumPy's, on the host."""
    x, i = arrays
    rows = np.broadcast_to(np.arange(len(i))[:, None], i.shape)
    return [x, np.stack([rows, i])]


OF_EACH_ROW = Layout(place=_row_coordinates, restore=lambda arrays: [arrays[0], arrays[1][1]])


#: Coordinates come first, here the only one.
COORDINATES = Layout(
    place=lambda arrays: [arrays[0], arrays[1][None]],
    restore=lambda arrays: [arrays[0], arrays[1][0]],
)


#: DLPack, which gives the addresses of arrays, does not know MXNet's bool.
MASK = Layout(
    place=lambda arrays: [arrays[0], arrays[1].astype(np.int32)],
    restore=lambda arrays: [arrays[0], arrays[1].astype(np.bool_)],
)


def scatter_add(F: Any, n: int, d: int) -> Any:
    """The gradient of gather_nd adds up; scatter_nd keeps one of several."""
    return Call("_internal._backward_gather_nd", shape=(n, d))(F)


# Sorting and searching


def unique(_: Any) -> Any:
    """Only ``mx.np`` has it; arrays become those of ``mx.np``, and of ``mx.nd``, without a copy."""
    import mxnet as mx  # not above: the adapter, which imports this module, prepares NumPy first

    return lambda x: mx.np.unique(x.as_np_ndarray()).as_nd_ndarray()


# Shapes and orders of elements


def split(F: Any, x: Any) -> Any:
    """By slices of an axis of four: the operator for it takes ten times as long."""
    parts = F.reshape(x, shape=(0, -4, 4, -1))
    slices = [F.slice_axis(parts, axis=1, begin=i, end=i + 1) for i in range(4)]
    return [F.reshape(part, shape=(0, -1)) for part in slices]


def roll(F: Any, x: Any) -> Any:
    """``mx.nd`` has no roll, and ``mx.np``'s cannot be hybridized: two slices, joined again."""
    last = F.slice_axis(x, axis=1, begin=-3, end=None)
    return F.concat(last, F.slice_axis(x, axis=1, begin=0, end=-3), dim=1)


def pixel_shuffle(F: Any, x: Any) -> Any:
    """Written as in Gluon's PixelShuffle2D, for blocks of two by two pixels."""
    x = x.reshape((0, -4, -1, 4, 0, 0)).reshape((0, 0, -4, 2, 2, 0, 0))
    return F.transpose(x, axes=(0, 1, 4, 2, 5, 3)).reshape((0, 0, -3, -3))


# Random numbers


def drawn(name: str, **keywords: Any) -> Implementation:
    """An implementation of ``F.random_<name>(shape=(n,), dtype=...)``."""
    return lambda F, n: (
        lambda like: getattr(F, f"random_{name}")(shape=(n,), dtype=dtype_of(like), **keywords)
    )


def dtype_of(like: Any) -> str:
    """The dtype of an array; a symbol does not know it, and operators make float32 by default."""
    return np.dtype(getattr(like, "dtype", "float32")).name


# Optimisers write into the weights and change the state


ADAM: dict[str, Any] = {"beta1": BETA1, "beta2": BETA2, "epsilon": TINY}

#: Updates before the first one: as many as make Adam's corrections 1.
_LATE = 1_000_000


def optimiser(
    name: str, state: Callable[[Sequence[Any]], Any] = tuple, **options: Any
) -> Implementation:
    """An update by ``mx.optimizer.<name>``, as ``gluon.Trainer`` makes it of each array.

    Args:
        state: the optimizer's state, of the arrays of the operation.
    """

    def implementation(_: Any) -> Callable[..., None]:
        import mxnet as mx  # not above, as in unique

        made = getattr(mx.optimizer, name)(learning_rate=RATE, begin_num_update=_LATE, **options)
        update = made.update_multi_precision

        def step(x: Any, g: Any, *arrays: Any) -> None:
            update(0, x, g, state(arrays))

        return step

    return implementation


def operator(name: str, **options: Any) -> Implementation:
    """An update by the operator that an optimizer calls; the weights are its output."""

    def implementation(F: Any) -> Callable[..., None]:
        update = getattr(F, name)

        def step(x: Any, *others: Any) -> None:
            update(x, *others, out=x, lr=RATE, wd=0.0, **options)

        return step

    return implementation


def adamw(F: Any) -> Callable[..., None]:
    """By its operator: mx.optimizer has no AdamW. The factor of gradients is in float32."""
    scale = F.ones((1,))

    def step(x: Any, g: Any, m: Any, v: Any) -> None:
        # Its decay is not multiplied by the rate.
        F.contrib.adamw_update(x, g, m, v, scale, out=x, lr=RATE, eta=1.0, wd=RATE * DECAY, **ADAM)

    return step


def _last_times(factor: float) -> Callable[[Arrays], list[Any]]:
    """The last array multiplied."""
    return lambda arrays: [*arrays[:-1], (factor * arrays[-1]).astype(arrays[-1].dtype)]


#: A velocity that has the rate in it, and its sign.
VELOCITY = Layout(
    place=_last_times(-RATE),
    restore=_last_times(-1 / RATE),
    place_results=_last_times(-RATE),
    restore_results=_last_times(-1 / RATE),
)


# Images, channels first


def resize_bilinear(F: Any, h: int, w: int) -> Any:
    return Call("contrib.BilinearResize2D", height=h, width=w, align_corners=False)(F)


def resize_nearest(F: Any, *_: int) -> Any:
    return Call("UpSampling", scale=2, sample_type="nearest")(F)


def im2col(F: Any, h: int, w: int) -> Any:
    return lambda x: F.reshape(F.im2col(x, kernel=(3, 3)), shape=(0, 0, h, w))
