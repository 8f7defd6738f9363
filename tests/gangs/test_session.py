"""Sessions with replicas, as users start them."""

import json

import pytest

from support.projects import Project, refusals

#: Kills a worker of the first case, once it is there; notes which processes do each case.
_FRAIL = """
import os, signal, threading, time
from pathlib import Path
import pytest
from fwbench.workloads import all_reduce, gemm

def workers(case):
    gang = case._gangs._gang if case.cell.gang else None
    return gang.pids if gang else []

def kill(case):
    while len(workers(case)) < 2:
        time.sleep(0.02)
    os.kill(workers(case)[1], signal.SIGKILL)

@pytest.mark.fwbench(gemm, all_reduce, sizes=(8, 16, 32))
def test_it(case):
    if case.cell.gang and not Path("killed").exists():
        Path("killed").touch()
        threading.Thread(target=kill, args=[case], daemon=True).start()
    case.measure()
    with Path("cases").open("a") as cases:
        print(case.cell.size, case.cell.replicas, *workers(case), file=cases)
"""

_ID = "test_it[all_reduce-numpy-cpu-eager-forward-float32-{}-replicas:{}-strategy:allreduce]"


@pytest.mark.serial
def test_a_gang_that_fails_fails_its_case_alone(project: Project) -> None:
    """The next cases have a new one, and share it; one of another number comes after it has gone.

    Cases of gangs come last.
    """
    project.write("test_it.py", _FRAIL)
    arguments = ("--fw-replicas=2,3", "--junitxml=junit.xml", "--benchmark-json=run.json")
    result = project.run(*arguments)
    result.assert_outcomes(passed=8, failed=1)
    failed = project.outcomes()[_ID.format(8, 2)]
    assert "GangFailed: worker 1 of 2 was killed by SIGKILL" in failed.text
    cases = [tuple(map(int, line.split())) for line in project.lines("cases")]
    assert [case[:2] for case in cases] == [
        *((8, 1), (16, 1), (32, 1)),
        *((16, 2), (32, 2), (8, 3), (16, 3), (32, 3)),
    ]
    gangs = [{*case[2:]} for case in cases[3:]]
    assert [len(gang) for gang in gangs] == [2, 2, 3, 3, 3]
    assert gangs[0] == gangs[1]
    assert gangs[2] == gangs[3] == gangs[4]
    assert not gangs[0] & gangs[2]
    run = json.loads((project.path / "run.json").read_text())
    records = [record["extra_info"]["fwbench"] for record in run["benchmarks"]]
    assert [record["gang"]["replicas"] for record in records if "gang" in record] == [2, 2, 3, 3, 3]


@refusals("gangs")
def test_what_does_not_go_together_is_refused(
    project: Project, given: str, said: list[str]
) -> None:
    project.write("test_it.py", _FRAIL)
    project.assert_refused(said, *given.split())


def test_too_few_places_are_refused_before_anything_is_measured(project: Project) -> None:
    """They are too few for the largest of the gangs that are selected, not of all that are asked.

    What would be measured without a gang is not measured either.
    """
    project.write("test_it.py", _FRAIL)
    (project.path / "places.toml").write_text('[[place]]\ncommand = ["env"]\nroles = 2')
    result = project.run("--fw-replicas=2,3", "-ofw_places=places.toml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    output = "\n".join([*result.outlines, *result.errlines])
    assert "a gang of 3 processes needs as many places, and " in output
    assert "places.toml has 2: add places, or roles to a place" in output
    assert not (project.path / "cases").exists()
    result = project.run("--fw-replicas=2,3", "-ofw_places=places.toml", "-k=gemm")
    result.assert_outcomes(passed=3, deselected=6)


def test_without_replicas_a_collective_says_what_it_needs(project: Project) -> None:
    project.write("test_it.py", _FRAIL)
    result = project.run("-k", "all_reduce", "-rs")
    result.assert_outcomes(skipped=3)
    result.stdout.fnmatch_lines(["*all_reduce is between replicas: add --fw-replicas 2*"])
