"""Child sessions of pytest, suites of fwbench's own among them."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from fwbench.errors import SuiteError
from fwbench.processes import session
from fwbench.processes.command import Finished
from fwbench.processes.session import last_words
from support.peaks import QUICKLY

pytestmark = pytest.mark.usefixtures("forked")

_TWO = "".join(f"def test_{n}(benchmark):\n    benchmark(int)\n" for n in ("first", "second"))
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
    monkeypatch.setattr(session, "resources", SimpleNamespace(files=lambda _: folder))

    def write(text: str) -> None:
        (folder / "some.py").write_text(text, encoding="utf-8")

    return write


def _emptied() -> bool:
    """True if nothing is left in the temporary folder."""
    return not [*Path(tempfile.gettempdir()).iterdir()]


def test_a_suite_is_measured_on_its_own(suite: Callable[[str], None]) -> None:
    """Not in the current project; its arguments count, its traces go."""
    suite(_TIMED + _TIMED.replace("timed", "left_out"))
    run = session.measure_suite("some", [*QUICKLY, "-k", "not left_out"])
    assert [entry["name"] for entry in run["benchmarks"]] == ["test_timed"]
    assert _emptied()


def test_failing_tests_may_be_borne(suite: Callable[[str], None]) -> None:
    """Where not all must pass, the measured ones count; otherwise the failure is reported."""
    suite(_TIMED + _FAILING)
    run = session.measure_suite("some", QUICKLY, all_must_pass=False)
    assert [entry["name"] for entry in run["benchmarks"]] == ["test_timed"]
    with pytest.raises(SuiteError, match=r"'some' .*exit status is 1\)") as caught:
        session.measure_suite("some", QUICKLY)
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
        session.measure_suite("some", QUICKLY, all_must_pass=all_must_pass)
    assert _emptied()


def test_a_session_that_was_stopped_is_not_measured(suite: Callable[[str], None]) -> None:
    """An interruption is no failing test: what it left over is not all that there is."""
    suite(_TIMED + "def test_stop():\n    raise KeyboardInterrupt\n")
    with pytest.raises(SuiteError, match=r"exit status is 2\)"):
        session.measure_suite("some", QUICKLY, all_must_pass=False)


def test_an_error_has_the_last_lines(suite: Callable[[str], None]) -> None:
    """The number that fits on a screen, in their order."""
    suite("for i in range(100):\n    print('line', i)\nraise RuntimeError('broken')\n")
    with pytest.raises(SuiteError) as caught:
        session.measure_suite("some", [*QUICKLY, "-s"])
    _, _, last = str(caught.value).partition("its last output:\n")
    assert len(last.splitlines()) == 25
    assert "RuntimeError: broken" in last
    assert "line 1" not in last.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_two.py").write_text(_TWO, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("selected", "names"),
    [(None, ["test_first", "test_second"]), (["test_two.py::test_second"], ["test_second"])],
)
def test_a_session_measures_what_is_selected(
    folder: Path, selected: list[str] | None, names: list[str]
) -> None:
    """All that the arguments select, or of that the node ids that are named."""
    results = folder / "results.json"
    done = session.run(
        ["-p", session.SELECTOR, "-p", "no:cacheprovider", *QUICKLY],
        folder=folder,
        results=results,
        variables=dict(os.environ),
        selected=selected,
    )
    assert done.status == 0
    assert any(f"{len(names)} passed" in line for line in done.last_lines)
    measured = json.loads(results.read_text(encoding="utf-8"))["benchmarks"]
    assert [entry["name"] for entry in measured] == names


def test_a_session_takes_over_what_another_has_found(folder: Path) -> None:
    results = folder / "results.json"
    session.run(
        ["-p", session.SELECTOR, "-p", "no:cacheprovider", *QUICKLY],
        folder=folder,
        results=results,
        variables=dict(os.environ),
        origin={"machine_info": {"cpu": {"brand_raw": "known before"}}, "commit_info": {"id": "1"}},
    )
    measured = json.loads(results.read_text(encoding="utf-8"))
    assert measured["machine_info"]["cpu"] == {"brand_raw": "known before"}
    assert measured["commit_info"] == {"id": "1"}


def test_a_session_that_breaks_down_has_a_status_and_last_lines(folder: Path) -> None:
    """Nothing is raised: the caller reports it."""
    done = session.run(
        ["--no-such-option"], folder=folder, results=folder / "r.json", variables=dict(os.environ)
    )
    assert done.status not in session.RAN
    assert any("--no-such-option" in line for line in done.last_lines)


def test_the_last_words_are_about_what_is_wrong() -> None:
    """After a usage error pytest says where it was started, too."""
    error = "pytest: error: unrecognized arguments: --bugdet"
    done = Finished(4, ["ERROR: usage: pytest", error, "  inifile: None", "  rootdir: /src", ""])
    assert last_words(done) == error
    assert last_words(Finished(0, ["  rootdir: /src"])) == "it ended"


@pytest.mark.parametrize("text", [_TWO, "import os\ndef test_it():\n    os._exit(5)\n"])
@pytest.mark.parametrize("quiet", ["-v", "-qq"])
def test_a_test_that_ends_its_session_is_not_taken_for_none(
    tmp_path: Path, text: str, quiet: str
) -> None:
    """pytest's exit status for no tests says that there were none only if the session does."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
    done = session.run(
        ["-p", session.SELECTOR, "-p", "no:cacheprovider", quiet],
        folder=tmp_path,
        results=tmp_path / "results.json",
        variables=dict(os.environ),
        selected=[] if text is _TWO else None,
    )
    assert done.status == session.NOTHING
    assert session.has_found_nothing(done) is (text is _TWO)
