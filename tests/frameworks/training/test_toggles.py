"""Training with the real frameworks: what is switched, and what is said while it runs."""

import re
import sys

import pytest

from support.projects import QUICKLY, Project, measuring
from support.real_training import MLP, SCHEDULE, all_of, facts_of, one_of
from support.terminals import Terminal

pytestmark = pytest.mark.usefixtures("started")

# Toggles


def test_loader_workers(project: Project) -> None:
    """Processes that load data deliver the batches that were asked for, and are a case each."""
    fw = all_of("torch", "mxnet")
    project.write("test_it.py", MLP.replace("(mlp)", "(mlp.loader)"))
    result, records = project.measure(
        "--fw-toggle=workers=0,2", "--fw-device=cpu", "--fw-timeout=60", fw=fw
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert {*records} == {
        f"mlp_loader-{name}-cpu-eager-train-float32-128-workers:{workers}-synthetic"
        for name in fw.split(",")
        for workers in (0, 2)
    }
    for name, entry in records.items():
        facts = facts_of(entry)
        assert facts["toggles"]["workers"] == entry["params"]["workers"]
        assert f"workers:{facts['toggles']['workers']}" in name
        assert facts["steps_per_epoch"] == 30
        assert entry["group"] == "mlp_loader cpu train float32 128 synthetic"


#: What a worker is started with, seen before it has imported anything.
_AT_START = """
import os, sys
sys.onednn_at_start = os.environ.get("FWBENCH_ONEDNN")
"""


_NOTING = measuring(
    "sigmoid, sizes=(64,)",
    "import os, sys",
    "from fwbench.workloads import sigmoid",
    body="""
        with open("notes", "a") as notes:
            print(case.cell.framework, os.getpid(), sys.onednn_at_start, file=notes)
        case.measure()
    """,
)


#: By framework: what a record says of oneDNN switched on, and off.
_ONEDNN = {
    "tensorflow": ("TF_ENABLE_ONEDNN_OPTS", "1", "0"),
    "mxnet": ("MXNET_MKLDNN_ENABLED", "1", "0"),
    "torch": ("mkldnn", True, False),
}


def test_toggle_of_a_process(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN on and off are two workers of a framework, told before its import; NumPy has none."""
    monkeypatch.setenv("TF_TOKEN_terraform_example", "a secret of Terraform's")
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "2")
    names = all_of(*_ONEDNN).split(",")
    project.write("packages/sitecustomize.py", _AT_START)
    project.write("test_it.py", _NOTING)
    result, records = project.measure(
        *("--fw-toggle=onednn=on,off", "--fw-device=cpu", "--fw-execution=eager", "-rs"),
        fw=",".join([*names, "numpy"]),
    )
    assert result.ret == pytest.ExitCode.OK, str(result.stdout)
    assert "numpy has no toggle onednn" in str(result.stdout)
    notes = [line.split() for line in project.lines("notes")]
    assert {(name, value) for name, _, value in notes} == {
        (name, value) for name in names for value in ("on", "off")
    }
    assert len({pid for _, pid, _ in notes}) == 2 * len(names)
    for framework in names:
        name, on, off = _ONEDNN[framework]
        for value, expected in (("on", on), ("off", off)):
            toggles = facts_of(
                records[f"sigmoid-{framework}-cpu-eager-forward-float32-64-onednn:{value}"]
            )["toggles"]
            assert toggles["onednn"] == value
            assert toggles[name] == expected
            # Terraform's variables begin as TensorFlow's do.
            assert ("TF_NUM_INTEROP_THREADS" in toggles) == (framework == "tensorflow")
            assert "secret" not in str(toggles)


def test_decay(project: Project) -> None:
    """The learning rate falls after ten epochs, and training is the same until then."""
    project.write("test_it.py", MLP)
    records = project.facts(
        *(
            "--fw-toggle=decay=off,on",
            "--fw-train=epochs=11",
            "--fw-train=warmup-epochs=1",
            "--fw-train=steps=2",
        ),
        *("--fw-device=cpu", "--fw-execution=eager"),
        fw=one_of("mxnet", "torch"),
    )
    assert [facts["toggles"]["decay"] for facts in records.values()] == ["off", "on"]
    off, on = ([epoch["train_loss"] for epoch in facts["epochs"]] for facts in records.values())
    assert on[:10] == pytest.approx(off[:10], abs=1e-6)
    # After a smaller step from the same weights.
    assert 1e-5 < abs(on[10] - off[10]) < 1e-2


#: Lets a terminal have every line, however soon it follows the one before.
_OFTEN = "from fwbench.plugin import lines\nlines._TERMINAL_S = 0.0\n"


def test_live_line(project: Project) -> None:
    """A terminal shows epochs, loss and rate while they are trained."""
    project.write("test_it.py", MLP)
    project.write("packages/often.py", _OFTEN)
    terminal = Terminal(columns=160, lines=50)
    given = [f"--fw={one_of('mxnet', 'torch', 'tensorflow')}", "--fw-device=cpu", *SCHEDULE]
    command = [sys.executable, "-m", "pytest", "-p", "often", "--fw-execution=eager"]
    status = terminal.run([*command, *QUICKLY, *given], project.path)
    assert status == pytest.ExitCode.OK, terminal.shown
    shown = r"mlp-\S+-synthetic, epoch [1-6] of 6, loss \d\.\d{4}, \d+ images/s"
    assert re.search(shown, terminal.written), terminal.written
