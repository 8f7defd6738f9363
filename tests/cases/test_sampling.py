"""Samples of calls are folded into stacks that hold something."""

from __future__ import annotations

import sys
import time

import pytest

from fwbench.cases import sampling
from fwbench.cases.sampling import RepeatedCall, folded, sampled
from fwbench.errors import ProbeError


def test_what_holds_little_is_its_callers() -> None:
    """Two in a thousand are the least; nothing is lost, and nothing is too much."""
    seen = [("<call>", "f")] * 900 + [("<call>", "f", "rare")] + [("<call>", "f", "some", "g")] * 99
    assert folded([(s, 1.0) for s in seen]) == {"<call>;f": 901.0, "<call>;f;some;g": 99.0}
    many = folded([(("<call>", f"caller {n % 50}", f"f {n}"), 1.0) for n in range(400)])
    assert (len(many), sum(many.values())) == (50, 400)
    (stack,) = folded([(("<call>", *map(str, range(200))), 3.0)])
    assert len(stack.split(";")) == 80


def test_samples_that_come_together_tell_less() -> None:
    """Samples, as many of each function, by turns or one function after the other."""
    one, other = ("<call>", "f"), ("<call>", "g")
    assert sampling._noise([(one, 1.0), (other, 1.0)] * 500) == 1.0
    assert sampling._noise([(one, 1.0)] * 500 + [(other, 1.0)] * 500) > 40


class Reader:
    def read(self, pause_s: float) -> None:
        """Take as long in Python as in a function of C."""
        end_s = time.perf_counter() + pause_s
        while time.perf_counter() < end_s:
            pass
        time.sleep(pause_s)


def test_functions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions of C among them, and not what makes the calls."""
    monkeypatch.setattr(sampling, "_CALLS_S", 0.2)
    seen = sampled(RepeatedCall(Reader().read, 0.01, arguments=lambda: ((0.005,), {})))
    assert seen.overhead == pytest.approx((seen.call_s or 0.0) / 0.01 - 1)
    stacks = seen.stacks or {}
    assert {stack.split(";")[0] for stack in stacks} == {"<call>"}
    assert any(stack.split(";")[1].endswith("test_sampling.py:Reader.read") for stack in stacks)
    asleep = sum(number for stack, number in stacks.items() if stack.endswith("<built-in>:sleep"))
    assert 0.2 < asleep / sum(stacks.values()) < 0.8


def test_calls_that_were_over_too_soon_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "_INTERVAL_S", 1.0)  # long, also where a processor is shared
    monkeypatch.setattr(sampling, "_START_S", 0.0)
    with pytest.raises(ProbeError, match=r"^1 call under a profiler took .*: let the test make"):
        sampled(RepeatedCall(int, 1e-7, at_most=1))


def test_without_pyinstrument_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyinstrument.stack_sampler", None)
    with pytest.raises(ProbeError, match=r"pip install 'fwbench\[explain\]'"):
        sampled(RepeatedCall(int, 1.0))
