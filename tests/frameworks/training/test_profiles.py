"""Steps of a small network under each framework's own profiler."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fwbench.frameworks import profiler
from support.real_training import all_of, facts_of, if_installed

pytestmark = pytest.mark.usefixtures("started")

_EXECUTIONS = {"torch": "eager", "mxnet": "hybridize", "tensorflow": "graph"}

_SUITE = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, suite_cache: Path) -> dict[str, Any]:
    """The facts of a step of LeNet, by framework, with the text of its trace."""
    folder = tmp_path_factory.mktemp("profiles")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "benchmarks/test_training.py", "-k", "lenet_step"),
            *(f"--fw={all_of(*_EXECUTIONS)}", f"--fw-execution={','.join(_EXECUTIONS.values())}"),
            *("--fw-device=cpu", "--fw-profile", f"--fw-traces={folder}", "--fw-warmup=0"),
            *(f"--benchmark-json={folder / 'run.json'}", "--benchmark-max-time=0.01"),
            *("--fw-size=8", "-o", f"cache_dir={suite_cache}"),
        ],
        cwd=_SUITE,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    facts = map(facts_of, json.loads((folder / "run.json").read_text())["benchmarks"])
    return {
        each["framework"]: (each["profile"], (folder / each["profile"]["trace"]).read_text())
        for each in facts
        if each["execution"] == _EXECUTIONS[each["framework"]]
    }


@pytest.mark.parametrize("framework", [if_installed(name) for name in _EXECUTIONS])
def test_a_step_has_what_it_is_made_of(framework: str, found: dict[str, Any]) -> None:
    """Convolutions, products, pooling, an optimiser and a loss; little that nobody classed."""
    profile, trace = found[framework]
    shares = profile["shares"]
    assert sum(shares.values()) == pytest.approx(1.0)
    made_of = {
        *(profiler.CONVOLUTION, profiler.MATMUL, profiler.POOLING),
        *(profiler.OPTIMISER, profiler.LOSS),
    }
    assert made_of <= {name for name, share in shares.items() if share > 0}
    classes = {each["name"]: each["operator_class"] for each in profile["operators"]}
    assert len(classes) <= 10
    assert profiler.OTHER not in [*classes.values()][:3]
    assert json.loads(trace)["traceEvents"]
