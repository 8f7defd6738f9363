"""The fake framework and its clock: they do what their users' tests are built on."""

import numpy as np
import pytest

from fwbench.testing import Differentiable, FakeFramework, HandClock, to_bfloat16
from support import programs


def test_nothing_moves_the_clock_but_its_user() -> None:
    """A clock shows 0 until time is spent; enqueued work takes its time when it is waited for."""
    clock = HandClock()
    assert clock() == clock() == 0.0
    clock.enqueue(2.0)
    assert clock() == 0.0
    clock.spend(0.5)
    clock.enqueue(1.0)
    clock.wait()
    assert clock() == 3.0, "the second piece of work began when the first was done"
    clock.wait()
    assert clock() == 3.0


def test_a_call_takes_the_time_that_is_set() -> None:
    """Dispatch is spent at once, work when it is waited for; the first call costs more."""
    fake = FakeFramework(dispatch_s=0.25, work_s=4.0, first_s=8.0)
    run = fake.forward(lambda np: np.negative, [np.ones(2)], "eager")
    run()
    assert fake.clock() == 8.25
    fake.clock.wait()
    assert fake.clock() == 12.25
    run()
    assert fake.clock() == 12.5
    assert fake.to_numpy(run()).tolist() == [-1.0, -1.0]
    assert fake.clock() == 12.25 + 0.25 + 2 * 4.0
    synchronous = FakeFramework(asynchronous=False, dispatch_s=0.25, work_s=4.0)
    assert synchronous.waiter("cpu") is None
    synchronous.forward(lambda np: np.negative, [np.ones(2)], "eager")()
    assert synchronous.clock() == 4.25


def test_gradients_are_derived() -> None:
    """The gradient of a function without one is derived, for any shape of the result."""
    rng = np.random.default_rng(0)
    x, y, g = (rng.standard_normal((3, 3)) for _ in range(3))
    fake = FakeFramework()
    run = fake.backward(lambda np: np.matmul, [x, y], (1, 0), g, "eager")
    result, (by_y, by_x) = run()
    np.testing.assert_array_equal(result, x @ y)
    np.testing.assert_allclose(by_y, x.T @ g, rtol=1e-12)
    np.testing.assert_allclose(by_x, g @ y.T, rtol=1e-12)


def test_a_gradient_of_its_own_is_used() -> None:
    """A test decides what gradient a function has."""
    twice = Differentiable(lambda x: 2.0 * x, lambda g, x: [7.0 * g])
    assert twice(3.0) == 6.0
    run = FakeFramework().backward(lambda np: twice, [1.0], (0,), 2.0, "eager")
    assert run() == (2.0, [14.0])


def test_what_it_does_not_have_is_refused() -> None:
    """Devices and executions that it does not declare raise, and the message names its own."""
    fake = FakeFramework()
    with pytest.raises(ValueError, match=r"no device 'gpu:1'; it has cpu, gpu:0"):
        fake.creator("gpu:1", "float32")
    with pytest.raises(ValueError, match="no device"), fake.scope("tpu", "float32"):
        pass
    with pytest.raises(ValueError, match=r"no execution 'xla'; it has eager, graph, compile"):
        fake.forward(lambda np: np.negative, [], "xla")
    with pytest.raises(ValueError, match="no execution"):
        fake.backward(lambda np: np.negative, [], (), None, "xla")


def test_memory_of_the_gpu_is_watched() -> None:
    """Arrays created on the GPU count, from when the watch began; the CPU's are not watched."""
    fake = FakeFramework()
    fake.creator("gpu:0", "float64")([1.0, 2.0])
    cpu, gpu = fake.watch_memory("cpu"), fake.watch_memory("gpu:0")
    fake.creator("cpu", "float64")([1.0])
    assert (cpu(), gpu()) == (None, None)
    fake.creator("gpu:0", "float32")([1.0, 2.0])
    assert gpu() == 8


def test_bfloat16_has_eight_bits() -> None:
    """The nearest number of bfloat16, of arrays and of results computed in its scope."""
    assert to_bfloat16(np.array([1.0 + 2.0**-10, 1.0 + 2.0**-7])).tolist() == [1.0, 1.0 + 2.0**-7]
    fake = FakeFramework()
    run = fake.forward(lambda np: lambda x: x + 2.0**-10, [np.float32(1.0)], "eager")
    assert run() == 1.0 + 2.0**-10
    with fake.scope("cpu", "bfloat16"):
        assert run() == 1.0


def test_importing_it_imports_no_pytest() -> None:
    """It can be used by tests of any runner."""
    code = "import sys, fwbench.testing; raise SystemExit('pytest' in sys.modules)"
    programs.output("-c", code)
