"""Stored runs: what cannot be read is named, and what does not compare is not compared."""

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from fwbench import cli
from fwbench.errors import DifferentSettings, UnreadableRun, UsageError
from fwbench.gate import samples
from fwbench.gate.samples import SampleSet, read
from fwbench.options.values import FACTS
from support.gangs import gang, out
from support.launched_runs import (
    QUIET,
    UNREADABLE,
    case_id,
    entry,
    output,
    plain,
    run,
    sample,
    times,
    write,
)
from support.tables import tabled, tables

Gate = Callable[..., int]

_USAGE_ERROR = 2

#: Exit status where runs were compared, and as single sessions decide nothing.
_COMPARED = 10


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two runs that compare, ``base.json`` and ``contender.json``."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    write(tmp_path / "base.json", entry())
    write(tmp_path / "contender.json", entry())
    return tmp_path


# What cannot be read


#: What is made where a run should be, and what must be said of it.
_UNREADABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    **UNREADABLE,
    "a folder without JSON": (lambda path: path.mkdir(), "folder without a JSON file"),
}


@pytest.mark.parametrize("place", ["base", "contender"])
@pytest.mark.parametrize(("make", "message"), _UNREADABLE.values(), ids=_UNREADABLE)
def test_unreadable_runs(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], Any],
    message: str,
    place: str,
) -> None:
    bad = folder / "run.json"
    make(bad)
    for name in ("verdicts.md", "figures.json"):
        (folder / name).write_text("earlier", encoding="utf-8")
    pair = ["run.json", "contender.json"] if place == "base" else ["base.json", "run.json"]
    status = cli.main(["gate", *pair, "--markdown", "verdicts.md", "--json", "figures.json"])
    captured = capsys.readouterr()
    assert status == _USAGE_ERROR
    assert captured.out == ""
    assert "run.json" in captured.err
    assert message in captured.err
    assert captured.err.startswith("fwbench: error: ")
    for name in ("verdicts.md", "figures.json"):
        assert (folder / name).read_text(encoding="utf-8") == "earlier"


def test_hidden_files_are_no_runs(folder: Path) -> None:
    """A Mac leaves some beside others."""
    (folder / "runs").mkdir()
    (folder / "base.json").rename(folder / "runs" / "base.json")
    (folder / "runs" / "._base.json").write_bytes(b"Mac")
    assert read(folder / "runs").samples


def test_a_folder_is_not_readable_if_one_of_its_files_is_not(folder: Path) -> None:
    """Sessions that belong together are read together, or not at all."""
    write(folder / "runs" / "1.json", entry())
    (folder / "runs" / "2.json").write_text("{", encoding="utf-8")
    with pytest.raises(UnreadableRun, match=r"2\.json is not JSON"):
        samples.read(folder / "runs")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("given", [(), ("base.json", "base.json", "contender.json")])
def test_two_runs_are_compared(capsys: pytest.CaptureFixture[str], given: tuple[str, ...]) -> None:
    try:
        status = cli.main(["gate", *given])
    except SystemExit as error:
        status = int(str(error.code))
    assert status == _USAGE_ERROR
    assert capsys.readouterr().out == ""


# What can be read


def test_a_run_has_a_sample_of_each_case(folder: Path) -> None:
    values_s = (3.0, 1.0, 2.0, 5.0, 4.0)
    path = write(
        folder / "run.json",
        entry("gemm", values_s, contended=True, threshold=0.1),
        entry("dot", QUIET),
    )
    result = samples.read(path)
    gemm, dot = result.samples.values()
    assert result.name == "run.json"
    assert gemm.values("minimum") == (3.0,), "a session is one value, the median of its launches"
    assert (gemm.has_launches, gemm.contended, gemm.facts.threshold) == (True, True, 0.1)
    assert (dot.has_launches, dot.contended, dot.facts.threshold) == (True, False, None)
    assert gemm.key == gemm.nodeid == f"test_it.py::test_it[{case_id()}]"
    assert (gemm.label, gemm.framework) == (case_id(), "numpy")
    assert gemm.machine.cpu == "Fake CPU"


def test_a_framework_of_two_environments_is_refused(folder: Path) -> None:
    """Both have the name that is compared, and one of them would be passed over."""
    path = write(folder / "run.json", entry("gemm"), entry("gemm", framework="numpy@old"))
    with pytest.raises(UsageError, match=r"has gemm-numpy-.* of numpy and of numpy@old"):
        samples.read(path)


def test_a_single_process_is_one_value(folder: Path) -> None:
    """A case that was not launched has rounds, which are no launches: the smallest stands."""
    single = entry("gemm", (3.0, 1.0, 2.0))
    del single["extra_info"]["fwbench"]["launches"]
    (result,) = samples.read(write(folder / "run.json", single)).samples.values()
    assert (result.has_launches, result.times_s) == (False, (1.0,))


def test_plain_pytest_benchmark_is_readable(folder: Path) -> None:
    """A run without fwbench's facts has samples and facts of its machine."""
    foreign = output([plain("test_a", 0.5), plain("test_b")])
    del foreign["fwbench"]
    path = folder / "foreign.json"
    path.write_text(json.dumps(foreign), encoding="utf-8")
    result = samples.read(path)
    first, second = result.samples.values()
    assert (first.key, first.times_s) == ("test_it.py::test_a", (0.5,))
    assert (second.framework, second.has_launches) == ("", False)
    assert first.machine.cpu == "Fake CPU"
    assert result.failures, "nobody knows whether it ended well"


def test_saved_without_data_is_readable(folder: Path) -> None:
    """--benchmark-save leaves out ``stats.data``; the launches say the same."""
    saved = entry("gemm", times(2.0))
    del saved["stats"]["data"]
    (result,) = samples.read(write(folder / "run.json", saved)).samples.values()
    assert result.times_s == (median(times(2.0)),)


def test_frameworks_of_environments_have_the_same_keys() -> None:
    nodeid = f"test_it.py::test_it[{case_id('dot', 'torch@nightly')}]"
    missing = [{"nodeid": nodeid, "framework": "torch@nightly", "why": "deselected"}]
    base = SampleSet.from_json("ours", output([entry(framework="torch")]))
    contender = SampleSet.from_json(
        "theirs", output([entry(framework="torch@nightly")], missing=missing)
    )
    assert base.samples.keys() == contender.samples.keys()
    (result,) = contender.samples.values()
    assert result.framework == "torch"
    assert result.nodeid != result.key
    assert result.label == case_id(framework="torch")
    assert contender.unmeasured == {f"test_it.py::test_it[{case_id('dot', 'torch')}]": "deselected"}


def test_one_name_of_one_work() -> None:
    here, there = (
        SampleSet.from_json("run", output([entry(test=test)]))
        for test in ("test_a.py::test", "test_b.py::test")
    )
    (base,), (contender,) = here.samples.values(), there.samples.values()
    assert base.key != contender.key
    assert base.work == contender.work


# Why a run can be no baseline


@tabled
def test_failures(session: dict[str, Any], message: str) -> None:
    (result,) = SampleSet.from_json("run", output([entry()], **session)).failures
    assert message in result


@pytest.mark.parametrize(
    "gate", [None, {"verdicts": {}}, {"verdicts": {"unchanged": 1, "improved": 2}}]
)
def test_a_run_that_ended_well_can_be_the_baseline(gate: Any) -> None:
    assert SampleSet.from_json("run", output([entry()], gate=gate)).failures == []


# Several sessions


def test_sessions_are_side_by_side(folder: Path) -> None:
    write(folder / "runs" / "1.json", entry("gemm", times(1.0)), entry("dot", times(1.0)))
    write(
        folder / "runs" / "2.json",
        entry("gemm", times(1.25), contended=True),
        outcome={"failed": 1, "interrupted": False},
    )
    result = samples.read(folder / "runs")
    gemm, dot = result.samples.values()
    assert gemm.times_s == (median(times(1.0)), median(times(1.25)))
    assert gemm.contended
    assert dot.times_s == (median(times(1.0)),)
    assert result.failures == ["2.json: 1 test failed"]


@pytest.mark.parametrize(("spread", "status"), [(0.1, 10), (0.005, 1)])
def test_sessions_that_are_apart_decide_less(folder: Path, spread: float, status: int) -> None:
    """A change by 15 % is certain only where the base's sessions agree far better than that."""
    for i in range(3):
        write(folder / "runs" / f"{i}.json", entry("gemm", times(1.0 + i * spread)))
    write(folder / "slower.json", entry("gemm", times(1.15 * (1.0 + spread))))
    assert cli.main(["gate", "runs", "slower.json"]) == status


# What must be the same

_ON_GPU = {"device": "gpu:0", "device_name": "Fake 9000"}

#: What differs; machines and gangs are described as :func:`gang` and :func:`write` take them.
_DIFFERENT = tables(__file__)["test_differences_are_refused_by_name"]["rows"]


def _entry(facts: dict[str, Any]) -> dict[str, Any]:
    of_gang = {"gang": gang(**facts["gang"])} if "gang" in facts else {}
    return entry(**{**facts, **of_gang})


def test_every_fact_is_tried() -> None:
    assert {*_DIFFERENT} == {*FACTS}


def _write_different(folder: Path, name: str) -> str:
    """Two runs that differ in one fact; returns what is to be said of it."""
    both, contender, machine, message = _DIFFERENT[name]
    write(folder / "base.json", _entry(both))
    changes: dict[str, Any] = {"machine": machine} if machine else {}
    write(folder / "contender.json", _entry({**both, **contender}), **changes)
    return str(message)


@pytest.mark.parametrize("name", FACTS)
def test_differences_are_refused_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    message = _write_different(folder, name)
    captured = out(capsys, "gate", "base.json", "contender.json", status=_USAGE_ERROR)
    assert message in captured
    assert captured.rstrip().endswith(f"--allow-different {name}")


@pytest.mark.parametrize("name", FACTS)
def test_differences_can_be_allowed(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    message = _write_different(folder, name)
    assert cli.main(["gate", "base.json", "contender.json", "--allow-different", name]) == _COMPARED
    assert message in capsys.readouterr().out
    other = "cpu" if name != "cpu" else "threads"
    arguments = ["gate", "base.json", "contender.json", "--allow-different", other]
    assert cli.main(arguments) == _USAGE_ERROR


def test_all_differences_are_named_at_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever allows them needs one attempt."""
    write(folder / "contender.json", entry(threads=8, framework_version="2.0"))
    message = out(capsys, "gate", "base.json", "contender.json", status=_USAGE_ERROR)
    assert "--allow-different framework --allow-different threads" in message
    allowed = ["--allow-different", "framework", "--allow-different", "threads"]
    assert cli.main(["gate", "base.json", "contender.json", *allowed]) == _COMPARED


def test_what_a_cpu_case_does_not_use_may_differ(folder: Path) -> None:
    write(folder / "contender.json", entry(), machine={"cpu": "Fake CPU", "gpu_driver": "1"})
    assert cli.main(["gate", "base.json", "contender.json"]) == _COMPARED


def test_facts_of_cases_that_are_not_common_may_differ() -> None:
    base = run(sample("a"), sample("b", threads=1))
    contender = run(sample("a"), sample("c", threads=2))
    assert samples.refuse_differences(base, contender, ()) == []


def test_one_case_that_differs_is_named() -> None:
    base, contender = run(sample("a"), sample("b")), run(sample("a"), sample("b", threads=2))
    with pytest.raises(DifferentSettings, match=r"threads: not recorded -> 2 \(b\)"):
        samples.refuse_differences(base, contender, ("cpu",))


def test_threads_differ_once() -> None:
    """Their variables are no other difference; one that somebody has set is."""
    base, contender = (
        run(sample("a", threads=n, toggles={"OMP_NUM_THREADS": str(n), "MKL_NUM_THREADS": mkl}))
        for n, mkl in ((1, "1"), (2, "7"))
    )
    (threads, toggles) = samples.refuse_differences(base, contender, ("threads", "toggles"))
    assert threads == "threads: 1 -> 2 (a)"
    assert toggles == "toggles: MKL_NUM_THREADS None -> 7 (a)"


def test_of_several_sessions_that_which_differs_is_named() -> None:
    """It may be one of a side whose others do not."""
    base, contender = (
        samples.together(
            side, [run(sample("a", threads=n), name=f"{side}{at}.json") for at, n in enumerate(of)]
        )
        for side, of in (("base", (2, 1)), ("contender", (2, 2)))
    )
    message = r"threads: 1 -> 2 \(a; base1.json and contender0.json\)"
    with pytest.raises(DifferentSettings, match=message):
        samples.refuse_differences(base, contender, ("cpu",))


def test_a_gpu_that_is_set_up_otherwise_is_another(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may draw less power, or corrects errors; which of several alike it is, does not matter."""
    gpu = {"uuid": "GPU-a", "ecc": True, "power_limit_w": 700.0}
    write(folder / "base.json", entry(**_ON_GPU, gpu=gpu))
    write(folder / "contender.json", entry(**_ON_GPU, gpu={**gpu, "uuid": "GPU-b"}))
    assert cli.main(["gate", "base.json", "contender.json"]) == _COMPARED
    write(folder / "contender.json", entry(**_ON_GPU, gpu={**gpu, "power_limit_w": 500.0}))
    assert cli.main(["gate", "base.json", "contender.json"]) == _USAGE_ERROR
    message = "gpu: Fake 9000, ECC on, 700 W -> Fake 9000, ECC on, 500 W"
    assert message in capsys.readouterr().err


def test_where_a_case_was_placed_may_differ(folder: Path) -> None:
    """A scheduler gives every job other GPUs."""
    for side, gpu in (("base", "3"), ("contender", "0")):
        write(folder / f"{side}.json", entry(placement={"CUDA_VISIBLE_DEVICES": gpu}))
    assert cli.main(["gate", "base.json", "contender.json"]) == _COMPARED


def test_other_inputs_are_a_difference(folder: Path) -> None:
    write(folder / "base.json", entry(toggles={"inputs": "normal"}))
    write(folder / "contender.json", entry(toggles={"inputs": "zeros"}))
    assert cli.main(["gate", "base.json", "contender.json"]) == _USAGE_ERROR


def test_replicas_of_another_machine_are_compared(folder: Path) -> None:
    """It may have another name, as long as as many of them have as many CPUs."""
    write(folder / "base.json", entry(gang=gang()))
    write(folder / "contender.json", entry(gang=gang(host="elsewhere")))
    assert cli.main(["gate", "base.json", "contender.json"]) == _COMPARED
