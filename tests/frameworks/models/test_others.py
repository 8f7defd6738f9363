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


#: Constants that are attributes, and so not of the state that frameworks convert; a zero made in
#: float32 in the call, which is to be made in the dtype of the inputs.
_MAKING = """
import pytest
from fwbench import Input, Model

constant = Model("constant", Input("batch", 4), targets=Input("batch", below=3), batches=(2,),
                 training_batches=(4,))
narrow = Model("narrow", Input("batch", 4), batches=(2,))

@constant.implement("tensorflow")
def _(tf):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.waves, self.last = tf.random.normal((4, 5)), tf.keras.layers.Dense(3)

        def call(self, x):
            return self.last(tf.sin(x @ self.waves))

    return Net()

@constant.implement("mxnet")
def _(mx):
    class Net(mx.gluon.Block):
        def __init__(self):
            super().__init__()
            self.waves, self.last = mx.nd.random.normal(shape=(4, 5)), mx.gluon.nn.Dense(3)

        def forward(self, x):
            return self.last(mx.nd.dot(x, self.waves).sin())

    return Net()

@narrow.implement("tensorflow")
def _(tf):
    class Net(tf.keras.Model):
        def call(self, x):
            return x @ tf.zeros((4, 3))

    return Net()

@narrow.implement("mxnet")
def _(mx):
    class Net(mx.gluon.Block):
        def forward(self, x):
            return mx.nd.dot(x, mx.nd.zeros((4, 3)))

    return Net()

@pytest.mark.fwbench(constant, narrow)
def test_it(case):
    case.measure()
"""


@pytest.mark.parametrize("framework", [if_installed("mxnet"), if_installed("tensorflow")])
def test_what_a_model_makes_in_float32(project: Project, framework: str) -> None:
    """Constants are converted for the run in float64; of others its error says what to do."""
    project.write("test_it.py", _MAKING)
    arguments = ("--fw-threads=1", "--fw-execution=eager", "--junitxml=junit.xml")
    result = project.run(*arguments, fw=framework)
    result.assert_outcomes(passed=2, failed=1)
    (text,) = (each.text for each in project.outcomes().values() if each.kind == "failure")
    assert f"narrow in {framework} fails in float64, in the reference run that it is" in text
    assert "in the dtype of the inputs" in text


#: A regularization that is as large as the loss, which the first loss shows.
_REGULARIZED = """
import pytest
from fwbench import Input, Model

weights = [[0.01 * (i + j) for j in range(4)] for i in range(8)]
net = Model("net", Input("batch", 8), targets=Input("batch", 4), training_batches=(4,),
            weights=lambda: {"sequential/dense/kernel": weights})

@net.implement("tensorflow")
def _(tf):
    class Adding(tf.keras.layers.Layer):
        def call(self, x):
            self.add_loss(tf.reduce_sum(tf.square(x)) * 0 + 1)
            return x

    dense = tf.keras.layers.Dense(4, use_bias=False, kernel_regularizer=tf.keras.regularizers.L2(1))
    return tf.keras.Sequential([tf.keras.Input((8,)), dense, Adding()])

@pytest.mark.fwbench(net.step)
def test_it(case):
    case.measure()
    learner = case.learner()
    learner.reset(exact=True)
    (batch,) = learner.objective.check_batches(4, 1)
    inputs, targets = learner.place(batch)
    squares = (learner.logits(batch[0]) - batch[1][0]) ** 2
    penalty = 1 + sum(number**2 for row in weights for number in row)
    assert float(learner.step(inputs, targets)) == pytest.approx(squares.mean() + penalty, rel=1e-4)
"""


@pytest.mark.parametrize(
    ("framework", "execution"),
    [if_installed("tensorflow", execution) for execution in ("eager", "graph", "xla")],
)
def test_what_keras_layers_add_to_the_loss_is_minimised(
    project: Project, framework: str, execution: str
) -> None:
    """Keras's ``fit`` does so."""
    project.write("test_it.py", _REGULARIZED)
    result = project.run("--fw-threads=1", f"--fw-execution={execution}", fw=framework)
    result.assert_outcomes(passed=1)


#: Versions that would be recorded as another execution than they have, or as another dtype.
_MISLABELLED = """
import pytest
from fwbench import Input, Model

compiled, narrow, whole = (
    Model(name, Input("batch", 4), batches=(2,)) for name in ("compiled", "narrow", "whole")
)

@compiled.implement("tensorflow")
def _(tf):
    class Net(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.last = tf.keras.layers.Dense(3)

        @tf.function(jit_compile=True)
        def call(self, x):
            return self.last(x)

    return Net()

@narrow.implement("tensorflow")
def _(tf):
    layers = tf.keras.layers
    return tf.keras.Sequential([tf.keras.Input((4,)), layers.Dense(3, dtype="mixed_bfloat16")])

@whole.implement("tensorflow")
def _(tf):
    tf.keras.config.set_dtype_policy("mixed_bfloat16")
    return tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3)])

@compiled.implement("mxnet")
def _(mx):
    x, dense = mx.sym.var("x"), mx.gluon.nn.Dense(3, in_units=4)
    return mx.gluon.SymbolBlock(dense(x), x, params=dense.collect_params())

@narrow.implement("mxnet")
def _(mx):
    dense = mx.gluon.nn.Dense(3)
    dense.cast("float16")
    return dense

@compiled.implement("jax")
def _(jax):
    return lambda own, x: x @ own, jax.numpy.ones((4, 3))

@narrow.implement("jax")
def _(jax):
    return lambda own, x: x @ own, jax.numpy.ones((4, 3), "bfloat16")

@pytest.mark.fwbench(compiled, narrow, whole)
def test_it(case):
    case.measure()
"""

_COMPILED = (
    "is compiled already ({}), and this case is 'eager'; give the model as it is before that"
)


@pytest.mark.parametrize(
    ("framework", "passed", "messages"),
    [
        if_installed("mxnet", 0, [_COMPILED.format("SymbolBlock"), "is built in float16, and"]),
        if_installed(
            "tensorflow", 0, [_COMPILED.format("Function"), *2 * ["is built in bfloat16, and"]]
        ),
        if_installed("jax", 1, ["is built in bfloat16, and this case is in float32"]),
    ],
)
def test_versions_are_what_records_say(
    project: Project, framework: str, passed: int, messages: list[str]
) -> None:
    """Neither compiled by the user where the record says eager, nor built in another dtype."""
    project.write("test_it.py", _MISLABELLED)
    execution = "jit" if framework == "jax" else "eager"
    arguments = ("--fw-threads=1", f"--fw-execution={execution}", "--fw-dtype=float32")
    result = project.run(*arguments, "--junitxml=junit.xml", fw=framework)
    outcomes = result.parseoutcomes()
    assert (outcomes.get("passed", 0), outcomes["failed"]) == (passed, len(messages))
    texts = [each.text for each in project.outcomes().values() if each.kind == "failure"]
    for message in messages:
        assert any(message in text for text in texts), texts
