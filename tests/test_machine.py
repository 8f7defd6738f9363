"""The CPUs that may be used, by affinity and by the quotas of cgroups of both versions."""

import os
import warnings
from pathlib import Path

import pytest

from fwbench import machine
from fwbench.machine import thread_variables, usable_cpus
from support.tables import tabled


@pytest.fixture(autouse=True)
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may use eight CPUs, whatever machine it is on."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {*range(8)}, raising=False)


def usable(root: Path, membership: str, files: dict[str, str]) -> int:
    """The CPUs that may be used in a made-up hierarchy.

    Args:
        membership: what ``/proc/self/cgroup`` says.
        files: contents of files, by their path below the mount of cgroups.
    """
    contents = {f"cgroup/{name}": text for name, text in files.items()}
    for name, text in {"proc/self/cgroup": membership, **contents}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return usable_cpus(root / "proc", root / "cgroup")


@tabled
def test_version_2_quotas(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    """The tightest counts, of the process's own group or of any around it: whole CPUs, from one."""
    assert usable(tmp_path, "0::/outer/inner\n", files) == expected


def test_version_2_in_a_container(tmp_path: Path) -> None:
    """A process that sees its own group as the root finds its quota at the mount."""
    assert usable(tmp_path, "0::/\n", {"cpu.max": "300000 100000\n"}) == 3


@tabled
@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
def test_version_1_quotas(
    tmp_path: Path, controllers: str, quotas_us: dict[str, int], expected: int
) -> None:
    """Version 1 keeps quota and period apart, below the mount of the cpu controller."""
    membership = f"12:pids:/job\n4:{controllers}:/outer/inner\n1:name=systemd:/job\n"
    files = {
        f"{controllers}/{group}/cpu.cfs_{name}_us": f"{value_us}\n"
        for group, quota_us in quotas_us.items()
        for name, value_us in (("quota", quota_us), ("period", 100_000))
    }
    assert usable(tmp_path, membership, files) == expected


def test_other_controllers_are_passed_over(tmp_path: Path) -> None:
    files = {
        f"{controller}/cpu.{name}": "100000\n"
        for controller in ("cpuset", "cpuacct")
        for name in ("cfs_quota_us", "cfs_period_us")
    }
    assert usable(tmp_path, "5:cpuset:/\n4:cpuacct:/\n", files) == 8


def test_without_procfs_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_cpus(tmp_path / "proc", tmp_path / "cgroup") == 8


def test_without_affinity_all_cpus_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems that know no affinity let a process use every CPU, at least one."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert usable_cpus(tmp_path, tmp_path) == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cpus(tmp_path, tmp_path) == 1


def test_every_library_is_told_the_same_threads() -> None:
    variables = thread_variables(3)
    assert {*variables} >= {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}
    assert {*variables.values()} == {"3"}


@pytest.mark.parametrize(
    ("membership", "file", "counts"),
    [
        ("0::/job", "job/cpu.stat", "nr_throttled 3\nthrottled_usec 1500000\n"),
        ("1:cpu:/job", "cpu/job/cpu.stat", "nr_throttled 3\nthrottled_time 1500000000\n"),
    ],
)
def test_what_a_quota_has_stopped_is_known(
    tmp_path: Path, membership: str, file: str, counts: str
) -> None:
    """Quotas of either version are counted; nothing is known without a count."""
    folders = tmp_path / "proc", tmp_path / "cgroup"
    assert machine.throttled_s(*folders) is None
    for path, text in ((folders[0] / "self" / "cgroup", membership), (folders[1] / file, counts)):
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="ascii")
    assert machine.throttled_s(*folders) == 1.5


def test_threads_run_or_not(tmp_path: Path) -> None:
    """And the folder that lists them is closed, though the first that runs is enough."""
    assert not machine.threads_run(tmp_path), "a process that has ended"
    for number, states in enumerate(["S", "SS", "RS", "SR", "SRS"]):
        process = tmp_path / str(number)
        for thread, state in enumerate(states):
            path = process / "task" / str(thread) / "stat"
            path.parent.mkdir(parents=True)
            path.write_text(f"{thread} (R) (R) {state} 1 2 3\n", encoding="ascii")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert machine.threads_run(process) is ("R" in states)
        assert not [each for each in warned if "scandir" in str(each.message)]


def test_the_machine_is_described_in_jsons_own_types() -> None:
    facts = machine.machine("Fake CPU")
    assert facts["cpu"] == "Fake CPU"
    assert facts["memory_bytes"] > 2**20
    assert {*facts} == {
        *("cpu", "cpus", "physical_cores", "usable_cpus", "memory_bytes", "os", "python"),
        *("gpu_driver", "numa_nodes", "huge_pages"),
    }
    assert all(isinstance(value, str | int | None) for value in facts.values())


def test_the_cpu_has_a_name() -> None:
    assert machine.cpu_model().strip()
