"""A session imports what it uses, of other packages and of fwbench itself."""

from pathlib import Path

import pytest

from support import programs
from support.real_training import if_installed

_ROOT = Path(__file__).parents[2]
_SOURCE = _ROOT / "src"

#: Modules of fwbench that all processes of a session of one operation import together.
_MODULES_AT_MOST = 200

#: What a session imports for replicas, a gate and reports alone.
_BORDERS = (
    *("fwbench.gangs.", "fwbench.gate.", "fwbench.report.charts", "fwbench.report.sections"),
    *("fwbench.report.drawing", "fwbench.report.writers", "fwbench.plugin.gate"),
)

#: Every interpreter notes the modules of fwbench that it executes, workers too.
_NOTING = """
import os, sys

def note(event, arguments):
    if event == "exec" and arguments[0].co_name == "<module>":
        with open(os.environ["NOTED"], "a") as file:
            print(arguments[0].co_filename, file=file)

sys.addaudithook(note)
"""

#: What reports, environments, completion, GPUs, TensorFlow's rounds and NumPy's threads need.
_ABSENT = (
    *("cairosvg", "greenlet", "jinja2", "platformdirs", "pygal", "pygaljs", "pynvml", "ruptures"),
    *("shtab", "threadpoolctl"),
)

#: Every interpreter imports it as it starts, workers too.
_SITECUSTOMIZE = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {_ABSENT!r}:
            raise ModuleNotFoundError(f"no {{name}} here", name=name)

sys.meta_path.insert(0, Absent())
"""


@pytest.mark.parametrize(
    ("framework", "absent"), [("numpy", ""), if_installed("torch", _SITECUSTOMIZE)]
)
def test_a_session_imports_what_it_needs(framework: str, absent: str, tmp_path: Path) -> None:
    """PyTorch is measured, in a worker, where nothing else is installed than what a case needs.

    The names of modules are counted once, whichever of the session's processes imports them.
    """
    (tmp_path / "sitecustomize.py").write_text(absent + _NOTING, encoding="utf-8")
    noted = tmp_path / "noted"
    options = ("-k", "relu", f"--fw={framework}", "--fw-threads=1", "--fw-warmup=0")
    session = ("-m", "pytest", "-p", "no:cacheprovider", *options, "benchmarks")
    variables = {"PYTHONPATH": str(tmp_path), "NOTED": str(noted)}
    assert "relu" in programs.output(*session, cwd=_ROOT, variables=variables)
    files = {Path(line) for line in noted.read_text(encoding="utf-8").splitlines()}
    modules = {
        ".".join(file.relative_to(_SOURCE).with_suffix("").parts)
        for file in files
        if file.is_relative_to(_SOURCE)
    }
    assert {"fwbench.plugin.worker", "fwbench.plugin.entry"} <= modules
    assert [name for name in sorted(modules) if f"{name}.".startswith(_BORDERS)] == []
    assert len(modules) <= _MODULES_AT_MOST


def test_functions_are_noted_before_a_framework_may_replace_them() -> None:
    """A worker imports what compares them before it imports the framework."""
    code = "import sys, fwbench.plugin.worker; print('fwbench.cases.timing' in sys.modules)"
    assert programs.output("-c", code) == "True\n"
