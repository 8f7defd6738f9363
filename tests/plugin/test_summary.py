"""The header and the section: what stands in them, and what of a session gets there."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench import machine
from fwbench.errors import UsageError
from fwbench.plugin.session import CELL
from fwbench.plugin.summary import Summary, header, view
from fwbench.processes.session import SELECTOR
from fwbench.report.terminal.screen import Outcome, View, screen
from fwbench.terms.manifest import Absent, Device
from fwbench.terms.toggles import TOGGLES
from fwbench.workloads import COPIES, gemm
from support.fakes import cell, manifest
from support.tables import tabled
from support.terminals import entry, texts

# Header


def session(**changes: Any) -> Any:
    """The part of a session that the header needs."""
    options = SimpleNamespace(threads=2, isolation="process")
    defaults = {
        "options": options,
        "manifests": {"fake": manifest()},
        "absent": {},
        "plan": None,
        "known_toggles": TOGGLES,
        "traces": Path("traces"),
        "debugger": "",
        "ignored": [],
        "revisits": {},
    }
    return SimpleNamespace(**{**defaults, **changes})


def test_the_header_names_frameworks() -> None:
    quiet = manifest(name="quiet", version="3", threads=None, devices=(Device("cpu", "a CPU"),))
    two = session(manifests={"fake": manifest(), "quiet": quiet})
    first = "fwbench: fake, quiet; each framework in a process of its own"
    assert header(two, in_full=False) == [first]
    assert header(two, in_full=True) == [
        first,
        "  fake 1.2: cpu (Fake CPU), gpu:0 (Fake 9000); threads: 2",
        "  quiet 3: cpu (a CPU); threads: unknown",
    ]


def test_there_is_no_header_before_an_error() -> None:
    """It would name no framework, and say how each of them is measured."""
    refused: Any = session(problem=UsageError("unknown framework"), manifests={})
    config: Any = SimpleNamespace(get_verbosity=lambda: 1)
    assert Summary(refused).pytest_report_collectionfinish(config) == []


def test_the_header_names_what_is_missing() -> None:
    missing = {
        name: Absent(name, "not installed", "pip install it", missing=True)
        for name in ("jax", "torch")
    }
    broken = {"mxnet": Absent("mxnet", "does not import", "mend it")}
    lines = header(session(absent={**missing, **broken}), in_full=False)
    assert lines[1:] == [
        "  not installed: jax, torch (-v: how to install them)",
        "  mxnet: absent: does not import; mend it",
    ]
    full = header(session(absent=missing), in_full=True)
    assert full[-1] == "  torch: absent: not installed; pip install it"


@pytest.mark.parametrize("models", [[], ["NVIDIA H200"]])
def test_the_header_names_who_sees_no_gpu(
    monkeypatch: pytest.MonkeyPatch, models: list[str]
) -> None:
    """Frameworks that could measure one, on a machine that has one, with the remedy."""
    monkeypatch.setattr(machine, "gpus", lambda: {"models": models, "cuda": "12.4"})
    cpu = (Device("cpu", "a CPU"),)
    able = {"operations": (COPIES[0].name,)}
    known = {
        "able": manifest(name="able", **able),
        "tensorflow": manifest(
            name="tensorflow", build={"cuda_version": "13.0"}, devices=cpu, **able
        ),
        "blind": manifest(name="blind", devices=cpu, **able),
        "host": manifest(name="host", devices=cpu),
    }
    remedy = (
        "this build is for CUDA 13.0, and the driver for CUDA up to 12.4: update the driver, or "
        "install a build for CUDA 12.4 or earlier: "
        'fwbench env add tensorflow "tensorflow[and-cuda]"'
    )
    lines = [
        f"  tensorflow sees no GPU: {remedy}",
        "  blind sees no GPU: fwbench doctor describes its build",
    ]
    assert header(session(manifests=known), in_full=False)[1:] == (lines if models else [])


def test_the_header_warns_of_a_shared_process() -> None:
    options = SimpleNamespace(threads=1, isolation="none")
    debugged = session(options=options, debugger="--pdb")
    assert header(debugged, in_full=False)[0].endswith(": for --pdb")
    debugged.ignored = ["fw_launches", "fw_gate"]
    message = "  ignored with --pdb: fw_launches, fw_gate of the ini file"
    assert header(debugged, in_full=False)[1:] == [message]
    first = header(session(options=options), in_full=False)[0]
    assert first.startswith("fwbench: fake; all frameworks in this process, where they disturb")


class Page:
    isatty = False
    verbosity = 0

    def __init__(self, *plugins: str) -> None:
        self.lines = [""]
        self.config = SimpleNamespace(
            invocation_params=SimpleNamespace(dir=Path("/here")),
            pluginmanager=pytest.PytestPluginManager(),
            getoption=lambda name: None,
        )
        for name in plugins:
            self.config.pluginmanager.register(object(), name)

    def section(self, title: str, **markup: Any) -> None:
        self.lines = [f"== {title}", ""]

    def write(self, text: str, **markup: bool) -> None:
        self.lines[-1] += text

    def line(self, text: str) -> None:
        self.lines[-1] = self.lines[-1].rstrip()
        self.lines.append("")

    def hasopt(self, char: str) -> bool:
        """True where pytest lists tests of an outcome."""
        return False


@pytest.mark.parametrize(
    ("lines", "isatty", "height"), [("50", True, 30), ("50", False, 40), ("9", True, -11)]
)
def test_a_table_leaves_room_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, lines: str, isatty: bool, height: int
) -> None:
    """It is as long as what else is printed lets it be; a log has no height."""
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("LINES", lines)
    page: Any = Page()
    page.isatty = isatty
    assert view(page) == View(width=30, height=height)


def printed(summary: Summary, error: Exception | None = None, *plugins: str) -> list[str]:
    """The lines of the summary after pytest-benchmark's tables, or after their failure."""
    page: Any = Page(*plugins)
    hook = summary.pytest_terminal_summary(page)
    next(hook)
    if error is None:
        with pytest.raises(StopIteration):
            next(hook)
    else:
        with pytest.raises(type(error)):
            hook.throw(error)
    return page.lines[:-1]  # type: ignore[no-any-return]


def report(**values: Any) -> Any:
    """A test report, as far as the summary looks at it."""
    defaults = {
        "outcome": "",
        "failed": False,
        "skipped": False,
        "keywords": {"fwbench": 1},
        "longrepr": None,
    }
    return SimpleNamespace(**{**defaults, **values})


def test_without_anything_to_say_there_is_no_section() -> None:
    assert printed(Summary(session())) == []


@pytest.mark.parametrize("error", [None, RuntimeError("comparison failed")])
def test_records_and_skips_are_summed_up(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    summary = Summary(session())
    summary.pytest_runtest_logreport(report(fwbench={"entry": entry("a")}))
    gap = ("test_it.py", 3, "Skipped: torch has no float16")
    summary.pytest_runtest_logreport(report(skipped=True, longrepr=gap))
    assert printed(summary, error) == [
        "== fwbench",
        *texts(screen(Outcome([entry("a")], ["torch has no float16"]), View(width=80))),
    ]


def test_a_launch_of_a_comparison_sums_up_only_why_it_has_measured_nothing() -> None:
    """Nobody reads its times, and what makes the section takes a fifth of a second to import."""
    summary = Summary(session())
    gap = ("test_it.py", 3, "Skipped: torch has no float16")
    summary.pytest_runtest_logreport(report(skipped=True, longrepr=gap))
    said = printed(summary, None, SELECTOR)
    assert said == ["== fwbench", "skipped 1 case: torch has no float16"]
    summary.pytest_runtest_logreport(report(fwbench={"entry": entry("a")}))
    assert printed(summary, None, SELECTOR) == []


def test_the_report_to_write_is_of_the_stored_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    summary = Summary(session(), lambda: Path("/here/of mine/1.json"))
    summary.pytest_runtest_logreport(report(fwbench={"entry": entry("a")}))
    assert "Next: charts: fwbench report 'of mine/1.json' -o run.html" in printed(summary)


@tabled
def test_other_reports_are_not_summed_up(values: dict[str, Any]) -> None:
    summary = Summary(session())
    summary.pytest_runtest_logreport(report(**values))
    assert printed(summary) == []


def test_a_case_that_failed_is_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its cell, which its report does not have; other tests are pytest's to report."""
    monkeypatch.setenv("COLUMNS", "80")
    summary = Summary(session())
    item = SimpleNamespace(nodeid="test_it[x]", stash={CELL: cell(gemm, framework="torch", size=8)})
    collected: Any = SimpleNamespace(items=[item, SimpleNamespace(nodeid="other", stash={})])
    summary.pytest_collection_finish(collected)
    for nodeid in ("test_it[x]", "other"):
        summary.pytest_runtest_logreport(report(nodeid=nodeid, failed=True))
    summary.pytest_runtest_logreport(report(fwbench={"entry": entry("numpy")}))
    assert [line for line in printed(summary) if "failed" in line] == ["gemm 8    1 s  failed"]
