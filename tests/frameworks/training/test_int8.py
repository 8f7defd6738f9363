"""A trained network in int8, with the real frameworks: one session, timed where there is MNIST."""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.real_training import all_of, facts_of, find_real, is_there, run_suite

pytestmark = pytest.mark.usefixtures("started")

#: How each framework answers in int8, with the packages that this takes besides its own.
_EXECUTIONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("torch", "eager"): (),
    ("mxnet", "hybridize"): (),
    ("tensorflow", "litert"): ("ai_edge_litert",),
    ("onnxruntime", "from_torch"): ("torch", "onnx"),
}

#: Records of the session, by framework and dtype; none where it timed nothing.
_Records = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def session(suite_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, _Records]:
    """The output and the records of a session: timed with MNIST, verified without."""
    try:
        folder = find_real("mnist").paths[0].parent
    except pytest.skip.Exception:
        how, stored = ["--benchmark-disable"], None
    else:
        stored = tmp_path_factory.mktemp("int8") / "run.json"
        how = [f"--fw-data={folder}", f"--benchmark-json={stored}", "--fw-size=200"]
        how += ["--benchmark-max-time=1e-3", "--benchmark-min-rounds=2", "--fw-warmup=0"]
    frameworks = all_of(*(framework for framework, _ in _EXECUTIONS))
    executions = ",".join(execution for _, execution in _EXECUTIONS)
    status, output = run_suite(
        "test_models.py",
        suite_cache,
        *("-k", "lenet_classification", f"--fw={frameworks}", "--fw-device=cpu"),
        *(f"--fw-execution={executions}", "--fw-dtype=float32,int8", *how),
    )
    assert status == pytest.ExitCode.OK, output
    return output, {} if stored is None else dict(_records(stored))


def _records(stored: Path) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    for entry in json.loads(stored.read_text(encoding="utf-8"))["benchmarks"]:
        facts = facts_of(entry)
        if (facts["framework"], facts["execution"]) in _EXECUTIONS:
            yield (facts["framework"], facts["dtype"]), facts


def _there() -> list[str]:
    return [
        framework
        for (framework, _), packages in _EXECUTIONS.items()
        if is_there(framework) and all(map(importlib.util.find_spec, packages))
    ]


def test_every_framework_answers_in_int8(session: tuple[str, _Records]) -> None:
    """Calibrated, and verified against the float64 reference; MXNet has float32 in eager, too."""
    output, _ = session
    passed, *_ = re.findall(r"(\d+) passed", output)
    assert int(passed) >= 2 * len(_there()), output


def test_int8_loses_little_and_is_small(session: tuple[str, _Records]) -> None:
    """On 2,000 test pictures of MNIST, float32 has the reference's accuracy everywhere."""
    find_real("mnist")
    _, records = session
    assert {framework for framework, dtype in records if dtype == "int8"} == {*_there()}
    for framework in _there():
        wide, narrow = records[framework, "float32"], records[framework, "int8"]
        assert (wide["accuracy"], wide["agreement"]) == (0.9615, 1.0)
        assert wide["tested_examples"] == narrow["tested_examples"] == 2_000
        assert abs(narrow["accuracy"] - 0.9615) < 0.01
        assert narrow["agreement"] >= 0.985
        assert "int8_features" in narrow
        assert narrow["model_bytes"] < 0.5 * wide["model_bytes"]
