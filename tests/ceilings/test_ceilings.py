"""What a machine can do at most is measured, kept, and told of records: right where it is known."""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fwbench import cli, machine
from fwbench.ceilings import ceilings
from fwbench.ceilings.ceilings import Ceiling, Ceilings
from fwbench.cli import doctor
from fwbench.errors import StorageError, SuiteError
from fwbench.frameworks import registry
from fwbench.processes import session as suites
from fwbench.records.journal import Journal, journal_folder
from support.fakes import entry as entry_of_journal
from support.fakes import manifest
from support.projects import Project

#: As short as can be measured; no test asks how long anything takes.
_QUICKLY = ("--fw-warmup=0", "--benchmark-max-time=0.01", "--benchmark-min-rounds=1", "-v")

_BY = {"float32": "fake 1.2", "copy": "other 0.1"}

#: Powers of two, so that what follows from them is exact.
CEILING = Ceiling({"float32": 2.0**30, "float16": 2.0**32}, 2.0**20, {**_BY, "float16": "fake 1.2"})


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this session was started with is no business of those that tests start."""
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)


# What is attainable


@pytest.mark.parametrize(
    ("flops", "moved_bytes", "dtype", "seconds"),
    [
        (2.0**31, 2.0**20, "float32", 2.0),
        (2.0**31, 2.0**22, "float32", 4.0),
        (2.0**31, 2.0**20, "float16", 1.0),
        (2.0**31, 0.0, "float32", 2.0),
        (0.0, 2.0**19, "float32", 0.5),
        (0.0, 2.0**19, "float64", 0.5),
        (0.0, 0.0, "float32", 0.0),
        (1.0, 2.0**20, "float64", None),
    ],
    ids=[
        *("computing", "moving", "faster dtype", "nothing moved", "nothing computed"),
        *("no product needed", "nothing at all", "unknown dtype"),
    ],
)
def test_work_takes_as_long_as_its_slower_part(
    flops: float, moved_bytes: float, dtype: str, seconds: float | None
) -> None:
    """Computing or moving decides; where one of them is not known, nothing is said."""
    assert CEILING.attainable_s(flops, moved_bytes, dtype) == seconds


@pytest.mark.parametrize("rate", [None, 0.0])
@pytest.mark.parametrize("flops", [0.0, 2.0**30])
def test_without_a_copy_nothing_is_known(flops: float, rate: float | None) -> None:
    """How long products take says nothing of what must be moved, too."""
    assert Ceiling({"float32": 2.0**30}, rate).attainable_s(flops, 4.0, "float32") is None


def test_a_rate_of_zero_is_not_divided_by() -> None:
    """A product that was measured at no rate is one that was not measured."""
    assert Ceiling({"float32": 0.0}, 2.0).attainable_s(1.0, 1.0, "float32") is None


# What is best


def _facts(framework: str = "fake", **changes: Any) -> dict[str, Any]:
    """What a record of a product says, as far as it counts here."""
    facts = {
        "workload": "gemm",
        "framework": framework,
        "framework_version": "1.2",
        "device_name": "Fake CPU",
        "dtype": "float32",
        "flops": 2.0**31,
        "bytes": 2.0**20,
    }
    return {**facts, **changes}


def test_a_better_product_is_the_ceiling() -> None:
    """The rate of a dtype is that of its best result, and says whose it is."""
    ceiling = Ceiling().with_result(_facts(), 2.0)
    assert ceiling == Ceiling({"float32": 2.0**30}, None, {"float32": "fake 1.2"})
    better = ceiling.with_result(_facts("other"), 1.0)
    assert better == Ceiling({"float32": 2.0**31}, None, {"float32": "other 1.2"})


@pytest.mark.parametrize("workload", ["gemm", "copy"])
@pytest.mark.parametrize("seconds", [1.0, 4.0], ids=["as good", "worse"])
def test_what_is_no_better_changes_nothing(workload: str, seconds: float) -> None:
    """The first of equally good results stays."""
    ceiling = Ceiling().with_result(_facts(workload=workload), 1.0)
    assert ceiling.by
    assert ceiling.with_result(_facts("other", workload=workload), seconds) == ceiling


def test_a_copy_is_the_ceiling_of_bytes() -> None:
    """What a copy moves counts, whatever else is known and whatever its dtype is."""
    product = Ceiling().with_result(_facts(), 2.0)
    both = product.with_result(_facts("other", workload="copy", flops=0.0), 0.5)
    by = {"float32": "fake 1.2", "copy": "other 1.2"}
    assert both == Ceiling({"float32": 2.0**30}, 2.0**21, by)
    better = both.with_result(_facts(workload="copy", flops=0.0, dtype="float64"), 0.25)
    assert better == Ceiling({"float32": 2.0**30}, 2.0**22, {**by, "copy": "fake 1.2"})


def test_each_dtype_has_its_own_ceiling() -> None:
    """A slower result of another dtype is the best of that one."""
    ceiling = Ceiling().with_result(_facts(), 1.0).with_result(_facts("other", dtype="float64"), 4)
    assert ceiling.flops_per_s == {"float32": 2.0**31, "float64": 2.0**29}
    assert ceiling.by == {"float32": "fake 1.2", "float64": "other 1.2"}


def test_each_device_has_its_own_ceilings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best round of every result counts for its device; failures of some are accepted."""
    asked: list[Any] = []
    results = [
        (_facts(), [2.0, 1.0, 4.0]),
        (_facts("other"), [1.5, 3.0]),
        (_facts(device_name="Fake 9000"), [0.5]),
        (_facts(workload="copy"), [8.0]),
    ]
    stored = [
        {
            "extra_info": {"fwbench": facts},
            "stats": {"min": min(data), "median": max(data), "max": max(data)},
        }
        for facts, data in results
    ]

    def measure(
        name: str, arguments: list[str], say: Callable[[str], Any], *, all_must_pass: bool
    ) -> dict[str, Any]:
        asked.extend([name, all_must_pass, "--fw-threads=3" in arguments])
        say("a line")
        return {"benchmarks": stored}

    said: list[str] = []
    monkeypatch.setattr(suites, "measure", measure)
    assert ceilings.measure(3, said.append) == {
        "Fake CPU": Ceiling({"float32": 2.0**31}, 2.0**17, dict.fromkeys(_BY, "fake 1.2")),
        "Fake 9000": Ceiling({"float32": 2.0**32}, None, {"float32": "fake 1.2"}),
    }
    assert asked == ["fwbench.ceilings.suite", False, True]
    assert said == ["a line"]


# What is kept

#: The facts of a machine that decide what it can do.
_MACHINE: Mapping[str, Any] = {
    "cpu": "Fake CPU",
    "cpus": 8,
    "physical_cores": 4,
    "usable_cpus": 2,
    "memory_bytes": 3 * 2**29,
    "os": "Fake OS",
    "python": "3.99",
    "gpu_driver": None,
}

FOUND = {"Fake CPU": CEILING, "Fake 9000": Ceiling({"float64": 2.0}, None, {"float64": "fake 1.2"})}


def _stored(root: Path, found: Mapping[str, Ceiling] = FOUND, **changes: Any) -> Ceilings:
    """The ceilings that were stored in a project, on this machine with some of it changed."""
    stored = Ceilings(root, {**_MACHINE, **changes}, 2)
    stored.store(found)
    return stored


def test_what_was_stored_is_loaded(tmp_path: Path) -> None:
    """All that was measured comes back; what is stored later takes its place."""
    assert _stored(tmp_path).load() == FOUND
    again = _stored(tmp_path, {"Fake CPU": Ceiling()})
    assert Ceilings(tmp_path, dict(_MACHINE), 2).load() == {"Fake CPU": Ceiling()}
    assert [*again.path.parent.iterdir()] == [again.path]


def test_ceilings_stay_out_of_version_control(tmp_path: Path) -> None:
    """They lie in the project's own folder, which ignores all of itself."""
    assert _stored(tmp_path).path.parent == tmp_path / ".fwbench" / "ceilings"
    assert (tmp_path / ".fwbench" / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"cpu": "Another CPU"},
        {"cpus": 9},
        {"physical_cores": None},
        {"usable_cpus": 1},
        {"gpu_driver": "550.1"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_another_machine_has_other_ceilings(tmp_path: Path, changes: dict[str, Any]) -> None:
    """What decides what a machine can do decides where that is kept; both stay."""
    other = {"Another CPU": Ceiling({}, 1.0)}
    here, there = _stored(tmp_path), _stored(tmp_path, other, **changes)
    assert here.path != there.path
    assert (here.load(), there.load()) == (FOUND, other)


def test_other_threads_have_other_ceilings(tmp_path: Path) -> None:
    """One thread can do less than two."""
    _stored(tmp_path)
    assert Ceilings(tmp_path, _MACHINE, 1).load() == {}
    assert Ceilings(tmp_path, _MACHINE, 2).load() == FOUND


@pytest.mark.parametrize("changes", [{"memory_bytes": 1}, {"os": "New OS"}, {"python": "4.0"}])
def test_the_same_machine_keeps_its_ceilings(tmp_path: Path, changes: dict[str, Any]) -> None:
    """What an update changes does not lose them."""
    _stored(tmp_path)
    assert Ceilings(tmp_path, {**_MACHINE, **changes}, 2).load() == FOUND


#: What is no JSON of ceilings.
_NONSENSE = [
    *("null", "3", '"Fake CPU"', "[]", "[[]]", '{"Fake CPU": null}', '{"Fake CPU": 3}'),
    *('{"Fake CPU": []}', '{"Fake CPU": {"nonsense": 1}}', '{"Fake CPU": {"flops": {}}}'),
    '{"Fake CPU": {"flops_per_s": 3}}',
    '{"Fake CPU": {"flops_per_s": {"float32": "fast"}, "bytes_per_s": 1.0}}',
    '{"Fake CPU": {"flops_per_s": {"float32": 1.0}, "bytes_per_s": "fast"}}',
]


@pytest.mark.parametrize("text", ["", "{", '{"Fake CPU": {"flops_per_s"', *_NONSENSE])
def test_what_is_damaged_was_not_measured(tmp_path: Path, text: str) -> None:
    """A file that was cut off, or says something else, is as good as none, and can be replaced."""
    stored = _stored(tmp_path)
    stored.path.write_text(text, encoding="utf-8")
    assert stored.load() == {}
    stored.store(FOUND)
    assert stored.load() == FOUND


def test_what_cannot_be_read_was_not_measured(tmp_path: Path) -> None:
    """No file, a folder of that name, or bytes that are no text: nothing is known."""
    stored = Ceilings(tmp_path, _MACHINE, 2)
    assert stored.load() == {}
    stored.path.mkdir(parents=True)
    assert stored.load() == {}
    stored.path.rmdir()
    stored.path.write_bytes(b'{"\xff": {}}')
    assert stored.load() == {}


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    """Where a file stands in the way, the message says where and why."""
    (tmp_path / ".fwbench").write_text("in the way", encoding="utf-8")
    with pytest.raises(StorageError, match=r"cannot write under .*ceilings: (Not a|File exists)"):
        _stored(tmp_path)
    assert (tmp_path / ".fwbench").read_text(encoding="utf-8") == "in the way"


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    """Where a folder has its name, the message says where and why."""
    path = Ceilings(tmp_path, _MACHINE, 2).path
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match=rf"cannot write .*{path.name}: Is a directory"):
        _stored(tmp_path)


# What is told of records


def _entry(median: float = 2.0, **changes: Any) -> dict[str, Any]:
    """An entry of pytest-benchmark's whose work takes two seconds at least."""
    facts = _facts(**{"result_is_view": False, **changes})
    return {"extra_info": {"fwbench": facts}, "stats": {"min": 1.0, "median": median, "max": 9.0}}


def _told(one: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """What was attainable, and its share, as an entry says it."""
    facts = one["extra_info"]["fwbench"]
    assert ("attainable_s" in facts) == ("attainable_share" in facts)
    return facts.get("attainable_s"), facts.get("attainable_share")


def test_records_say_what_was_attainable() -> None:
    """Each by its dtype and its device, as a share of its median time; above 1 as it is.

    In float16 it is the bytes that take a second, in float64 no product was measured.
    """
    faster = {"Fake 9000": Ceiling({"float32": 2.0**32}, 2.0**30)}
    entries = [
        _entry(),
        _entry(8.0),
        _entry(0.5),
        _entry(dtype="float16"),
        _entry(dtype="float64"),
        _entry(flops=0.0, dtype="float64"),
        _entry(device_name="Fake 9000"),
        _entry(device_name="no such device"),
    ]
    ceilings.annotate(entries, {"Fake CPU": CEILING, **faster})
    assert [*map(_told, entries)] == [
        (2.0, 1.0),
        (2.0, 0.25),
        (2.0, 4.0),
        (1.0, 0.5),
        (None, None),
        (1.0, 0.5),
        (0.5, 0.25),
        (None, None),
    ]


@pytest.mark.parametrize(
    "one",
    [
        _entry(result_is_view=True),
        _entry(flops=None, bytes=None),
        _entry(flops=0.0, bytes=0.0),
        {"extra_info": {"fwbench": {"schema": 1}}, "stats": {"median": 1.0}},
        {"extra_info": {"mine": 1}, "stats": {"median": 1.0}},
        {"extra_info": {}, "stats": {}},
    ],
    ids=["view", "no cost", "nothing to do", "facts of old", "foreign", "bare"],
)
def test_what_has_no_limit_is_left_as_it_is(one: dict[str, Any]) -> None:
    """What moves nothing, says nothing of its cost, or is none of fwbench's."""
    before = json.loads(json.dumps(one))
    ceilings.annotate([one], FOUND)
    assert one == before


def test_launches_are_told_of_by_their_median() -> None:
    """Of a case that was launched, what is attainable is said once, of all its launches."""
    launched = _entry(4.0, launches=[{"launch": i, "value_s": 1.0 + i} for i in range(3)])
    before = json.loads(json.dumps(launched["extra_info"]["fwbench"]))
    ceilings.annotate([launched], FOUND)
    expected = {**before, "attainable_s": 2.0, "attainable_share": 0.5}
    assert launched["extra_info"]["fwbench"] == expected


def test_without_ceilings_nothing_is_told() -> None:
    """A machine that was not measured has no limits that were known."""
    one = _entry()
    ceilings.annotate([one], {})
    assert _told(one) == (None, None)


# What runs were stored with


def test_a_run_has_the_ceilings_that_it_was_stored_with() -> None:
    """They come back from a run's JSON as they were."""
    run = json.loads(json.dumps({"fwbench": {"ceilings": ceilings.to_json(FOUND)}}))
    assert ceilings.of_run(run) == FOUND


@pytest.mark.parametrize("run", [{}, {"fwbench": {}}, {"fwbench": None}, {"fwbench": []}])
def test_a_run_without_ceilings_has_none(run: dict[str, Any]) -> None:
    """Runs of earlier versions, and of pytest-benchmark alone, say nothing of them."""
    assert ceilings.of_run(run) == {}


@pytest.mark.parametrize("text", _NONSENSE)
def test_nonsense_in_a_run_is_no_ceiling(text: str) -> None:
    """What is not to be understood limits nothing."""
    assert ceilings.of_run({"fwbench": {"ceilings": json.loads(text)}}) == {}


# fwbench doctor


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A project's folder on a machine of known facts, and a folder in it, which is the current."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "pytest.ini").write_text("", encoding="utf-8")
    monkeypatch.chdir(inner)
    monkeypatch.setattr(registry, "registered", lambda: {"fake": None})
    monkeypatch.setattr(doctor, "describe", lambda *_: {"fake": manifest()})
    monkeypatch.setattr(machine, "cpu_model", lambda: "Fake CPU")
    monkeypatch.setattr(machine, "machine", lambda cpu: {**_MACHINE, "cpu": cpu})
    monkeypatch.setattr(machine, "usable_cpus", lambda: 2)
    return tmp_path


def _peaks(
    monkeypatch: pytest.MonkeyPatch, *lines: str, error: Exception | None = None
) -> list[int]:
    """Let the ceilings be measured at once; gives the threads with which they were."""
    asked: list[int] = []

    def measure(threads: int, say: Callable[[str], Any]) -> dict[str, Ceiling]:
        asked.append(threads)
        for line in lines:
            say(line)
        if error is not None:
            raise error
        return FOUND

    monkeypatch.setattr(ceilings, "measure", measure)
    return asked


def _lines(said: str) -> list[str]:
    """What a report says of ceilings."""
    lines = said.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("ceilings"))
    end = next(i for i, line in enumerate(lines) if line.startswith("fake 1.2"))
    return lines[start:end]


def test_doctor_says_that_nothing_was_measured(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without ceilings it says how to get them, and does not measure; programs get none."""
    assert cli.main(["doctor"]) == 0
    hint = "  not measured; fwbench doctor --peaks measures them"
    assert _lines(capsys.readouterr().out) == ["ceilings", hint]
    assert cli.main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ceilings"] == {}
    assert not (here / ".fwbench").exists()


_SAID = [
    "ceilings of Fake CPU",
    "  float32   1.074 GFLOP/s (fake 1.2)",
    "  float16   4.295 GFLOP/s (fake 1.2)",
    "  copy      0.001049 GB/s (other 0.1)",
    "ceilings of Fake 9000",
    "  float64   2e-09 GFLOP/s (fake 1.2)",
]


def test_doctor_says_what_was_measured(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rates of each device with their units, and whose they are; the same for programs."""
    _stored(here)
    assert cli.main(["doctor"]) == 0
    assert _lines(capsys.readouterr().out) == _SAID
    assert cli.main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["ceilings"] == ceilings.to_json(FOUND)
    assert ceilings.from_json(facts["ceilings"]) == FOUND


def test_doctor_says_the_rates_of_a_gpu_in_full(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody reads 7.123e+05 GFLOP/s as easily as other rates."""
    _stored(here, {"Fake 9000": Ceiling({"float32": 712_345.6e9}, 4_321e9, _BY)})
    assert cli.main(["doctor"]) == 0
    assert "e+" not in "".join(_lines(capsys.readouterr().out))


def test_doctor_bears_rates_that_are_nobodys(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Doctor is what one asks when something is wrong: it does not fail of that."""
    _stored(here, {"Fake CPU": Ceiling({"float32": 2.0**30}, 2.0**20)})
    assert cli.main(["doctor"]) == 0
    assert "1.074 GFLOP/s" in capsys.readouterr().out


def test_doctor_measures_when_asked(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """--peaks measures, says meanwhile what, and keeps it for the project and its threads."""
    lines = ["= test session =", "test_suite.py::a PASSED", "test_suite.py::b SKIPPED (no)", ""]
    asked = _peaks(monkeypatch, *lines)
    assert cli.main(["doctor", "--peaks"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "test_suite.py::a PASSED\n"
    assert _lines(captured.out) == _SAID
    assert Ceilings(here, _MACHINE, 2).load() == FOUND
    assert cli.main(["doctor"]) == 0
    assert _lines(capsys.readouterr().out) == _SAID
    assert cli.main(["doctor", "--threads=5"]) == 0
    assert _lines(capsys.readouterr().out)[0] == "ceilings"
    assert asked == [2]


def test_doctor_measures_for_programs_and_threads(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --json standard output is JSON alone, while it is measured, too."""
    asked = _peaks(monkeypatch, "test_suite.py::a PASSED")
    assert cli.main(["doctor", "--peaks", "--json", "--threads=5"]) == 0
    assert json.loads(capsys.readouterr().out)["ceilings"] == ceilings.to_json(FOUND)
    assert asked == [5]
    assert Ceilings(here, _MACHINE, 5).load() == FOUND
    assert Ceilings(here, _MACHINE, 2).load() == {}


def test_doctor_says_why_it_could_not_measure(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was measured before stays when measuring fails."""
    stored = _stored(here)
    _peaks(monkeypatch, error=SuiteError("all went wrong"))
    assert cli.main(["doctor", "--peaks"]) == 3
    assert capsys.readouterr() == ("", "fwbench: error: all went wrong\n")
    assert stored.load() == FOUND


def test_doctor_says_why_it_could_not_keep_them(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that cannot be written exits with 3, and says which."""
    _peaks(monkeypatch)
    (here / ".fwbench").write_text("in the way", encoding="utf-8")
    assert cli.main(["doctor", "--peaks"]) == 3
    said = capsys.readouterr().err
    assert said.startswith(f"fwbench: error: cannot write under {here / '.fwbench' / 'ceilings'}: ")


# fwbench recover


def _recovered(root: Path, found: Any, *entries: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What is recovered of a session that was stored with these ceilings."""
    journal = Journal(journal_folder(root), "now.jsonl")
    journal.append({"fwbench_journal": 1, "version": "5", "fwbench": {"ceilings": found}})
    for one in entries:
        journal.append(one)
    journal.close()
    run = root / "run.json"
    assert cli.main(["recover", str(journal.path), "-o", str(run)]) == 0
    benchmarks: list[dict[str, Any]] = json.loads(run.read_text(encoding="utf-8"))["benchmarks"]
    return benchmarks


def test_recover_says_what_was_attainable(tmp_path: Path) -> None:
    """By the ceilings of the session, not those of the machine that recovers it."""
    whole = {**_entry(), "fullname": "test_fake.py::whole"}
    foreign = entry_of_journal("foreign")
    recovered = _recovered(tmp_path, ceilings.to_json(FOUND), whole, foreign)
    assert [_told(recovered[0]), recovered[1]] == [(2.0, 1.0), foreign]


@pytest.mark.parametrize("text", ["{}", *_NONSENSE])
def test_recover_bears_nonsense(tmp_path: Path, text: str) -> None:
    """A session without ceilings, or with none to be understood, is recovered without shares."""
    whole = {**_entry(), "fullname": "test_fake.py::whole"}
    assert _recovered(tmp_path, json.loads(text), whole) == [whole]


# Sessions

_SIZED = """
import pytest
from declared import double
from fwbench.workloads import flatten, gemm, noop

@pytest.mark.fwbench(gemm, flatten, noop, double)
def test_it(case):
    case.measure()

def test_plain(benchmark):
    benchmark(int)
"""

_SESSION = ("--fw-threads=1", "--fw-size=64", "--fw-dtype=float32,float64")

_GEMM = "gemm-numpy-cpu-eager-forward-float32-64"

#: As many FLOP as a product of that size has take half of what its bytes take, 3/64 seconds.
_SLOW = Ceiling({"float32": 2.0**19 * 128 / 3}, 2.0**20, _BY)


@pytest.fixture
def sized(project: Project) -> Project:
    """A project whose cases have a cost, are views, do nothing, or do not say what they do."""
    project.write("test_it.py", _SIZED)
    return project


def _of_here(project: Project) -> Ceilings:
    """Of this machine and one thread, in a project."""
    return Ceilings(project.path, machine.machine(machine.cpu_model()), 1)


def _saved(project: Project) -> dict[str, Any]:
    """All that a session has stored."""
    stored: dict[str, Any] = json.loads((project.path / "measured.json").read_text("utf-8"))
    return stored


def _shares(stored: Mapping[str, Any]) -> dict[str, tuple[float, bool]]:
    """What was attainable, by case id, and whether its share is of the median."""
    told = {}
    for one in stored["benchmarks"]:
        facts = one["extra_info"].get("fwbench", {})
        if "attainable_s" in facts or "attainable_share" in facts:
            seconds = facts["attainable_s"]
            of_median = facts["attainable_share"] == seconds / one["stats"]["median"]
            told[one["param"]] = seconds, of_median
    return told


@pytest.mark.parametrize("arguments", [(), ("--fw-launches=2",)], ids=["once", "launches"])
def test_a_session_says_what_was_attainable(sized: Project, arguments: tuple[str, ...]) -> None:
    """The JSON has the ceilings, and shares where both are known; so has what is recovered."""
    found = {machine.cpu_model(): _SLOW}
    _of_here(sized).store(found)
    result, records = sized.measure(*_SESSION, *arguments)
    assert result.ret == 0
    assert len(records) == 9
    stored = _saved(sized)
    assert stored["fwbench"]["ceilings"] == ceilings.to_json(found)
    assert _shares(stored) == {_GEMM: (3 / 64, True)}
    assert cli.main(["recover", "-o", "recovered.json"]) == 0
    recovered = json.loads((sized.path / "recovered.json").read_text(encoding="utf-8"))
    assert recovered["fwbench"]["ceilings"] == ceilings.to_json(found)
    assert _shares(recovered) == {_GEMM: (3 / 64, True)}


def test_a_session_without_ceilings_says_nothing(sized: Project) -> None:
    """Those of more threads, and a damaged file, are no ceilings of this session."""
    mine = _of_here(sized)
    facts = machine.machine(machine.cpu_model())
    Ceilings(sized.path, facts, 2).store({machine.cpu_model(): _SLOW})
    for text in (None, '{"cut off'):
        if text is not None:
            mine.path.write_text(text, encoding="utf-8")
        result, records = sized.measure(*_SESSION)
        assert result.ret == 0
        assert _GEMM in records
        assert _saved(sized)["fwbench"]["ceilings"] == {}
        assert _shares(_saved(sized)) == {}


def test_a_session_bears_nonsense(sized: Project) -> None:
    """Hours of measuring are not lost for a file that says how fast the machine could be."""
    mine = _of_here(sized)
    mine.store({})
    nonsense = {machine.cpu_model(): {"flops_per_s": 3}}
    mine.path.write_text(json.dumps(nonsense), encoding="utf-8")
    result = sized.run("--benchmark-json=measured.json", *_SESSION, "-k", "float32")
    assert result.ret == 0
    assert (sized.path / "measured.json").exists()


# Suites of fwbench's own

_TIMED = "def test_timed(benchmark):\n    benchmark(int)\n"
_FAILING = "def test_failing():\n    assert 'so' == 'not so'\n"


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Writes the suite ``some``; in the project around it and its traces nothing can be run."""
    folder, temporary = tmp_path / "suites", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    settings = "[pytest]\naddopts = --no-such-option\n"
    (tmp_path / "pytest.ini").write_text(settings, encoding="utf-8")
    (tmp_path / "conftest.py").write_text("raise RuntimeError\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(suites, "resources", SimpleNamespace(files=lambda _: folder))

    def write(text: str) -> None:
        (folder / "some.py").write_text(text, encoding="utf-8")

    return write


def _emptied() -> bool:
    """Whether nothing is left in the temporary folder."""
    return not [*Path(tempfile.gettempdir()).iterdir()]


def test_a_suite_is_measured_on_its_own(suite: Callable[[str], None]) -> None:
    """Not in the current project; its arguments count, its lines are told, its traces go."""
    suite(_TIMED + _TIMED.replace("timed", "left_out"))
    said: list[str] = []
    found = suites.measure("some", [*_QUICKLY, "-k", "not left_out"], said.append)
    assert [one["name"] for one in found["benchmarks"]] == ["test_timed"]
    assert any(line.startswith("test_suite.py::test_timed PASSED") for line in said)
    assert not any(line.endswith("\n") for line in said)
    assert _emptied()


def test_failing_tests_may_be_borne(suite: Callable[[str], None]) -> None:
    """Where not all must pass, what was measured counts; where all must, the failure is told."""
    suite(_TIMED + _FAILING)
    found = suites.measure("some", _QUICKLY, lambda _: None, all_must_pass=False)
    assert [one["name"] for one in found["benchmarks"]] == ["test_timed"]
    with pytest.raises(SuiteError, match=r"'some' .*exit status is 1\)") as caught:
        suites.measure("some", _QUICKLY, lambda _: None)
    assert "assert 'so' == 'not so'" in str(caught.value)
    assert _emptied()


@pytest.mark.parametrize("all_must_pass", [True, False])
@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("raise RuntimeError('broken')\n", 2),
        ("def test_it():\n    pass\n", 0),
        (_FAILING, 1),
        ("", 5),
    ],
    ids=["broken", "nothing measured", "nothing but failures", "no test"],
)
def test_a_suite_that_measures_nothing(
    suite: Callable[[str], None], text: str, status: int, all_must_pass: bool
) -> None:
    """It is an error, whether or not all must pass."""
    suite(text)
    with pytest.raises(SuiteError, match=rf"exit status is {status}\)"):
        suites.measure("some", _QUICKLY, lambda _: None, all_must_pass=all_must_pass)
    assert _emptied()


def test_a_session_that_was_stopped_is_not_measured(suite: Callable[[str], None]) -> None:
    """An interruption is no failing test: what it left over is not all that there is."""
    suite(_TIMED + "def test_stop():\n    raise KeyboardInterrupt\n")
    with pytest.raises(SuiteError, match=r"exit status is 2\)"):
        suites.measure("some", _QUICKLY, lambda _: None, all_must_pass=False)


def test_an_error_has_the_last_lines(suite: Callable[[str], None]) -> None:
    """As many as fit on a screen, in their order; the caller has been told all of them."""
    suite("for i in range(100):\n    print('line', i)\nraise RuntimeError('broken')\n")
    said: list[str] = []
    with pytest.raises(SuiteError) as caught:
        suites.measure("some", [*_QUICKLY, "-s"], said.append)
    _, _, last = str(caught.value).partition("it said last:\n")
    assert [line.rstrip() for line in last.splitlines()] == said[-25:]
    assert "RuntimeError: broken" in last
    assert "line 1" in said
    assert "line 1" not in last.splitlines()


# The suite of ceilings


def test_the_ceilings_of_numpy() -> None:
    """A real product and a real copy: each a rate, and both together a ceiling."""
    said: list[str] = []
    arguments = ["--fw=numpy", "-k", "copy or float32-1024", "--fw-threads=1", *_QUICKLY]
    found = suites.measure("fwbench.ceilings.suite", arguments, said.append)
    facts = {one["extra_info"]["fwbench"]["workload"]: one for one in found["benchmarks"]}
    assert {*facts} == {"gemm", "copy"}
    assert len(found["benchmarks"]) == 2
    ceiling = Ceiling()
    for one in found["benchmarks"]:
        ceiling = ceiling.with_result(one["extra_info"]["fwbench"], one["stats"]["min"])
    product, copy = facts["gemm"]["stats"]["min"], facts["copy"]["stats"]["min"]
    assert ceiling.flops_per_s == {"float32": 2 * 1_024**3 / product}
    # Larger than any cache; read, and written.
    assert ceiling.bytes_per_s == 2 * 2**28 / copy
    assert {*ceiling.by} == {"float32", "copy"}
    assert facts["copy"]["extra_info"]["fwbench"]["result_is_view"] is False
    assert sum("PASSED" in line for line in said) == 2


def test_every_framework_copies() -> None:
    """What each calls a copy has the values of its source and none of its memory."""
    names = ("numpy", "tensorflow", "mxnet", "torch", "jax")
    installed = [name for name in names if importlib.util.find_spec(name)]
    arguments = [f"--fw={','.join(installed)}", "-k", "copy and cpu", "--fw-size=4096"]
    found = suites.measure("fwbench.ceilings.suite", [*arguments, *_QUICKLY], lambda _: None)
    facts = [one["extra_info"]["fwbench"] for one in found["benchmarks"]]
    assert sorted(one["framework"] for one in facts) == sorted(installed)
    assert not any(one["result_is_view"] for one in facts)
