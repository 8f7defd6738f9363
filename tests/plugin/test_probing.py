"""Cases are run again for probes, in processes of their own; what comes of it fails no case."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench.frameworks.probes import PROFILE, UNTIL_VARIABLE, VARIABLE
from fwbench.measure.clock import Clock
from fwbench.plugin.probing import FOUND, probe_of_worker
from support import fakes
from support.projects import Project, measuring
from support.tables import tabled

_ID = "double-numpy-cpu-eager-forward-float32-4"

_CASES = measuring(
    "double, sizes=(4,)",
    "import os",
    body="""
        with open("processes", "a") as file:
            print(os.getpid(), file=file)
        assert case.measure() is not None
    """,
)

#: What gives NumPy a profiler, in every process of a session.
_PROFILED = """
from fwbench.frameworks import profiler
from fwbench.frameworks.numpy.framework import NumPy

class Seen(profiler.Profiler):
    def profile(self, work, trace):
        work()
        trace.write_text("[]")
        PROFILE
        return [
            profiler.Operator("double", "elementwise", 1e-6, 3),
            profiler.Operator("x", profiler.OTHER, 1e-6, 3),
        ]

NumPy.profiler = lambda self, device: Seen()
"""


@pytest.fixture
def profiled(project: Project) -> Project:
    """A project in which NumPy has a profiler."""
    project.write("test_it.py", _CASES)
    project.write("conftest.py", _PROFILED.replace("PROFILE", ""))
    return project


def profile_of(records: dict[str, Any]) -> dict[str, Any]:
    """The profile in the record of the only case."""
    figures: dict[str, Any] = records[_ID]["extra_info"]["fwbench"]["profile"]
    return figures


def test_a_profile_is_in_the_record(profiled: Project) -> None:
    result, records = profiled.measure("--fw-profile", "--fw-launches=2", "-v")
    result.assert_outcomes(passed=1)
    profile = profile_of(records)
    assert profile["shares"] == {"elementwise": 0.5, "other": 0.5}
    processes = profiled.lines("processes")
    assert len({*processes}) == len(processes) == 3
    trace = profiled.path / ".fwbench" / "traces" / profile["trace"]
    assert json.loads(trace.read_text()) == []
    result.stdout.fnmatch_lines(
        [
            "where the time goes, by the frameworks' own profilers:",
            f"  {_ID}: elementwise 50%, other 50% within 0 points (profiler: *)",
            f"traces for https://ui.perfetto.dev: {trace.parent}",
        ]
    )


def test_a_session_for_profiles_needs_one_process(
    profiled: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And begins no profile but its first when its time is over."""
    profiled.write("test_it.py", _CASES.replace("(4,)", "(4, 8)"))
    monkeypatch.setenv(VARIABLE, PROFILE)
    monkeypatch.setenv(UNTIL_VARIABLE, str(time.monotonic()))
    result, records = profiled.measure("--fw-profile")
    result.assert_outcomes(passed=2)
    assert len({*profiled.lines("processes")}) == 1
    assert profile_of(records)["shares"] == {"elementwise": 0.5, "other": 0.5}
    later = records[f"{_ID.removesuffix('4')}8"]["extra_info"]["fwbench"]["profile"]
    assert later == {"gap": "the time for it was over"}


@tabled
def test_a_profiler_that_fails_is_a_gap(profiled: Project, what: str, reason: str) -> None:
    profiled.write("conftest.py", _PROFILED.replace("PROFILE", what))
    result, records = profiled.measure("--fw-profile")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 case profiled, 1 without a result: -v *"])
    gap = profile_of(records)["gap"]
    assert gap.startswith(reason.rstrip("*"))
    assert "\n" not in gap


def test_a_framework_without_a_profiler_is_a_gap(project: Project) -> None:
    """Unless its functions can be sampled; the traces' folder is created where it is wanted."""
    project.write("test_it.py", _CASES)
    project.write("packages/pyinstrument.py", "raise ImportError('not here')")
    result, records = project.measure("--fw-profile", "-ofw_traces=some/traces")
    result.assert_outcomes(passed=1)
    gap = profile_of(records)["gap"]
    assert gap.startswith("numpy has no profiler; functions are sampled by pyinstrument, which ")
    assert gap.endswith("(not here): pip install 'fwbench[explain]'")
    assert (project.path / "some" / "traces").is_dir()


def test_memory_is_in_the_record(project: Project) -> None:
    project.write("test_it.py", _CASES)
    result, records = project.measure("--fw-memory", "-v")
    result.assert_outcomes(passed=1)
    memory = records[_ID]["extra_info"]["fwbench"]["memory"]
    assert memory["peak_bytes"] >= memory["bound_bytes"] > 0
    assert memory["before_bytes"] > 0
    assert (memory["planned_bytes"], memory["saved_bytes"]) == (None, None)
    assert "forward_memory" not in records[_ID]["extra_info"]["fwbench"]
    assert len({*project.lines("processes")}) == 2
    result.stdout.fnmatch_lines(["peak memory above *:", f"  {_ID}: forward * MiB"])


@pytest.mark.parametrize("is_of_gang", [True, False])
def test_times_stand_whatever_a_probe_raises(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_of_gang: bool
) -> None:
    """Replicas are several processes, of which a probe would see one."""
    monkeypatch.setenv(VARIABLE, PROFILE)
    sent: list[tuple[str, Any]] = []
    probe = probe_of_worker(tmp_path, lambda *message: sent.append(message))
    assert probe is not None
    case: Any = SimpleNamespace(cell=fakes.cell(toggles=(("replicas", "2"),) * is_of_gang))
    probe(case, Clock())
    ((kind, facts),) = sent
    assert kind == FOUND
    wrong = "a case of 2 replicas cannot be profiled" if is_of_gang else "AttributeError: "
    assert facts["profile"]["gap"].startswith(wrong)


def test_a_probe_that_dies_is_a_gap(project: Project) -> None:
    project.write("test_it.py", _CASES)
    project.write("conftest.py", "import os\nif os.environ.get('FWBENCH_PROBE'): os._exit(7)\n")
    result, records = project.measure("--fw-memory", "--fw-profile")
    result.assert_outcomes(passed=1)
    facts = records[_ID]["extra_info"]["fwbench"]
    for probe in ("memory", "profile"):
        assert "exit status 7" in facts[probe]["gap"]


def test_without_the_option_nothing_is_run_again(project: Project) -> None:
    project.write("test_it.py", _CASES)
    _, records = project.measure()
    assert "profile" not in records[_ID]["extra_info"]["fwbench"]
    assert len(project.lines("processes")) == 1


@tabled
def test_what_cannot_be_is_refused(
    project: Project, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    project.write("test_it.py", _CASES)
    result = project.run("--fw-profile", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len([line for line in result.errlines if all(word in line for word in words)]) == 1
    assert project.lines("processes") == []
