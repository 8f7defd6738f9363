"""Small projects of a user's own, each measured by a pytest in a process of its own."""

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
import zlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any
from xml.etree import ElementTree as ET

# Its importlib_metadata takes the interpreter's finder of distributions away, and puts its own on
# sys.meta_path; pytester, which restores that, would leave none after a test that has imported it.
import pygal  # noqa: F401
import pytest

from support import programs
from support.forkserver import SLOW_TO_IMPORT, ForkServer
from support.neighbours import blocking

# pygal's finder is of Python 2, and pytest's import mode importlib asks each for a specification.
sys.meta_path[:] = [finder for finder in sys.meta_path if hasattr(finder, "find_spec")]

#: As little as can be measured; how long anything takes is no test's business.
QUICKLY = ("--benchmark-max-time=0.01", "--benchmark-min-rounds=1", "--fw-warmup=0")

_DECLARED = '''
"""Operations of a user's own, for NumPy alone."""

from fwbench import Operation


def doubling(name, function=lambda x: 2.0 * x, sizes=(4, 8)):
    operation = Operation(
        name=name,
        inputs=lambda size, rng: (rng.standard_normal(size),),
        reference=lambda x: 2.0 * x,
        sizes=sizes,
    )
    operation.implement("numpy")(lambda np: function)
    return operation


double = doubling("double")
twice = doubling("twice", lambda x: x + x)
wrong = doubling("wrong", lambda x: 3.0 * x)
'''


def measuring(marker: str, *before: str, body: str = "case.measure()") -> str:
    """A test file whose ``test_it`` measures the cases of a marker.

    Args:
        marker: its arguments; operations are those declared, or of the lines ``before``.
        body: the lines of the test.
    """
    imports = ("import pytest", "from declared import double, doubling, twice, wrong")
    lines = indent(dedent(body).strip(), "    ")
    test = (f"@pytest.mark.fwbench({marker})", "def test_it(case):", lines, "")
    return "\n".join((*imports, *before, "", *test))


#: One test of two operations, and one without any.
ORDINARY = "\ndef test_ordinary():\n    pass\n"
CASES = measuring("double, twice") + ORDINARY

_PARENT_FACTS = """
import json, os, sys
from pathlib import Path
import pytest

workers = []

def audit(event, arguments):
    if event == "subprocess.Popen":
        command = list(map(str, arguments[1]))
        if any("fwbench" in word for word in command):
            workers.append(command)

sys.addaudithook(audit)

@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        facts = {"pid": os.getpid(), "modules": sorted(sys.modules), "workers": workers}
        Path("parent.json").write_text(json.dumps(facts))
"""


#: A test that runs before others, and leaves a file behind.
LEAVES_A_TRACE = "def test_first():\n    open('ran', 'w').close()\n"

_REFUSED = Path(__file__).parents[1] / "plugin" / "refused.toml"


def refusals(table: str) -> pytest.MarkDecorator:
    """Parameters of a test of each row of a table of refused.toml: what is asked, what is said."""
    rows = tomllib.loads(_REFUSED.read_text(encoding="utf-8"))[table]
    tried = [pytest.param(given, said, id=given or "nothing") for given, *said in rows]
    return pytest.mark.parametrize(("given", "said"), tried)


@dataclass(frozen=True)
class Outcome:
    """One test in JUnit's XML."""

    kind: str
    text: str


class Project:
    """A folder with tests that measure, and the packages that they need.

    What frameworks say of themselves is known if an earlier project has asked them.

    Args:
        shared: a folder for what is the same in all projects.
        servers: fork its programs, by the framework that they have imported; None to start
            programs, as a user's are.

    Attributes:
        path: the folder.
        packages: what lies here can be imported, also by a worker.
        servers: as above.
    """

    _imported = ""

    def __init__(
        self,
        pytester: pytest.Pytester,
        monkeypatch: pytest.MonkeyPatch,
        shared: Path,
        servers: Callable[[str], ForkServer] | None,
    ) -> None:
        self.servers = servers
        self.path = pytester.path
        self.packages = self.path / "packages"
        self.packages.mkdir()
        # A manifest is asked for again on another path: one name for the packages of all projects.
        link = shared / "packages"
        link.unlink(missing_ok=True)
        link.symlink_to(self.packages)
        monkeypatch.setenv("PYTHONPATH", str(link))
        self._known = shared / "manifests"
        self._cached = self.path / ".pytest_cache" / "v" / "fwbench" / "manifests"
        if self._known.exists():
            shutil.copytree(self._known, self._cached)
            (self.path / ".pytest_cache" / ".gitignore").write_text("*\n", encoding="utf-8")
        monkeypatch.setenv("COLUMNS", "250")
        monkeypatch.setenv("PYTEST_ADDOPTS", blocking())  # which pytester takes away
        self.write("packages/declared.py", _DECLARED)
        self.write("packages/parent_facts.py", _PARENT_FACTS)

    def keep_manifests(self) -> None:
        """Let later projects know what frameworks have said of themselves."""
        self._known.mkdir(exist_ok=True)
        for path in self._cached.glob("*"):
            if "manifest" in json.loads(path.read_text()):
                shutil.copyfile(path, self._known / path.name)

    def forget_manifests(self) -> None:
        """Have the next session ask every framework, as in a project that has seen none yet."""
        shutil.rmtree(self._cached, ignore_errors=True)

    def hide_frameworks(self) -> None:
        """Have no framework but NumPy installed."""
        self.forget_manifests()
        for name in ("jax", "mxnet", "onnxruntime", "tensorflow", "torch"):
            error = f"ModuleNotFoundError(\"No module named '{name}'\", name='{name}')"
            self.write(f"packages/{name}.py", f"raise {error}")

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def install(
        self,
        name: str,
        value: str,
        source: str,
        package: str = "",
        group: str = "fwbench.frameworks",
    ) -> None:
        """Install a package of one file and one entry point, as an installer would.

        Args:
            value: what it points to, ``module:Class`` or ``module``.
            package: what the package is called; default: as the module.
        """
        module = value.partition(":")[0]
        package = package or module
        path = self.write(f"packages/{module.replace('.', '/')}.py", source)
        # The same source is the same file, whose manifest need not be asked for again.
        changed_s = zlib.crc32(source.encode())
        os.utime(path, (changed_s, changed_s))
        info = f"packages/{package}-1.0.dist-info"
        self.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        self.write(f"{info}/entry_points.txt", f"[{group}]\n{name} = {value}\n")

    def install_pool(self) -> None:
        """Install the framework of pool_framework.py."""
        source = Path(__file__).with_name("pool_framework.py").read_text(encoding="utf-8")
        self.install("pool", "pool_framework:Pool", source)

    def run(self, *arguments: str, fw: str | None = "numpy") -> pytest.RunResult:
        """Run pytest in the folder, quickly; later arguments win.

        A framework that takes seconds to import, and is alone, is forked with one thread.
        """
        given = [f"--fw={fw}"] if fw else []
        if self.servers is None or fw not in SLOW_TO_IMPORT:
            return self.run_exactly(*QUICKLY, *given, *arguments)
        self._imported = fw
        try:
            return self.run_exactly(*QUICKLY, *given, "--fw-threads=1", *arguments)
        finally:
            self._imported = ""

    def run_exactly(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in the folder with these arguments alone."""
        # Not pytester.runpytest_subprocess: it adds the project to PYTHONPATH, on which every kept
        # manifest depends.
        started_s = time.perf_counter()
        done = self.python("-m", "pytest", *arguments)
        sys.stdout.write(done.stdout)
        sys.stderr.write(done.stderr)
        output, errors = done.stdout.splitlines(), done.stderr.splitlines()
        return pytest.RunResult(
            done.returncode, output, errors, duration=time.perf_counter() - started_s
        )

    def python(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run Python in the folder, to the program's end."""
        with self.forking():
            return programs.run(*arguments, cwd=self.path, timeout=300)

    def forking(self) -> AbstractContextManager[None]:
        """Have ``subprocess`` fork programs within a block, unless they are to be started."""
        return nullcontext() if self.servers is None else self.servers(self._imported).forking()

    def measure(
        self, *arguments: str, fw: str | None = "numpy"
    ) -> tuple[pytest.RunResult, dict[str, Any]]:
        """Run pytest and read what it has stored.

        Returns:
            Its result, and the records by case id.
        """
        result = self.run("--benchmark-json=measured.json", *arguments, fw=fw)
        return result, self.records("measured.json")

    def facts(self, *arguments: str, fw: str | None = "numpy") -> dict[str, Any]:
        """Measure in a session that must end well; returns fwbench's facts by case id."""
        result, records = self.measure(*arguments, fw=fw)
        assert result.ret == pytest.ExitCode.OK, str(result.stdout)
        return {name: entry["extra_info"]["fwbench"] for name, entry in records.items()}

    def records(self, name: str) -> dict[str, Any]:
        """The records of a JSON file by case id."""
        return {entry["param"]: entry for entry in self.entries(name)}

    def entries(self, name: str) -> list[dict[str, Any]]:
        """The records of a JSON file in its order."""
        entries: list[dict[str, Any]] = self._stored(name)["benchmarks"]
        return entries

    def session(self, name: str = "measured.json") -> dict[str, Any]:
        """The facts of the session that a JSON file has."""
        facts: dict[str, Any] = self._stored(name)["fwbench"]
        return facts

    def assert_refused(
        self, said: Sequence[str], *arguments: str, fw: str | None = "numpy"
    ) -> None:
        """A session ends with a usage error that says this, before any test has run."""
        self.write("test_first.py", LEAVES_A_TRACE)
        result = self.run(*arguments, fw=fw)
        output = f"\n{result.stderr}\n{result.stdout}"
        assert [part for part in said if part not in output] == [], output
        assert "Traceback" not in output
        assert "INTERNALERROR" not in output
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        assert not (self.path / "ran").exists()
        assert not (self.path / ".fwbench").exists()

    def _stored(self, name: str) -> Any:
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def outcomes(self, name: str = "junit.xml") -> dict[str, Outcome]:
        """The outcomes in ``--junitxml``, by test function and case id."""
        actual = {}
        for test in ET.parse(self.path / name).iter("testcase"):  # noqa: S314 (our own)
            troubles = [child for child in test if child.tag in ("failure", "error", "skipped")]
            kind = troubles[0].tag if troubles else "passed"
            text = "".join(child.text or "" for child in test)
            actual[test.attrib["name"]] = Outcome(kind, text)
        return actual

    def parent(self) -> dict[str, Any]:
        """Facts that ``-p parent_facts`` saw in the process that pytest was started in."""
        facts: dict[str, Any] = json.loads((self.path / "parent.json").read_text(encoding="utf-8"))
        return facts

    def lines(self, name: str) -> list[str]:
        """The lines that tests of the project wrote to a file."""
        path = self.path / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
