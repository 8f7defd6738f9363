"""An interrupted session says what was kept, and another one measures only what is missing."""

import json

import pytest

from support.projects import Project, measuring

#: A test of two operations, one that interrupts the session while a file is there, and a plain one.
_STOPPING = (
    measuring("double, twice")
    + """

import os

def test_stop():
    if os.path.exists("stop"):
        raise KeyboardInterrupt

def test_plain(benchmark):
    benchmark.pedantic(lambda: 1, rounds=3)
"""
)

#: The case that the interrupted session does not have.
_LAST = "twice-numpy-cpu-eager-forward-float32-8"

#: The order of the tests is part of what is asked.
_IN_ORDER = ("-p", "no:randomly")


@pytest.fixture
def stopped(project: Project) -> Project:
    """A project in which a session was interrupted after the cases of one operation."""
    project.write("test_it.py", _STOPPING)
    project.write("stop", "")
    result = project.run(*_IN_ORDER, f"--deselect=test_it.py::test_it[{_LAST}]")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    (project.path / "stop").unlink()
    return project


def test_a_session_goes_on_where_another_was_interrupted(stopped: Project) -> None:
    """The records are those of both, each with its session; nothing is measured twice."""
    (journal,) = (stopped.path / ".fwbench" / "journal").glob("*.jsonl")
    lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    result, records = stopped.measure(*_IN_ORDER, "--fw-resume", "-v")
    result.assert_outcomes(passed=6)
    taken = f"3 records taken from the interrupted session of {journal.name}"
    result.stdout.fnmatch_lines([f"fwbench: {taken}"])
    earlier = {line["param"]: line for line in lines if line.get("param")}
    assert {name: records[name]["stats"]["data"] for name in earlier} == {
        name: entry["stats"]["data"] for name, entry in earlier.items()
    }
    cases = {name: entry for name, entry in records.items() if name}
    began = {n: e["extra_info"]["fwbench"].get("resumed_from") for n, e in cases.items()}
    assert began.pop(_LAST) is None
    assert [*began.values()] == [lines[0]["datetime"]] * 3
    assert stopped.session()["outcome"] == {"failed": 0, "interrupted": False}


def test_a_session_that_has_ended_well_is_not_gone_on_with(stopped: Project) -> None:
    assert stopped.run(*_IN_ORDER, "--fw-resume").ret == pytest.ExitCode.OK
    again = stopped.run(*_IN_ORDER, "--fw-resume")
    assert again.ret == pytest.ExitCode.USAGE_ERROR
    assert "has ended well; run this without --fw-resume" in str(again.stderr)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no session with the same settings is kept under "),
        (("--benchmark-disable",), "--benchmark-disable times none"),
        (("--fw-race",), "with --fw-race it depends on their results"),
        (("--fw-budget=9s",), "with --fw-budget it depends on their results"),
    ],
    ids=["nothing there", "not timed", "race", "budget"],
)
def test_what_cannot_be_gone_on_with_is_refused(
    cases: Project, arguments: tuple[str, ...], said: str
) -> None:
    cases.assert_refused(["ERROR: ", "--fw-resume", said], "--fw-resume", *arguments)


def test_other_settings_are_another_session(stopped: Project) -> None:
    """Times with other rounds, or of another number of threads, would not compare."""
    for other in ("--benchmark-max-time=0.02", "--fw-threads=1"):
        result = stopped.run(*_IN_ORDER, "--fw-resume", other)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert "no session with the same settings" in str(result.stderr)


def test_other_packages_are_told(stopped: Project) -> None:
    (journal,) = (stopped.path / ".fwbench" / "journal").glob("*.jsonl")
    head, *others = journal.read_text(encoding="utf-8").splitlines()
    facts = json.loads(head)
    facts["fwbench"]["frameworks"]["numpy"]["version"] = "1.0"
    journal.write_text("\n".join((json.dumps(facts), *others, "")), encoding="utf-8")
    result = stopped.run(*_IN_ORDER, "--fw-resume")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "was measured with other frameworks; run this without" in str(result.stderr)


def test_an_interrupted_session_says_what_was_kept(stopped: Project) -> None:
    """Its last line names the journal and how to go on; recover says that it was interrupted."""
    stopped.write("stop", "")
    result = stopped.run(*_IN_ORDER, "--benchmark-max-time=0.02")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    said = result.outlines[-1]
    assert said.startswith("fwbench: interrupted; 4 of 5 cases are kept in ")
    assert "with --fw-resume measures the others" in said
    done = stopped.python("-m", "fwbench", "recover", "-o", "recovered.json")
    assert ", whose session was interrupted, written to recovered.json" in done.stdout
    outcome = {"failed": 0, "interrupted": True}
    assert stopped.session("recovered.json")["outcome"] == outcome


_COUNTING = measuring(
    "double",
    "import os",
    body="""
        with open("order", "a") as file:
            file.write("x")
        if os.path.getsize("order") == 4:
            raise KeyboardInterrupt
        case.measure()
        """,
)


def test_the_launches_that_are_missing_are_measured(project: Project) -> None:
    """Two cases in two launches, the last of which was interrupted: one is left."""
    project.write("test_it.py", _COUNTING)
    assert project.run("--fw-launches=2").ret == pytest.ExitCode.INTERRUPTED
    result, records = project.measure("--fw-launches=2", "--fw-resume")
    result.assert_outcomes(passed=2)
    assert (project.path / "order").stat().st_size == 5
    launches = [entry["extra_info"]["fwbench"]["launches"] for entry in records.values()]
    assert [[launch["launch"] for launch in each] for each in launches] == [[0, 1], [0, 1]]
    own = [launch for each in launches for launch in each if "resumed_from" not in launch]
    assert len(own) == 1
    assert own[0]["launch"] == 1


def test_records_that_are_not_taken_over_stay_where_they_are(stopped: Project) -> None:
    (journal,) = (stopped.path / ".fwbench" / "journal").glob("*.jsonl")
    assert stopped.run(*_IN_ORDER, "--fw-resume", "-k", "double").ret == pytest.ExitCode.OK
    assert "fwbench_journal_end" not in journal.read_text(encoding="utf-8")
