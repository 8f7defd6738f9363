"""The CPUs that may be used, by affinity and by the quotas of cgroups of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fwbench import machine
from fwbench.machine import thread_variables, usable_cpus


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


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("max 100000", 8),
        ("400000 100000", 4),
        ("150000 100000", 1),
        ("299999 100000", 2),
        ("50000 100000", 1),
        ("100000 50000", 2),
        ("1600000 100000", 8),
    ],
)
def test_version_2_quota(tmp_path: Path, quota: str, expected: int) -> None:
    """A quota counts in whole CPUs, at least one, and never more than the affinity."""
    assert usable(tmp_path, "0::/job\n", {"job/cpu.max": f"{quota}\n"}) == expected


@pytest.mark.parametrize(
    ("outer", "inner", "expected"), [("2", "4", 2), ("4", "2", 2), ("4", "max", 4), ("max", "4", 4)]
)
def test_version_2_nested_groups(tmp_path: Path, outer: str, inner: str, expected: int) -> None:
    """The tightest quota counts, of the process's own group or of any around it."""

    def quota(cpus: str) -> str:
        return "max 100000\n" if cpus == "max" else f"{int(cpus) * 100_000} 100000\n"

    files = {
        "outer/cpu.max": quota(outer),
        "outer/middle/note": "a group without a CPU controller\n",
        "outer/middle/inner/cpu.max": quota(inner),
    }
    assert usable(tmp_path, "0::/outer/middle/inner\n", files) == expected


def test_version_2_groups_beside_do_not_count(tmp_path: Path) -> None:
    files = {"other/cpu.max": "100000 100000\n", "job/below/cpu.max": "100000 100000\n"}
    assert usable(tmp_path, "0::/job\n", files) == 8


def test_files_above_the_mount_do_not_count(tmp_path: Path) -> None:
    """A folder above the mount of cgroups is not a group."""
    files = {"../cpu.max": "100000 100000\n", "job/note": "a group without a quota\n"}
    assert usable(tmp_path, "0::/job\n", files) == 8


def test_version_2_in_a_container(tmp_path: Path) -> None:
    """A process that sees its own group as the root finds its quota at the mount."""
    assert usable(tmp_path, "0::/\n", {"cpu.max": "300000 100000\n"}) == 3


@pytest.mark.parametrize(
    ("quota", "expected"), [("-1", 8), ("400000", 4), ("150000", 1), ("50000", 1)]
)
@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
def test_version_1_quota(tmp_path: Path, controllers: str, quota: str, expected: int) -> None:
    """Version 1 keeps quota and period apart, below the mount of the cpu controller."""
    membership = f"12:pids:/job\n4:{controllers}:/job\n1:name=systemd:/job\n"
    files = {
        f"{controllers}/job/cpu.cfs_quota_us": f"{quota}\n",
        f"{controllers}/job/cpu.cfs_period_us": "100000\n",
    }
    assert usable(tmp_path, membership, files) == expected


def test_version_1_nested_groups(tmp_path: Path) -> None:
    files = {
        "cpu/outer/cpu.cfs_quota_us": "200000\n",
        "cpu/outer/cpu.cfs_period_us": "100000\n",
        "cpu/outer/inner/cpu.cfs_quota_us": "-1\n",
        "cpu/outer/inner/cpu.cfs_period_us": "100000\n",
    }
    assert usable(tmp_path, "4:cpu:/outer/inner\n", files) == 2


def test_version_1_in_a_container(tmp_path: Path) -> None:
    """Where the group's path is the host's and the mount the container's, the mount counts."""
    files = {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert usable(tmp_path, "4:cpu:/docker/0123\n", files) == 3


def test_other_controllers_are_passed_over(tmp_path: Path) -> None:
    files = {
        f"{controller}/cpu.{name}": "100000\n"
        for controller in ("cpuset", "cpuacct")
        for name in ("cfs_quota_us", "cfs_period_us")
    }
    assert usable(tmp_path, "5:cpuset:/\n4:cpuacct:/\n", files) == 8


@pytest.mark.parametrize("content", ["", "max", "a line that is none\n"])
def test_an_unreadable_quota_is_none(tmp_path: Path, content: str) -> None:
    """It bounds nothing, rather than ending the session."""
    assert usable(tmp_path, "0::/\n", {"cpu.max": content}) == 8


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


def test_the_machine_is_described_in_jsons_own_types() -> None:
    facts = machine.machine("Fake CPU")
    assert facts["cpu"] == "Fake CPU"
    assert facts["memory_bytes"] > 2**20
    assert {*facts} == {
        *("cpu", "cpus", "physical_cores", "usable_cpus", "memory_bytes", "os", "python"),
        "gpu_driver",
    }
    assert all(isinstance(value, str | int | None) for value in facts.values())


def test_the_cpu_has_a_name() -> None:
    assert machine.cpu_model().strip()
