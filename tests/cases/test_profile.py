"""A case is profiled: what it records, and what has no profile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from fwbench.cases.case import Case
from fwbench.cases.probes import profile
from fwbench.errors import ProbeError
from fwbench.frameworks import profiler
from fwbench.frameworks.profiler import Operator, Profiler
from fwbench.measure.clock import Clock
from fwbench.records.facts import CaseFacts, Profile
from fwbench.testing import FakeFramework
from support.fakes import case_of, cell, operation


@dataclass
class Seen(Profiler):
    """A profiler that has seen what a test says."""

    operators: Sequence[Operator] = ()
    calls: list[int] = field(default_factory=list)
    framework: FakeFramework | None = None

    def profile(self, work: Callable[[], object], trace: Path) -> Sequence[Operator]:
        """Returns them, and counts the calls before it and in it."""
        assert self.framework is not None
        self.calls.append(len(self.framework.called))
        work()
        self.calls.append(len(self.framework.called))
        trace.write_text("{}", encoding="utf-8")
        return self.operators


class Profiled(FakeFramework):
    """The fake framework with a profiler."""

    seen: Any = None

    def profiler(self, device: str) -> Profiler | None:
        """Returns it, or raises what it is."""
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen


def profiled(seen: Any, folder: Path) -> tuple[CaseFacts, Case]:
    """What the probe finds out about a case, and the case."""
    framework = Profiled()
    framework.seen = seen
    if isinstance(seen, Seen):
        seen.framework = framework
    found: list[CaseFacts] = []

    def probe(case: Case, clock: Clock) -> None:
        found.append(profile(case, clock, folder))

    case = case_of(cell(operation()), framework, probe=probe)
    case.measure()
    return found[0], case


def test_a_profile_is_recorded(tmp_path: Path) -> None:
    """Shares by class, operators of a call with most time first, and the trace's name."""
    seen = Seen(
        [
            Operator("conv", profiler.CONVOLUTION, 3.0, 6),
            Operator("relu", profiler.ELEMENTWISE, 1.5, 3),
            Operator("conv", profiler.CONVOLUTION, 1.5, 3),
        ]
    )
    facts, case = profiled(seen, tmp_path)
    found = facts.profile
    assert found is not None
    assert found.shares == {profiler.CONVOLUTION: 0.75, profiler.ELEMENTWISE: 0.25}
    assert found.operators_s == 2.0
    assert [(each.name, each.time_s, each.calls) for each in found.operators or ()] == [
        *(("conv", 1.5, 3.0), ("relu", 0.5, 1.0))
    ]
    assert found.call_s == 2.0**-10 + 2.0**-4
    assert found.calls == 3
    assert [path.name for path in tmp_path.iterdir()] == [found.trace]
    assert found.trace == "double-fake-cpu-eager-forward-float32-4.json"
    assert Profile.checked(dict(found)) == found
    # Nothing is verified or timed, and nobody complains about it.
    assert seen.calls == [3, 6]
    assert case.benchmark.extra_info == {}


def test_ten_operators_are_kept(tmp_path: Path) -> None:
    """Shares are of all of them."""
    many = [Operator(f"op{n}", profiler.OTHER, 1.0, 1) for n in range(20)]
    facts, _ = profiled(Seen([*many, Operator("top", profiler.MATMUL, 20.0, 1)]), tmp_path)
    found = facts.profile
    assert found is not None
    assert found.shares == pytest.approx({profiler.MATMUL: 0.5, profiler.OTHER: 0.5})
    assert [each.name for each in found.operators or ()][:2] == ["top", "op0"]
    assert len(found.operators or ()) == 10


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (None, "fake has no profiler"),
        (ImportError("No module named 'x'"), "of fake cannot be imported: No module named 'x'"),
        (Seen(), "the profiler of fake has seen no operator"),
    ],
    ids=["no profiler", "not importable", "nothing seen"],
)
def test_what_has_no_profile_says_why(seen: Any, reason: str, tmp_path: Path) -> None:
    """One sentence, from which the gap in the record is made."""
    with pytest.raises(ProbeError, match=reason):
        profiled(seen, tmp_path)


def test_the_overhead_is_against_the_time_of_a_call() -> None:
    """Of a training loop, against that of a step."""
    found = Profile(call_s=3.0)
    assert CaseFacts(completion_s=2.0, profile=found).profile_overhead == 0.5
    assert CaseFacts(completion_s=200.0, step_s=2.0, profile=found).profile_overhead == 0.5
    assert CaseFacts(completion_s=2.0, profile=Profile(gap="none")).profile_overhead is None
    assert CaseFacts(completion_s=2.0).profile_overhead is None
