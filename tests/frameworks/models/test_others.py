"""Models of users in the other frameworks that this environment may have."""

import pytest

from support.projects import Project
from support.real_training import if_installed

#: Batch normalization and dropout; several inputs, of which one has whole numbers.
_TEST = """
import pytest
from fwbench import Input, Laid, Model, axes

net = Model("net", Input("batch", 8, 8, 3), targets=Input("batch", below=10), batches=(2,),
            training_batches=(4,))
two = Model("two", (Input("batch", 5, below=30), Input("batch", 5)),
            targets=Input("batch", 5, 4), batches=(2,), training_batches=(4,))

@net.implement("tensorflow")
def _(tf):
    layers = tf.keras.layers
    return tf.keras.Sequential([
        tf.keras.Input((8, 8, 3)), layers.Conv2D(8, 3), layers.BatchNormalization(),
        layers.Dropout(0.5), layers.Flatten(), layers.Dense(10),
    ])

def in_mxnet(mx):
    nn = mx.gluon.nn
    block = nn.HybridSequential()
    block.add(nn.Conv2D(8, 3), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(10))
    return block

net.implement("mxnet")(Laid(in_mxnet, axes("nhwc->nchw")))

@two.implement("tensorflow")
def _(tf):
    layers = tf.keras.layers
    tokens, scale = tf.keras.Input((5,), dtype="int32"), tf.keras.Input((5,))
    x = layers.Embedding(30, 4)(tokens) * scale[..., None]
    x = x + layers.MultiHeadAttention(2, 4, dropout=0.1)(x, x)
    return tf.keras.Model([tokens, scale], layers.LayerNormalization()(x))

@two.implement("mxnet")
def _(mx):
    class Net(mx.gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.table = mx.gluon.nn.Embedding(30, 4)
            self.norm = mx.gluon.nn.LayerNorm()

        def hybrid_forward(self, F, tokens, scale):
            return self.norm(F.broadcast_mul(self.table(tokens), F.expand_dims(scale, 2)))

    return Net()

@pytest.mark.fwbench(net, two)
def test_it(case):
    case.measure()
"""


@pytest.mark.parametrize(
    ("framework", "execution"),
    [if_installed("mxnet", "hybridize"), if_installed("tensorflow", "graph")],
)
def test_both_parts_are_verified(project: Project, framework: str, execution: str) -> None:
    """Against the same framework in float64, before the timing and after it."""
    project.write("test_it.py", _TEST)
    result = project.run("--fw-threads=1", f"--fw-execution={execution}", fw=framework)
    result.assert_outcomes(passed=4)
