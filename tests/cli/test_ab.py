"""``fwbench ab``, end to end."""

import re
import statistics
from collections import Counter
from pathlib import Path

import pytest

from fwbench import cli
from fwbench.frameworks import registry
from fwbench.processes import addresses
from support.suites import FEW, SLOWING, STEADY, TESTS, Suite, run_git
from support.tables import tabled


def test_ab_of_a_revision_and_the_tree(suite: Suite) -> None:
    """An operation that does twice the work, uncommitted: exit status 1, named everywhere."""
    (suite.path / "mymath.py").write_text(suite.slow(), encoding="utf-8")
    outputs = ("--json", "figures.json", "--markdown", "verdicts.md")
    status, out, err = suite.ab("git:HEAD", ".", *FEW, *outputs, "-o", "x_value=hush")
    assert status == 1, out + err
    rows = [line.split() for line in out.splitlines() if SLOWING in line or STEADY in line]
    assert {(row[0], row[1]) for row in rows} >= {("regressed", SLOWING), ("unchanged", STEADY)}
    assert "pair 2: all cases" in err
    assert "pair 3: 1 of 2 cases is open, " in err
    figures = suite.figures()
    assert figures["verdicts"] == {"regressed": 1, "unchanged": 1}
    result = next(figure for figure in figures["judgements"] if figure["verdict"] == "regressed")
    assert statistics.median(result["contender"]) > 1.5 * statistics.median(result["base"])
    assert {figure["metric"] for figure in figures["judgements"]} >= {"minimum", "median", "memory"}
    sides = figures["rules"]["sides"]
    assert sides["base"]["revision"] == run_git(suite.path, "rev-parse", "HEAD")
    assert (sides["base"]["dirty"], sides["contender"]["dirty"]) == (False, True)
    assert (figures["rules"]["seed"], figures["rules"]["pytest"]) == (1, ["-o", "x_value=***"])
    verdicts = (suite.path / "verdicts.md").read_text(encoding="utf-8")
    assert "1 regressed, 1 unchanged" in verdicts
    assert "hush" not in f"{out}{err}{figures}{verdicts}"
    note = "the working tree has uncommitted changes: '.' is measured with them"
    assert note in out
    assert note in err
    assert note in figures["notes"]
    assert (suite.path / "mymath.py").read_text(encoding="utf-8") == suite.slow()
    suite.assert_clean()


def test_ab_of_tests_that_one_side_has(suite: Suite) -> None:
    """A test that is gone is missing, a renamed one perhaps renamed: exit status 11.

    pytest's arguments select on both sides.
    """
    more = "\n@pytest.mark.fwbench(steady)\ndef test_more(case):\n    case.measure()\n"
    suite.commit(test_it__py=TESTS.replace("fwbench(slowing, steady)", "fwbench(slowing)") + more)
    only = ("-k", "steady")
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW, *only)
    assert status == 11, out + err
    assert SLOWING not in out
    assert "uncommitted" not in out
    rows = [line for line in out.splitlines() if STEADY in line]
    assert [row.split()[0] for row in rows] == ["missing", "new"]
    assert "renamed to " in rows[0]
    assert "test_more" in rows[0]
    suite.assert_clean()


@pytest.mark.parametrize("side", ["base", "contender"])
def test_ab_of_a_suite_that_breaks_down(suite: Suite, side: str) -> None:
    suite.commit(mymath__py="raise RuntimeError('the suite of this side is broken')\n")
    pair = ("git:HEAD", "git:HEAD~1") if side == "base" else ("git:HEAD~1", "git:HEAD")
    status, out, err = suite.ab(*pair, *FEW, "--json", "figures.json")
    assert status == 3, out + err
    assert "a launch of git:HEAD broke down" in err
    assert "the suite of this side is broken" in err
    assert out == ""
    assert not (suite.path / "figures.json").exists()
    suite.assert_clean()


_FLAKY = """
    import os
    assert "FWBENCH_SELECTED" not in os.environ, "flaky"
    case"""


def test_ab_of_a_case_that_fails_when_it_is_measured_again(suite: Suite) -> None:
    """A flagged case that is lost then is inconclusive; the job goes on to its end."""
    suite.commit(mymath__py=suite.slow(), test_it__py=TESTS.replace("    case", _FLAKY))
    arguments = ("-k", "slowing", "--fail-on", "inconclusive")
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW, *arguments)
    assert status == 10, out + err
    suite.assert_clean()


def test_ab_measures_or_says_why_not(suite: Suite) -> None:
    """With --benchmark-disable nothing is timed: an error that says so, before many launches."""
    status, out, err = suite.ab("git:HEAD", ".", *FEW, "--benchmark-disable")
    assert status in (2, 3), out + err
    assert out == ""
    assert "--benchmark-disable" in err or "measured nothing" in err
    assert err.count("all cases") <= 1
    suite.assert_clean()


def test_ab_of_nothing_but_gaps_says_why(suite: Suite) -> None:
    status, out, err = suite.ab("git:HEAD", ".", *FEW, "--fw-dtype=bfloat16")
    assert (status, out) == (3, "")
    assert "measured nothing" in err
    assert re.search(r"^skipped \d+ cases?: numpy has no bfloat16$", err, re.MULTILINE), err
    suite.assert_clean()


def test_ab_that_selects_nothing(suite: Suite) -> None:
    status, out, err = suite.ab("git:HEAD", ".", *FEW, "-k", "nothing_of_that_name")
    assert status == 2, out + err
    assert "neither side has a benchmark that the arguments select" in err
    assert "deselected" in err
    suite.assert_clean()


@pytest.mark.parametrize("selected", [("test_new.py",), ("-k", "test_new")], ids=["file", "-k"])
def test_ab_of_the_first_benchmarks(suite: Suite, selected: tuple[str, ...]) -> None:
    """The base has none of them: they are new, after one pair, and the job is green."""
    suite.commit(test_new__py=TESTS.replace("test_it", "test_new"))
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW, *selected)
    assert status == 0, out + err
    assert sum(line.startswith("new ") for line in out.splitlines()) == 2, out
    assert err.count("all cases") == 1
    suite.assert_clean()


@tabled
def test_ab_is_refused(
    suite: Suite,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(suite.path)
    try:
        status = cli.main(["ab", *arguments])
    except SystemExit as refused:  # by argparse
        status = int(str(refused.code))
    assert status == 2
    captured = capfd.readouterr()
    assert message in captured.err
    assert "pair 1: " not in captured.err
    assert captured.out == ""
    suite.assert_clean()


def test_ab_lists_what_could_be_compared(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.path)
    assert cli.main(["ab", "numpy", "numpy@nowhere"]) == 2
    error = capfd.readouterr().err
    for known in (*registry.registered(), "default", "git:REV"):
        assert known in error


_PLAIN = """
import sys, pytest

def work(number):
    return sum(range(2_000 + number))

@pytest.mark.parametrize("number", [1, 2])
def test_plain(benchmark, number):
    benchmark(work, number)

def test_pedantic(benchmark):
    benchmark.pedantic(work, args=(3,), rounds=50, iterations=10)
"""


def test_ab_of_plain_benchmarks(suite: Suite) -> None:
    """They take turns as cases do; a fixed number of rounds is one visit."""
    suite.commit(test_it__py=_PLAIN)
    suite.commit(test_it__py=_PLAIN.replace("2_000 +", "20_000 +"))
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW, "--json", "figures.json")
    assert status == 1, out + err
    assert suite.figures()["verdicts"] == {"regressed": 3}
    assert "1 of 3 cases took no turns" in out
    assert all(figure["ratio"] > 2 for figure in suite.figures()["judgements"])
    suite.assert_clean()


_ADDRESSES = """
import ctypes, os

def test_it(benchmark):
    benchmark(sum, range(9))
    address = ctypes.cast(ctypes.CDLL(None).getenv, ctypes.c_void_p).value
    with open(os.environ["ADDRESSES"], "a") as file:
        print(address, file=file)
"""


@pytest.mark.parametrize("is_permitted", [True, False])
def test_ab_gives_addresses(
    suite: Suite,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    is_permitted: bool,
) -> None:
    """The same to both launches of a pair, and each pair others; or it says that it cannot."""
    if not is_permitted:
        monkeypatch.setattr(addresses, "can_be_given", lambda: False)
    file = suite.temporary.parent / "addresses"
    monkeypatch.setenv("ADDRESSES", str(file))
    suite.commit(test_it__py=_ADDRESSES)
    monkeypatch.chdir(suite.path)
    status = cli.main(["ab", "git:HEAD", "git:HEAD", "--pairs", "2", "test_it.py"])
    out, err = capfd.readouterr()
    assert status in (0, 10), out + err
    found = Counter(file.read_text().split())  # two pairs may have drawn one address
    is_given = addresses.can_be_given()
    assert all(launches % 2 == 0 for launches in found.values()) == is_given
    assert len(found) > 1
    assert ("each launch has addresses of its own" in out) != is_given
    suite.assert_clean()


_LED_AWAY = """
import sys
from importlib.util import spec_from_file_location

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, {file!r}) if name == "work" else None

sys.meta_path.insert(0, Finder)  # as some editable installs do
"""

_AT_ONCE = """
import work

def test_work(benchmark):
    benchmark(work.f)
"""

_LATER = """
def test_work(benchmark):
    import work
    benchmark(work.f)
"""


@pytest.mark.parametrize("test", [_AT_ONCE, _LATER], ids=["at once", "later"])
def test_ab_of_revisions_that_import_the_working_tree(suite: Suite, test: str) -> None:
    """Both sides would measure the same code: an error instead of verdicts."""
    led_away = _LED_AWAY.format(file=str(suite.path / "work.py"))
    suite.commit(work__py="f = lambda: sum(range(2000))\n", conftest__py=led_away, test_it__py=test)
    suite.commit(work__py="f = lambda: sum(range(9000))\n")
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW)
    assert (status, out) == (3, ""), err
    assert f"imported work from the working tree ({suite.path / 'work.py'})" in err
    assert "--build" in err
    assert "pair 2" not in err
    suite.assert_clean()


_HELD = """
import os, pytest

@pytest.fixture
def port():
    os.mkdir({held!r})  # as a port that is bound
    yield
    os.rmdir({held!r})

def test_held(benchmark, port):
    benchmark(sum, range(2_000))

def test_free(benchmark):
    benchmark(sum, range(2_000))

def test_wrong(benchmark):
    assert benchmark(sum, range(2_000)) is None
"""


def test_ab_of_what_only_one_side_can_have(suite: Suite, tmp_path: Path) -> None:
    """It is found out, told, and compared by launches; a test that fails by itself is not.

    Tests behind it are measured, though the project's own sessions would end there.
    What launches take before they measure is told, too.
    """
    ini = (suite.path / "pytest.ini").read_text(encoding="utf-8")
    held = _HELD.format(held=str(tmp_path / "held"))
    suite.commit(test_it__py=held, pytest__ini=ini.replace("--fw=numpy", "-x --fw=numpy"))
    more = ("--fail-on", "inconclusive", "--json", "figures.json")
    status, out, err = suite.ab("git:HEAD", ".", *FEW, *more)
    assert status == 0, out + err
    assert err.count("cannot take turns") == 1
    assert "test_it.py::test_held cannot take turns: setup failed while both" in err
    verdicts = {figure["key"]: figure for figure in suite.figures()["judgements"]}
    assert verdicts["test_it.py::test_held"]["verdict"] == "unchanged"
    assert verdicts["test_it.py::test_free"]["verdict"] == "unchanged"
    assert verdicts["test_it.py::test_wrong"]["reason"] == "call failed, on both sides"
    assert "1 of 2 cases took no turns" in out
    assert "test_it.py::test_held: no turns, since setup failed" in out
    assert re.search(r"a launch takes \S+ \w+ to start, \S+ \w+ to import its tests", out)
    suite.assert_clean()


def test_ab_of_what_cannot_be_written(
    suite: Suite, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(suite.path)
    status = cli.main(["ab", "git:HEAD", ".", *FEW, "--json", "nowhere/figures.json"])
    assert status not in (0, 1, 10, 11)
    error = capfd.readouterr().err
    assert "nowhere" in error
    assert "pair 1: " not in error


def test_ab_of_frameworks(suite: Suite) -> None:
    seed = FEW.index("--seed")
    few = [*FEW[:seed], *FEW[seed + 2 :]]
    status, out, err = suite.ab("numpy", "default", *few, "-k", "steady")
    assert status == 0, out + err
    assert "numpy against default: --seed " in err
    assert f"unchanged  {STEADY}" in out
    assert "git" not in out
    suite.assert_clean()


_FUNCTIONS = """
import fwbench
import pytest
from fwbench import Input

def total(x):
    return {"sum": x.sum(axis=0)}

def sort_in_place(x):
    x.sort()

total = fwbench.function(total, inputs=Input("batch", 3), sizes=1000, dtypes=("float64",))
ordered = fwbench.function(sort_in_place, inputs=Input("batch"), sizes=1000, changes="x")

@pytest.mark.fwbench(total, ordered)
def test_function(case):
    case.measure()
"""


def test_ab_of_functions_compares_their_results(suite: Suite) -> None:
    """A sum that is a little different on one side fails the job; one that is rounded does not."""
    suite.commit(test_it__py=_FUNCTIONS)
    rounded = _FUNCTIONS.replace("x.sum(axis=0)", "x[::-1].sum(axis=0)")
    suite.commit(test_it__py=rounded)
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW)
    assert status == 0, out + err
    assert re.search(r"results agree( to \d\.?\d*e-1\d)? \(2 cases\)", out), out
    suite.commit(test_it__py=_FUNCTIONS.replace("x.sum(axis=0)", "x[1:].sum(axis=0)"))
    status, out, err = suite.ab("git:HEAD~1", "git:HEAD", *FEW, "--json", "figures.json")
    assert status == 1, out + err
    rows = [line for line in out.splitlines() if line.startswith("different results")]
    assert len(rows) == 1
    assert re.search(r"total-numpy.* in the \w+: largest relative error .*'s result", rows[0])
    assert suite.figures()["verdicts"]["different results"] == 1
    assert "results agree" in out
    suite.assert_clean()
