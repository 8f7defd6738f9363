"""Where records are kept: refused early where they cannot be, else written whole or not at all."""

import fcntl
import itertools
import json
import os
import platform
import re
import shlex
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from fwbench import cli
from support.projects import Project, measuring
from support.tables import tabled

#: A large file does not fit any more; a line of a journal still does.
_FULL_DISK = """
import errno, os

def full(descriptor):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

os.fsync = full
"""


#: Of every file in a folder only the beginning fits.
_FULL_FOLDER = """
import errno, os
from pathlib import Path

class Full:
    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data):
        self.file.write(data[:100])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

real_open = Path.open

def open(self, mode="r", *arguments, **keywords):
    file = real_open(self, mode, *arguments, **keywords)
    fits = mode in ("r", "rb") or self.name == ".gitignore" or "{folder}" not in self.parts
    return file if fits else Full(file)

Path.open = open
"""


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _link_to_nowhere(path: Path) -> Path:
    path.symlink_to(path.parent / "missing" / "out.json")
    return path


#: What stands at the path, and what the refusal says of it.
_UNWRITABLE = {
    "a folder": (_folder, "a directory"),
    "in a missing folder": (lambda path: path / "out.json", "No such file"),
    "in a file": (lambda path: path.with_name("test_it.py") / "out.json", "Not a directory"),
    "a link to a missing folder": (_link_to_nowhere, "No such file"),
    "read-only": (lambda _: Path("/proc/fwbench.json"), "/proc/fwbench.json: "),
}


@pytest.mark.parametrize(("place", "message"), _UNWRITABLE.values(), ids=_UNWRITABLE)
def test_unwritable_json_is_refused(
    cases: Project, place: Callable[[Path], Path], message: str
) -> None:
    path = place(cases.path / "out.json")
    said = ["\nERROR: --benchmark-json: cannot write ", message]
    cases.assert_refused(said, f"--benchmark-json={path}")


@tabled
def test_whatever_cannot_be_written_is_refused(
    cases: Project, option: str, arguments: tuple[str, ...]
) -> None:
    given = [option] if option == "--benchmark-autosave" else []
    cases.assert_refused([f"\nERROR: {option}: cannot write "], *arguments, *given)


def test_writable_json_is_left_alone_until_the_end(cases: Project) -> None:
    earlier = cases.write("out.json", "earlier")
    refused = cases.run("--benchmark-json=out.json", "--fw-launches=0")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    cases.run("--benchmark-json=out.json", "--collect-only")
    assert earlier.read_text() == "earlier"
    assert _named_like(earlier) == [earlier]


def test_a_saved_run_is_named_in_the_next_step(cases: Project) -> None:
    result = cases.run("--benchmark-save=a run", "-k", "double")
    (saved,) = (cases.path / ".benchmarks").rglob("*.json")
    (named,) = re.findall(r"fwbench report (\S+) -o run.html", " ".join(str(result.stdout).split()))
    assert [*cases.path.glob(named)] == [saved]


def _named_like(path: Path) -> list[Path]:
    """The files beside a file that have its name in theirs."""
    return [other for other in path.parent.iterdir() if path.name in other.name]


def test_json_keeps_links_and_devices(cases: Project) -> None:
    target = cases.path / "target.json"
    link = cases.path / "link.json"
    link.symlink_to(target)
    cases.run(f"--benchmark-json={link}", "-k", "double").assert_outcomes(passed=2, deselected=3)
    assert link.is_symlink()
    assert len(cases.entries("target.json")) == 2
    pipe = cases.path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    room_bytes = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 2**20)  # nobody reads until the end
    try:
        result = cases.run(f"--benchmark-json={pipe}", "-k", "double and 8]")
        piped = json.loads(os.read(reader, room_bytes))
    finally:
        os.close(reader)
    assert result.ret == pytest.ExitCode.OK
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [entry["param"] for entry in piped["benchmarks"]] == [
        "double-numpy-cpu-eager-forward-float32-8"
    ]


@pytest.fixture
def full_device(tmp_path: Path) -> Path:
    """A device of our own that is always full: /dev/full must not be risked."""
    path = tmp_path / "full"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        path.open("rb").close()
    except OSError as error:
        pytest.skip(f"no device can be made here: {error}")
    return path


def test_full_device(cases: Project, full_device: Path) -> None:
    result = cases.run(f"--benchmark-json={full_device}")
    assert stat.S_ISCHR(full_device.stat().st_mode)
    _assert_reported(
        result, f"--benchmark-json: cannot write {full_device}: No space left on device"
    )


def _assert_reported(result: pytest.RunResult, *message: str) -> None:
    """The problem is told once, the summary is there, and the session has not ended well."""
    lines = [line for line in result.outlines if line.startswith("fwbench: --benchmark-")]
    assert lines == result.outlines[-1:]  # below pytest's green one
    assert [part for part in message if part not in lines[0]] == []
    output = str(result.stdout)
    assert "only numpy was measured" in output
    assert "Traceback" not in output + str(result.stderr)
    result.assert_outcomes(passed=5)
    assert result.ret not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


def test_disk_full_at_the_end(cases: Project) -> None:
    earlier = cases.write("out.json", "earlier")
    cases.write("conftest.py", _FULL_DISK)
    result = cases.run("--benchmark-json=out.json")
    _assert_reported(result, "--benchmark-json", "out.json: No space left", "fwbench recover")
    assert earlier.read_text() == "earlier"
    assert _named_like(earlier) == [earlier]


def test_disk_full_while_saving(cases: Project) -> None:
    """--benchmark-save leaves no part of a file, so that the next comparison finds whole ones."""
    earlier = cases.write(".benchmarks/0001_first.json", "earlier")
    cases.write("conftest.py", _FULL_FOLDER.format(folder=".benchmarks"))
    result = cases.run("--benchmark-save=second")
    _assert_reported(result, "--benchmark-save: cannot write under ", "No space left on device")
    assert [*(cases.path / ".benchmarks").rglob("*.json")] == [earlier]
    assert earlier.read_text() == "earlier"


@pytest.mark.parametrize("problem", ["in the way", "full"])
def test_journal_that_cannot_be_written(cases: Project, problem: str) -> None:
    """Without a journal the session goes on, says so once, and still writes its JSON."""
    if problem == "in the way":
        cases.write(".fwbench", "a file")
        message = "Not a directory"
    else:
        cases.write("conftest.py", _FULL_FOLDER.format(folder=".fwbench"))
        message = "No space left on device"
    result, records = cases.measure()
    result.assert_outcomes(passed=5)
    assert len(records) == 4
    lines = [line for line in result.outlines if line.startswith("fwbench: cannot write")]
    assert len(lines) == 1
    assert message in lines[0]
    assert "no record is kept from here on" in lines[0]
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("inside", [True, False])
def test_a_saved_run_is_compared_on_its_own_machine(
    project: Project, tmp_path_factory: pytest.TempPathFactory, inside: bool
) -> None:
    """It does not say the machine's name, which is not compared then, wherever it is."""
    storage = project.path / "store" if inside else tmp_path_factory.mktemp("store")
    project.write("test_it.py", measuring("double"))
    arguments = (f"--benchmark-storage={storage}", "--benchmark-autosave")
    project.run(*arguments).assert_outcomes(passed=2)
    result = project.run(*arguments, "--benchmark-compare")
    result.assert_outcomes(passed=2)
    assert "machine_info is different" not in str(result.stdout) + str(result.stderr)


def test_a_session_whose_cases_all_fail_is_the_latest(project: Project) -> None:
    """Its journal has no record: an older session is not taken for it."""
    project.write("test_it.py", measuring("double"))
    project.run().assert_outcomes(passed=2)
    (earlier,) = (project.path / ".fwbench" / "journal").iterdir()
    project.write("test_it.py", measuring("double", body="assert case is None"))
    for _ in range(2):
        project.run("--benchmark-json=failed.json").assert_outcomes(failed=2)
    done = project.python("-m", "fwbench", "recover", "-o", "x.json")
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert re.search(
        r"the latest session has no record in .+ \(the session began .+ UTC: pytest .*"
        r"--fw=numpy.*\); fwbench recover \S+ writes those of the one before",
        done.stderr,
    ), done.stderr
    assert f"recover {earlier.relative_to(project.path)} writes" in done.stderr
    assert not (project.path / "x.json").exists()
    assert len([*earlier.parent.iterdir()]) == 2, "of those without a record the latest is kept"


@pytest.mark.parametrize("arguments", [("--benchmark-disable",), ("--collect-only",), ("-k=no",)])
def test_what_times_nothing_has_no_journal(cases: Project, arguments: tuple[str, ...]) -> None:
    cases.run(*arguments)
    assert not (cases.path / ".fwbench" / "journal").exists()


def test_journals_are_few(cases: Project) -> None:
    for number in range(12):
        cases.write(
            f".fwbench/journal/20200101T0000{number:02}-1.jsonl",
            '{"a": "record"}\n{"fwbench_journal_end": true}\n',
        )
    cases.run("-k", "double").assert_outcomes(passed=2, deselected=3)
    journals = sorted(path.name for path in (cases.path / ".fwbench" / "journal").iterdir())
    assert len(journals) == 10
    assert journals[0] == "20200101T000003-1.jsonl"
    assert (cases.path / ".fwbench" / ".gitignore").read_text() == "*\n"


def test_benchmarks_that_are_not_cases_are_in_the_journal(cases: Project) -> None:
    cases.write("test_plain.py", "def test_plain(benchmark): benchmark(int)\n")
    _, records = cases.measure("--fw-launches=1")
    assert len(records) == 5
    assert cli.main(["recover", "-o", "recovered.json"]) == 0
    assert cases.records("recovered.json").keys() == records.keys()
    names = {entry["name"] for entry in cases.entries("recovered.json")}
    assert "test_plain" in names


_HUSH = "hush" * 9

#: As people give secrets to programs; names of folders say who they are.
_SECRETS = (
    *(f"ghp_{_HUSH}", f"xoxb-2-{_HUSH}", f"AKIA{_HUSH[:16].upper()}", f"eyJ{_HUSH}.{_HUSH}.x"),
    *(f"https://h.example/x?access_token={_HUSH}", "https://h.example/x?sig=hush%2B&sas=hush"),
    *("Authorization: Bearer hush", "Server=x;Pwd=hush", "me:hush@host", "https://me:hush@host/x"),
    *("Cookie: id=hush", "file:///home/hush/x", "~hush/x", "AWS_SECRET=hush"),
    f"-----BEGIN PRIVATE KEY-----\n{_HUSH * 20}\n-----END PRIVATE KEY-----",
)

_OPTIONS = """
def pytest_addoption(parser):
    parser.addoption("--x-value", action="append")
    parser.addini("x_value", "")
"""
_REPORTS = {"--output": "html", "--markdown": "md", "--csv": "csv"}


@pytest.fixture
def private(cases: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project below a home, in an environment with secrets and variables that change speed."""
    quoted = shlex.join(f"--x-value={secret}" for secret in _SECRETS)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{os.environ['PYTEST_ADDOPTS']} {quoted}")
    for name in ("KMP_AFFINITY", "KMP_TOKEN", "NVIDIA_API_KEY"):
        monkeypatch.setenv(name, _SECRETS[0])
    monkeypatch.setenv("KMP_BLOCKTIME", "7")
    monkeypatch.setenv("OPENBLAS_LOOPS", str(cases.path / "x"))
    monkeypatch.setenv("HOME", str(cases.path.parent))
    cases.write("conftest.py", _OPTIONS)
    cases.write("test_wrong.py", measuring("wrong"))
    cases.write("pytest.ini", "[pytest]\naddopts = '--x-value=Proxy-Authorization: Basic hush'\n")
    return cases


def _recorded(project: Project, *arguments: str) -> tuple[str, str]:
    """All that a session writes (its JSON, what it saves, its journal, its reports) and prints."""
    json_file = project.path / "out.json"
    result = project.run(f"--benchmark-json={json_file}", "--benchmark-autosave", *arguments)
    assert result.ret == pytest.ExitCode.TESTS_FAILED, str(result.stdout)
    files = [json_file, *(project.path / ".benchmarks").rglob("*.json")]
    files += (project.path / ".fwbench" / "journal").iterdir()
    assert len(files) == 3
    reports = [project.path / f"report.{kind}" for kind in _REPORTS.values()]
    outputs = [f"{option}={file}" for option, file in zip(_REPORTS, reports, strict=True)]
    shown = project.python("-m", "fwbench", "report", str(json_file), *outputs)
    assert shown.returncode == 1, "two cases failed"
    texts = [file.read_text(encoding="utf-8") for file in (*files, *reports)]
    return "".join(texts), "".join([*result.outlines, *result.errlines])


def test_records_are_fit_to_be_shared(private: Project) -> None:
    """No secret, no name of the machine, no folder of its user; what changes speed is there."""
    forms = (("-o", f"x_value={s}", "--x-value", s, f"--x-value={s}") for s in _SECRETS)
    lines, printed = _recorded(private, *itertools.chain(*forms), "test_it.py", "test_wrong.py")
    assert "hush" not in (lines + printed).lower()
    assert str(private.path.parent) not in lines
    assert f'"node": "{platform.node()}"' not in lines
    assert lines.count('"test_it.py"') == 3
    assert '"KMP_AFFINITY": "***"' in lines
    assert '"KMP_BLOCKTIME": "7"' in lines
    assert '"OPENBLAS_LOOPS": "x"' in lines


def test_records_may_say_whose_they_are(private: Project) -> None:
    lines, _ = _recorded(private, "--x-value=hush", "-ofw_record_host=true")
    assert "hush" not in lines.lower()
    assert str(private.path / "x") in lines
    assert lines.count(f'"node": "{platform.node()}"') == 3
