"""Requests of the options to cells beside a selection."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fwbench import Operation, suite
from fwbench.errors import UsageError
from fwbench.plugin.session import Session, without_adapter, workloads_of
from fwbench.terms.presets import Schedule
from fwbench.workloads import gemm, grid, lenet
from fwbench.workloads.data import generated
from support.projects import Project


def request_of(pytester: pytest.Pytester, *arguments: str) -> grid.GridRequest:
    """The options of a session with this command line."""
    return Session(pytester.parseconfigure(*arguments))._request()


@pytest.fixture(autouse=True)
def _no_data(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the user's data sets nor their folders."""
    monkeypatch.delenv("FWBENCH_DATA", raising=False)
    for name in ("KERAS_HOME", "MXNET_HOME"):
        monkeypatch.setenv(name, str(pytester.path / "empty"))


def test_schedule_and_toggles_are_the_options(pytester: pytest.Pytester) -> None:
    options = request_of(pytester, "--fw-train=epochs=7", "--fw-toggle=workers=0,2")
    assert options.schedule(lenet.schedules["quick"]) == Schedule(epochs=7)
    assert options.toggles == {"workers": ("0", "2")}
    assert options.find("mnist") == generated("mnist")
    assert options.verify_only is False


def test_data_is_looked_for_where_the_option_says(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    (tmp_path / "mnist.npz").touch()
    options = request_of(pytester, f"--fw-data={tmp_path}").find("mnist")
    assert (options.source, options.origin) == ("real", "mnist.npz")


def test_verifying_alone_trains_two_steps_on_generated_data(
    pytester: pytest.Pytester, tmp_path: Path
) -> None:
    """However much is asked for: nothing is timed. Toggles change the work, so they stay."""
    (tmp_path / "mnist.npz").touch()
    arguments = ("--fw-train=epochs=7", "--fw-train=repetitions=2", "--fw-toggle=sparse=on")
    options = request_of(pytester, "--benchmark-disable", *arguments, f"--fw-data={tmp_path}")
    assert options.schedule(lenet.schedules["paper"]) == Schedule(1, warmup_epochs=0, steps=2)
    assert options.find("mnist") == generated("mnist")
    assert options.toggles == {"sparse": ("on",)}
    assert options.verify_only is True


def test_a_toggle_of_the_process_needs_one(pytester: pytest.Pytester) -> None:
    """Where frameworks share this process it is refused; other toggles are not."""
    with pytest.raises(UsageError, match=r"the toggle onednn is set before .* --fw-isolation=none"):
        request_of(pytester, "--fw-isolation=none", "--fw-toggle=onednn=on")
    assert request_of(pytester, "--fw-isolation=none", "--fw-toggle=sparse=on").toggles
    assert request_of(pytester, "--fw-toggle=onednn=on").toggles


@pytest.mark.parametrize("ini", ["", "[pytest]\nfw_toggle = wrokers=2"], ids=["option", "ini"])
def test_a_toggle_that_no_framework_has_is_refused(pytester: pytest.Pytester, ini: str) -> None:
    """Not before the frameworks are known, which may have toggles of their own."""
    if ini:
        pytester.makeini(ini)
    arguments = () if ini else ("--fw-toggle=wrokers=2",)
    with pytest.raises(UsageError, match=r"unknown toggle 'wrokers'; .* Did you mean 'workers'\?"):
        request_of(pytester, *arguments)


_KNOWN = ("jax", "numpy", "torch")


def _implemented(*names: str, by: Any = lambda _: abs) -> Operation:
    """An operation that frameworks of these names are written for."""
    return Operation(
        name="double",
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=lambda x: 2.0 * x,
        sizes=(8, 4),
        implementations=dict.fromkeys(names, by),
    )


def test_a_marker_names_operations_loops_and_their_parts() -> None:
    """In any mixture; the parts of a loop are workloads of their own."""
    named = (gemm, lenet, lenet.step, lenet.loader)
    assert workloads_of(pytest.mark.fwbench(*named).mark, _KNOWN) == named


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ((gemm, lenet, gemm), "names a workload twice: gemm, lenet, gemm"),
        ((lenet.step, lenet.step), "names a workload twice: lenet_step, lenet_step"),
        (
            (gemm, "lenet"),
            "was given 'lenet'; give it the operations, models or functions to measure",
        ),
        ((), "was given nothing; give it the operations, models or functions to measure"),
        (([gemm, "lenet"],), "was given a list of gemm, 'lenet'; give .*, one by one"),
        ((gemm, len), "was given the builtin_function_or_method len; give it"),
    ],
    ids=["an operation twice", "a step twice", "a name", "nothing", "a list", "a function"],
)
def test_a_marker_that_names_something_else_is_refused(
    named: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^@pytest.mark.fwbench {message}"):
        workloads_of(pytest.mark.fwbench(*named).mark, _KNOWN)


def test_an_implementation_without_adapter_is_one_gap() -> None:
    """Not one in every size; those that something can run have their own cells, or none."""
    cells = [*without_adapter([_implemented("numpy", "tinygrad"), lenet], _KNOWN)]
    assert [cell.id for cell in cells] == ["double-tinygrad-cpu-eager-forward-float32-4"]
    assert cells[0].gap is not None
    assert cells[0].gap.startswith("tinygrad: no installed package has an adapter for it")


@pytest.mark.parametrize(
    ("by", "where"),
    [(lambda _: abs, r"double in .*test_session\.py:\d+"), (partial(abs), "double")],
    ids=["function", "other callable"],
)
def test_a_misspelled_framework_is_refused_by_its_place(by: Any, where: str) -> None:
    mark = pytest.mark.fwbench(_implemented("numpy", "numpyy", by=by)).mark
    message = rf"^unknown framework \(implemented by {where}\) 'numpyy'; known: jax, numpy, torch"
    with pytest.raises(UsageError, match=message):
        workloads_of(mark, _KNOWN)


@pytest.mark.parametrize(
    ("name", "meant"), [("pytorch", "torch"), ("tf", ""), ("np", "numpy"), ("tinygrad", "")]
)
def test_what_a_framework_is_called_elsewhere_is_refused(name: str, meant: str) -> None:
    """With its name here, where that is known; and anything else may be a package to come."""
    mark = pytest.mark.fwbench(_implemented("numpy", name)).mark
    if not meant:
        assert workloads_of(mark, _KNOWN)
        return
    with pytest.raises(UsageError, match=rf"'{name}'; known: .* Did you mean '{meant}'"):
        workloads_of(mark, _KNOWN)


_USERS = """
import pytest
from declared import double, twice

@double.implement("tinygrad")
def _(ort):
    return abs

@pytest.mark.fwbench(double)
def test_double(case):
    case.measure()

@pytest.mark.fwbench(twice)
def test_twice(case):
    case.measure()
"""


def test_a_session_lists_what_nothing_can_run(project: Project) -> None:
    """It is one skip, and absent where other frameworks are asked for. A misspelled name ends
    the session with the line of its test."""
    project.hide_frameworks()
    project.write("test_it.py", _USERS)
    everyone = project.run("--collect-only", "-q", fw=None)
    listed = [line for line in everyone.outlines if "tinygrad" in line]
    assert listed == ["test_it.py::test_double[double-tinygrad-cpu-eager-forward-float32-4]"]
    result = project.run("-k", "tinygrad", fw=None)
    result.assert_outcomes(skipped=1, deselected=result.parseoutcomes()["deselected"])
    result.stdout.fnmatch_lines(["skipped 1 case: tinygrad: no installed package has an *"])
    assert "tinygrad" not in str(project.run("--collect-only", "-q").stdout)
    project.write("test_it.py", _USERS.replace("tinygrad", "numpyy"))
    refused = project.run()
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(
        ["ERROR: test_it.py:9: unknown framework (*test_it.py:5) 'numpyy'*"]
    )


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--fw-dtype=float23", "unknown dtype 'float23'"),
        ("--fw-toggle=workrs=1", "unknown toggle 'workrs'"),
        ("-n2", "benchmarks cannot run under pytest-xdist"),
    ],
)
def test_nothing_is_started_for_what_is_misspelt(cases: Project, argument: str, said: str) -> None:
    """No framework is asked, and no process of pytest-xdist begins."""
    cases.forget_manifests()
    result = cases.run("-p", "parent_facts", argument)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in str(result.stderr)
    assert cases.parent()["workers"] == []


def test_a_family_of_the_suite_is_checked_at_once(cases: Project) -> None:
    """Where tests of others are collected, one of them may have that family."""
    file = str(suite.folder() / "test_linalg.py")
    cases.forget_manifests()
    result = cases.run("-p", "parent_facts", "--fw-family=linagl", file)
    assert "unknown family 'linagl'" in str(result.stderr)
    assert "Did you mean 'linalg'?" in str(result.stderr)
    assert cases.parent()["workers"] == []


@pytest.mark.parametrize(
    ("word", "meant"), [("dubble", "double"), ("nunpy", "numpy"), ("np", "numpy"), ("twice", "")]
)
def test_a_misspelt_word_of_k_is_told(cases: Project, word: str, meant: str) -> None:
    result = cases.run("--collect-only", "-q", "-k", f"{word} or not a")
    hint = f"fwbench: no test has '{word}' in its name; did you mean '{meant}'?"
    assert [line for line in result.outlines if "did you mean" in line] == [hint] * bool(meant)
