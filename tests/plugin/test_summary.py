"""The header and the summary say what was compared, what was misread and what is not known."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.manifest import Absent, Device
from fwbench.plugin.summary import Summary, header
from fwbench.report.terminal import section
from fwbench.toggles import TOGGLES
from support.fakes import manifest


def entry(framework: str, completion_s: float = 1.0, **facts: Any) -> dict[str, Any]:
    """An entry of pytest-benchmark's JSON, as far as it is printed from.

    Args:
        framework: whose.
        completion_s: of a call.
        facts: what else is under ``extra_info``, and the ``group``.
    """
    group = facts.pop("group", "gemm")
    values = {
        "framework": framework,
        "execution": "eager",
        "workload": group,
        "device": "cpu",
        "direction": "forward",
        "dtype": "float32",
        "size": 8,
        "completion_s": completion_s,
        "dispatch_s": completion_s,
        "steady": True,
        **facts,
    }
    return {"group": group, "param": f"{group}-{framework}", "extra_info": {"fwbench": values}}


def said(*records: dict[str, Any], skips: tuple[str, ...] = ()) -> str:
    """The section as one text."""
    return "\n".join(section(records, skips))


# Header


def session(**changes: Any) -> Any:
    """What the header needs to know of a session."""
    options = SimpleNamespace(threads=2, isolation="process")
    defaults = {
        "options": options,
        "manifests": {"fake": manifest()},
        "absent": {},
        "plan": None,
        "known_toggles": TOGGLES,
        "debugger": "",
    }
    return SimpleNamespace(**{**defaults, **changes})


def test_the_header_names_frameworks_devices_and_threads() -> None:
    """Each framework has a line with its version, its devices and its threads."""
    quiet = manifest(name="quiet", version="3", threads=None, devices=(Device("cpu", "a CPU"),))
    assert header(session(manifests={"fake": manifest(), "quiet": quiet})) == [
        "fwbench: 2 threads; each framework in a process of its own",
        "  fake 1.2: cpu (Fake CPU), gpu:0 (Fake 9000); threads: 2",
        "  quiet 3: cpu (a CPU); threads: unknown",
    ]


def test_the_header_names_what_is_missing() -> None:
    """A framework that cannot be used has a line with the reason and what to do."""
    absent = Absent("torch", "not installed", "pip install it")
    lines = header(session(absent={"torch": absent}))
    assert lines[-1] == "  torch: absent: not installed; pip install it"


def test_the_header_warns_of_a_shared_process() -> None:
    """Without isolation the header says that frameworks disturb each other."""
    options = SimpleNamespace(threads=1, isolation="none")
    assert header(session(options=options, debugger="--pdb"))[0].endswith(": for --pdb")
    first = header(session(options=options))[0]
    assert first.startswith("fwbench: 1 thread; all frameworks in this process, where they disturb")


# Geometric means


def test_means_are_against_the_fastest_of_each_group() -> None:
    """Every case counts by its ratio to the fastest of its group, whichever framework that is."""
    found = section(
        [
            entry("a", 1.0, group="small"),
            entry("b", 4.0, group="small"),
            entry("a", 90.0, group="large"),
            entry("b", 10.0, group="large"),
            entry("b", 3.0, group="alone"),
        ],
        (),
    )
    # a: sqrt(1 x 9); b: sqrt(4 x 1). Who is alone has won nothing.
    assert found == [
        (
            "operations, forward: geometric mean of the median times against the fastest, over "
            "2 cases, and over the 2 of largest size:"
        ),
        "  b eager      2.00x     2.00x",
        "  a eager      3.00x     3.00x",
    ]


def test_executions_of_a_framework_are_counted_apart() -> None:
    """Each execution is a contestant of its own, and names are aligned."""
    found = section([entry("a", 2.0), entry("a", 1.0, execution="graph")], ())
    assert found[1:] == ["  a graph      1.00x     1.00x", "  a eager      2.00x     2.00x"]


def test_contestants_with_toggles_are_counted_apart() -> None:
    """By the values that were asked for, and not by those that are the same for all."""
    slow, fast = (
        {
            **entry("a", seconds, toggles={"onednn": onednn, "blas": "mkl"}),
            "params": {"onednn": onednn},
        }
        for seconds, onednn in ((2.0, "off"), (1.0, "on"))
    )
    lines = section([slow, fast], ())[1:]
    assert [line.split("  ")[1] for line in lines] == ["a eager onednn=on", "a eager onednn=off"]


def test_who_lacks_cases_is_listed_below() -> None:
    """With how many it has, and without shrinking the set that the others share."""
    records = [entry(name, group=f"work {i}") for name in "ab" for i in range(4)]
    found = section([*records, entry("c", 0.1, group="work 0")], ())
    assert "over 4 cases" in found[0]
    assert found[-1] == "  c eager  not ranked: 1 of 4 cases"
    assert found[1].endswith("1.00x     1.00x")


def test_noop_is_no_contestant() -> None:
    """noop counts in no mean, and has a line of its own with the least of its times."""
    noop = {"workload": "noop", "group": "noop"}
    found = section(
        [
            *(entry("a"), entry("b"), entry("a", 3e-6, **noop), entry("a", 2e-6, **noop)),
            entry("b", 5e-7, **noop),
        ],
        (),
    )
    assert found[1:] == [
        "  a eager      1.00x     1.00x",
        "  b eager      1.00x     1.00x",
        (
            "noop, which harness and framework take to do nothing (not subtracted): "
            "a eager 2 us, b eager 500 ns"
        ),
    ]


def test_noop_alone_has_no_means() -> None:
    """Without a contestant there is no ranking."""
    assert "geometric mean" not in said(entry("a", workload="noop"))


# What is in doubt


def test_doubts_are_said_before_any_number() -> None:
    """Contended cases are counted in the first line, and take no part in the means."""
    busy = {"condition": "contended", "others_cpus": 1.8}
    records = [entry("a", group="gemm"), entry("b", 99.0, group="gemm", **busy)]
    first, *others = section(records, (), cpus=2)
    assert first.startswith("other processes used 1.8 of 2 CPUs during 1 of 2 cases (contended)")
    assert "99" not in "".join(others)


# Dispatch


def test_the_largest_difference_of_dispatch_and_completion_is_told() -> None:
    """A framework whose calls return early is named once, with its most misleading case."""
    lines = said(
        entry("lazy", 20e-3, dispatch_s=1e-3, group="gemm"),
        entry("lazy", 18e-3, dispatch_s=90e-6, group="dot"),
        entry("lazy", 3e-3, dispatch_s=2e-3, group="relu"),
        entry("prompt", 5e-3),
    ).splitlines()
    (line,) = (line for line in lines if "returned" in line)
    assert line == (
        "lazy: 2 cases returned in less than half the time that the work took; most of all "
        "dot-lazy: returned after 90 us, done after 18 ms (200x)"
    )


@pytest.mark.parametrize(("dispatch_s", "told"), [(0.5, False), (0.49, True), (0.0, True)])
def test_half_the_time_is_no_news(dispatch_s: float, told: bool) -> None:
    """Only what returned in less than half the time is told, also where it took no time at all."""
    assert ("1 case returned" in said(entry("a", 1.0, dispatch_s=dispatch_s))) is told


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1234.0, "1234 s"),
        (12.34, "12.3 s"),
        (1.0, "1 s"),
        (0.9999, "1000 ms"),
        (0.25, "250 ms"),
        (0.001, "1 ms"),
        (0.0009999, "1000 us"),
        (1.5e-6, "1.5 us"),
        (9.996e-7, "1000 ns"),
        (2.5e-8, "25 ns"),
        (0.0, "0 s"),
    ],
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    """Times have three digits and a unit that fits, and never an exponent."""
    assert said(entry("a", seconds, workload="noop")).endswith(f": a eager {text}")


# What is not known


@pytest.mark.parametrize(
    ("count", "names"),
    [(1, "0-a"), (3, "0-a, 1-a, 2-a"), (5, "0-a, 1-a, 2-a and 2 more")],
)
def test_unsteady_cases_are_named(count: int, names: str) -> None:
    """Cases whose warm-up did not settle are named, the first three of them, with what may help."""
    unsteady = [entry("a", steady=False, group=str(i)) for i in range(count)]
    lines = section([entry("a", steady=None), entry("a"), *unsteady], ())
    assert lines[-2] == f"not steady when its warm-up ended: {names}"
    assert "--fw-warmup" in lines[-1]


def test_what_was_not_warmed_up_is_not_called_unsteady() -> None:
    """Neither steady cases nor those without a warm-up are named."""
    assert "not steady" not in said(entry("a", steady=None), entry("a", steady=True))


def test_skips_are_counted_by_reason() -> None:
    """Every reason is said once, the most frequent first."""
    reasons = ("numpy offers no gradients", "noop has no gradient", "noop has no gradient")
    assert section([], reasons) == [
        "skipped 2 cases: noop has no gradient",
        "skipped 1 case: numpy offers no gradients",
    ]


# The section in the terminal


class Page:
    """A terminal that keeps what is written."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def section(self, title: str, **markup: Any) -> None:
        """Write a title."""
        self.lines.append(f"== {title}")

    def line(self, text: str, **markup: Any) -> None:
        """Write a line."""
        self.lines.append(text)


def printed(summary: Summary, error: Exception | None = None) -> list[str]:
    """What the summary prints after pytest-benchmark's tables, or after their failure."""
    page: Any = Page()
    hook = summary.pytest_terminal_summary(page)
    next(hook)
    if error is None:
        with pytest.raises(StopIteration):
            next(hook)
    else:
        with pytest.raises(type(error)):
            hook.throw(error)
    return page.lines  # type: ignore[no-any-return]


def report(**values: Any) -> Any:
    """A test report, as far as the summary looks at it."""
    defaults = {"outcome": "", "skipped": False, "keywords": {"fwbench": 1}, "longrepr": None}
    return SimpleNamespace(**{**defaults, **values})


def test_without_anything_to_say_there_is_no_section() -> None:
    """A session without cases ends as if fwbench were not there."""
    assert printed(Summary(session())) == []


@pytest.mark.parametrize("error", [None, RuntimeError("comparison failed")])
def test_records_and_skips_are_summed_up(error: Exception | None) -> None:
    """What reports brought is printed after the tables, also when their comparison fails."""
    summary = Summary(session())
    summary.pytest_runtest_logreport(report(fwbench={"entry": entry("a")}))
    gap = ("test_it.py", 3, "Skipped: torch has no float16")
    summary.pytest_runtest_logreport(report(skipped=True, longrepr=gap))
    assert printed(summary, error) == [
        "== fwbench",
        *section([entry("a")], ["torch has no float16"]),
    ]


@pytest.mark.parametrize(
    "values",
    [
        {"longrepr": "an error"},
        {"skipped": True, "longrepr": ("f.py", 1, "Skipped: x"), "keywords": {}},
        {"skipped": True, "longrepr": "an expected failure"},
    ],
    ids=["failed", "no case", "expected failure"],
)
def test_other_reports_are_not_summed_up(values: dict[str, Any]) -> None:
    """Failures, tests that are no cases and expected failures are pytest's to report."""
    summary = Summary(session())
    summary.pytest_runtest_logreport(report(**values))
    assert printed(summary) == []
