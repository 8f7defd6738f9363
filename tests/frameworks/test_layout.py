"""Arrays in another layout: there and back again."""

import numpy as np
import pytest

from fwbench.errors import DeclarationError
from fwbench.frameworks.layout import Layout, axes, channels_last
from fwbench.frameworks.table import Call, Laid, layout_of, missing_paths
from fwbench.terms.toggles import variable
from support import programs
from support.verification import installed

X = np.arange(24.0).reshape(1, 2, 3, 4)
W = np.arange(6.0).reshape(1, 2, 3)


def test_axes_in_another_order() -> None:
    """Operands without an order, and those behind the last one, stay as they are."""
    layout = axes("nhwc->nchw", "", results=["nhwc->nchw"])
    placed = layout.place([X, W, W])
    assert [x.shape for x in placed] == [(1, 4, 2, 3), (1, 2, 3), (1, 2, 3)]
    assert placed[0].flags.c_contiguous
    for there, back in zip([X, W, W], layout.restore(placed), strict=True):
        np.testing.assert_array_equal(there, back)
    (result,) = layout.place_results([X])
    assert result.shape == (1, 4, 2, 3)
    np.testing.assert_array_equal(layout.restore_results([result])[0], X)


def test_an_order_that_is_not_its_own_inverse() -> None:
    """The way back is the inverse, not the same order again."""
    layout = axes("abc->bca")
    (placed,) = layout.place([W])
    assert placed.shape == (2, 3, 1)
    np.testing.assert_array_equal(layout.restore([placed])[0], W)


@pytest.mark.parametrize("text", ["nhwc", "nhwc->nch", "nhwc->nchx", "nnhw->nhwn", "->x"])
def test_what_is_not_an_order_of_axes_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match="not an order of axes"):
        axes(text)


def test_an_implementation_with_a_layout() -> None:
    """It is called as before, and a path of it that leads nowhere is still missed."""
    layout = axes("ab->ba")
    laid = Laid("add", layout)
    assert laid(np) is np.add
    assert layout_of(laid) is layout
    assert layout_of(Call("add")) == Layout()
    assert missing_paths({"plus": laid, "minus": Laid("minus", layout)}, np) == {"minus": "minus"}


def test_the_channels_last_in_memory() -> None:
    """The order of axes stays, and so do values; arrays without space stay as they are."""
    layout = channels_last(axes("nhwc->nchw", results=["nhwc->nchw"]))
    (placed, vectors) = layout.place([X, W])
    assert placed.shape == (1, 4, 2, 3)
    assert placed.transpose(0, 2, 3, 1).flags.c_contiguous
    assert vectors is W
    np.testing.assert_array_equal(layout.restore([placed])[0], X)
    (result,) = layout.place_results([X])
    assert result.transpose(0, 2, 3, 1).flags.c_contiguous
    np.testing.assert_array_equal(layout.restore_results([result])[0], X)


#: Whether inputs, results and gradients of a convolution have their channels last in memory, before
#: and after the inputs were given other values, and those of a network its weights and images.
_OF_TORCH = """
import numpy as np, torch
from fwbench import workloads
from fwbench.cases.case import bind
from fwbench.frameworks.learner import Job
from fwbench.frameworks.torch.framework import Torch
from fwbench.workloads.cell import Cell

def formats(work):
    result, gradients = work.run()
    return {x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
            for x in (*work.inputs, work.cotangent, result, *gradients)}

framework = Torch()
size = workloads.conv2d_3x3.sizes.quick[0]
cell = Cell(workloads.conv2d_3x3, "torch", "cpu", "eager", "backward", "float32", size)
work = bind(cell, framework)
found = formats(work)
work.verify(work.run())
work.verify_again(work.run())
found |= formats(work)
learner = framework.learner(Job(workloads.cifar_cnn, "cpu", "eager", "float32", 2))
x = np.zeros((2, 32, 32, 3), np.float32)
batch = learner.place((x, np.zeros(2, np.int32)))
loader = learner.loader((x, np.zeros(2, np.int32)), 1)
loader.set_order(np.arange(2))
(loaded,) = loader
kernels = [p for p in learner.in_use().parameters() if p.ndim == 4]
for image in (batch[0], loaded[0], *kernels):
    found.add(image.is_contiguous(memory_format=torch.channels_last) and not image.is_contiguous())
print(*found, framework.toggles()["channels_last"])
"""


@installed("torch")
@pytest.mark.parametrize(("layout", "last"), [("", True), ("nchw", False)])
def test_images_in_torch(layout: str, last: bool) -> None:
    """They are channels last unless the toggle says otherwise, and stay so when written."""
    given = {variable("layout"): layout} if layout else {}
    done = programs.run("-W", "error", "-c", _OF_TORCH, variables=given)
    assert done.stdout.split() == [str(last), str(last)], done.stderr


#: Whether the results of MXNet's convolution, its copy in layout and a plain copy have addresses.
_OF_MXNET = """
from fwbench.frameworks.mxnet.framework import MXNet

by, nd = MXNet(), MXNet.namespace
x, w = nd.ones((2, 3, 32, 32)), nd.ones((32, 3, 3, 3))
result = nd.Convolution(x, w, no_bias=True, num_filter=32, kernel=(3, 3))
copy = by.copy_in_layout(result)
assert (by.to_numpy(copy) == by.to_numpy(result)).all()
print(*[by.address(array) is not None for array in (result, copy, result.copy())])
"""


@installed("mxnet")
def test_a_copy_in_onednn_s_layout() -> None:
    """MXNet tells no address of what oneDNN has laid out, as it does with what is read then."""
    assert programs.output("-c", _OF_MXNET).split() == ["False", "False", "True"]


#: The sizes of what is read of an empty array and of a single number.
_ELEMENTS = {
    "torch": """
import torch
from fwbench.frameworks.torch.framework import Torch

by, empty, single = Torch(), torch.ones(0, 3), torch.tensor(2.0)
print(by.read_element(empty).size, by.read_element(single).size)
turned = torch.tensor([1 + 2j]).conj()
assert by.to_numpy(turned) == 1 - 2j and by.to_numpy(turned.imag) == -2  # views until resolved
""",
    "tensorflow": """
import tensorflow as tf
from fwbench.frameworks.tensorflow.framework import TensorFlow

by, empty, single = TensorFlow(), tf.ones((0, 3)), tf.Variable(2.0)
print(by.read_element(empty).size, by.read_element(single).size)
assert by.address(single) is None
""",
}


@pytest.mark.parametrize(
    "framework", [pytest.param(name, marks=installed(name)) for name in _ELEMENTS]
)
def test_an_empty_array_has_no_first_element(framework: str) -> None:
    assert programs.output("-c", _ELEMENTS[framework]).split() == ["0", "1"]
