"""``fwbench doctor`` says what is here."""

import json
import shlex
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from fwbench import machine as machine_facts
from fwbench.cli import doctor
from fwbench.errors import ComparisonError, DeclarationError, UsageError
from fwbench.frameworks import registry
from fwbench.frameworks import unseen as unseen_module
from fwbench.gangs import network
from fwbench.gate import releases
from fwbench.gate.releases import Newer
from fwbench.terms.manifest import Absent, Device, Manifest
from fwbench.version import __version__
from fwbench.workers import environments
from fwbench.workers.environments import Environment, complete
from support import programs
from support.fake_nvml import Card, FakeNvml
from support.fakes import manifest
from support.gangs import out
from support.peaks import MACHINE
from support.tables import tabled


class Machine:
    """A machine whose frameworks answer what they are told to."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"fake": manifest(build={"compiler": "cc 1.0"})}
        self.requests: list[tuple[list[str], int]] = []
        self.error: Exception | None = None

    def registry(self) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return self.answers

    def describe(
        self, names: list[str], threads: int, interpreter_of: Callable[[str], str] | None = None
    ) -> dict[str, Any]:
        """The manifests of frameworks in the environment that runs doctor."""
        assert interpreter_of is not None
        self.requests.append((names, threads))
        return {name: self.answers[name] for name in names}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """A machine with one framework, two CPUs and a clear name; in the folder of a project."""
    made = Machine()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("", encoding="utf-8")
    monkeypatch.setattr(doctor, "describe", made.describe)
    monkeypatch.setattr(network, "missing", lambda link: "no netem" if link.delay_s else "")
    monkeypatch.setattr(registry, "registered", made.registry)
    monkeypatch.setattr(machine_facts, "machine", lambda _: MACHINE)
    monkeypatch.setattr(machine_facts, "usable_cpus", lambda: 2)
    return made


@pytest.mark.usefixtures("machine")
def test_doctor_describes_the_machine(capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys, "doctor").splitlines()
    assert lines[:7] == [
        "machine",
        "  cpu       Fake CPU",
        "  cpus      8; physical cores: 4",
        "  usable    2 cpus by this process",
        "  threads   2 for every framework",
        "  memory    1.5 GiB",
        "  system    Fake OS",
    ]
    assert "packages" in lines
    assert f"  {'fwbench':<16} {__version__}" in lines


@pytest.mark.usefixtures("machine")
def test_doctor_says_where_data_sets_are(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("FWBENCH_DATA", raising=False)
    assert "  mnist     synthetic: generated" in out(capsys, "doctor")
    (tmp_path / "train-images-idx3-ubyte").write_bytes(b"")
    monkeypatch.setenv("FWBENCH_DATA", str(tmp_path))
    unusable = json.loads(out(capsys, "doctor", "--json"))["data"]["mnist"]
    assert unusable["source"] == "unusable"
    assert "train-images-idx3-ubyte" in unusable["origin"]


@pytest.mark.usefixtures("machine")
def test_doctor_says_which_networks_there_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys, "doctor").splitlines()
    begin = lines.index("networks between replicas on this machine (--fw-network)")
    assert lines[begin + 1 : begin + 4] == [
        "  loopback        possible",
        "  100mbit         possible",
        "  100mbit+1ms     no netem",
    ]
    networks = json.loads(out(capsys, "doctor", "--json"))["networks"]
    assert networks == {"100mbit": "", "100mbit+1ms": "no netem"}


@pytest.mark.usefixtures("machine")
def test_doctor_describes_frameworks(capsys: pytest.CaptureFixture[str]) -> None:
    report = out(capsys, "doctor")
    assert report[report.index("fake 1.2") :].splitlines() == [
        "fake 1.2",
        "  device      cpu: Fake CPU",
        "  device      gpu:0: Fake 9000",
        "  executions  eager, graph, compile (on request)",
        "  dtypes      float32, float64, float16, bfloat16",
        "  directions  forward, backward",
        "  training    eager, graph, fit; float32, float64",
        "  toggles     onednn",
        "  gpu memory  peak",
        "  gpu clock   cupti",
        "  threads     2",
        "  compiler    cc 1.0",
    ]


def test_doctor_says_what_a_framework_has_not(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gradients and training that are not offered, and unknown threads, are not made up."""
    lacks: dict[str, Any] = {"differentiable": False, "threads": None, "training_executions": ()}
    machine.answers = {"plain": manifest(name="plain", **lacks)}
    report = out(capsys, "doctor")
    assert "  directions  forward\n" in report
    assert "  training " not in report
    assert "  threads     not known\n" in f"{report}\n"


@pytest.mark.parametrize("remedy", ["install it", ""])
def test_doctor_says_what_is_missing_and_what_to_do(
    machine: Machine, capsys: pytest.CaptureFixture[str], remedy: str
) -> None:
    machine.answers["torch"] = Absent("torch", "not installed", remedy)
    report = out(capsys, "doctor")
    expected = ["torch: cannot be used here", "  found       not installed"]
    expected += [f"  do          {remedy}"] if remedy else []
    assert report[report.index("torch:") :].splitlines() == expected


@pytest.mark.usefixtures("machine")
def test_doctor_names_packages_that_are_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_PACKAGES", ("no-such-package",))
    assert "  no-such-package  missing" in out(capsys, "doctor").splitlines()


def test_doctor_for_programs(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.answers["torch"] = Absent("torch", "not installed", "install it")
    facts = json.loads(out(capsys, "doctor", "--json"))
    assert {*facts} == {
        *("machine", "packages", "threads", "data", "environments", "frameworks", "absent"),
        *("ceilings", "networks", "gpus"),
    }
    assert facts["machine"]["memory_bytes"] == 3 * 2**29
    assert facts["packages"]["fwbench"] == __version__
    assert facts["threads"] == 2
    assert Manifest.from_json(facts["frameworks"]["fake"]) == machine.answers["fake"]
    assert facts["absent"] == {"torch": {"reason": "not installed", "remedy": "install it"}}
    assert facts["environments"] == {}


@pytest.mark.usefixtures("machine")
def test_doctor_names_the_environments_of_the_project(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "environments" not in out(capsys, "doctor")
    folder = tmp_path / ".fwbench" / "envs" / "fake@old"
    folder.mkdir(parents=True)
    held = {"fake": "1.1", "numpy": "1.26"}
    complete(Environment("fake@old", folder, ("fake==1.1",), "3.10.1", "uv", held))
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    lines = out(capsys, "doctor").splitlines()
    at = lines.index("other environments (fwbench env show NAME says more)")
    assert lines[at + 1] == "  fake@old         python 3.10.1: fake 1.1, numpy 1.26"
    facts = json.loads(out(capsys, "doctor", "--json"))
    expected = {"python": "3.10.1", "frameworks": held, "made_here": True}
    assert facts["environments"] == {"fake@old": expected}
    environments.forget(folder)
    assert f"{lines[at + 1]}; not made on this machine, so it is not run" in out(capsys, "doctor")


@pytest.mark.parametrize(("arguments", "threads"), [([], 2), (["--threads", "5"], 5)])
def test_doctor_asks_for_the_threads_of_a_session(
    machine: Machine, capsys: pytest.CaptureFixture[str], arguments: list[str], threads: int
) -> None:
    machine.answers["other"] = manifest(name="other")
    report = out(capsys, "doctor", *arguments)
    assert machine.requests == [(["fake", "other"], threads)]
    assert f"  threads   {threads} for every framework" in report


@pytest.mark.parametrize(
    ("error", "status"), [(UsageError("asked wrongly"), 2), (DeclarationError("declared twice"), 3)]
)
def test_errors_are_one_line_and_a_status(
    machine: Machine, capsys: pytest.CaptureFixture[str], error: Exception, status: int
) -> None:
    machine.error = error
    assert out(capsys, "doctor", status=status) == f"fwbench: error: {error}\n"


@pytest.mark.usefixtures("machine")
def test_doctor_names_newer_releases_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases of what frameworks are imported from; other facts do without an answer."""

    def newer(installed: dict[str, str]) -> list[Newer]:
        if not offline:
            return [
                Newer(name, at, version, reason)
                for name, at in installed.items()
                for version, reason in (("98.1", "numpy is old"), ("99.0", ""))
            ]
        raise ComparisonError("newer releases are not known")

    offline = False
    monkeypatch.setattr(metadata, "packages_distributions", lambda: {"fake": ["Pytest"]})
    monkeypatch.setattr(releases, "newer", newer)
    assert "newer" not in out(capsys, "doctor")
    lines = out(capsys, "doctor", "--newer").splitlines()
    at = lines.index("newer releases (fwbench env add measures one side by side with what is here)")
    version = metadata.version("pytest")
    assert lines[at + 1 : at + 3] == [
        f"  pytest           98.1 (here {version}); held back: numpy is old",
        f"  pytest           99.0 (here {version}); nothing holds it back",
    ]
    offline = True
    assert "\n  newer releases are not known\n" in out(capsys, "doctor", "--newer")
    facts = json.loads(out(capsys, "doctor", "--newer", "--json"))
    assert facts["newer"] == {"releases": [], "unknown": "newer releases are not known"}


@tabled
def test_doctor_says_why_a_framework_sees_no_gpu(
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    sees_gpu: bool,
    build: dict[str, str],
    message: str | None,
    runtime: str | None,
) -> None:
    runtime = "11.8.89" if runtime is None else runtime
    monkeypatch.setattr(
        unseen_module.metadata, "version", lambda name: runtime if "cuda" in name else "1.0"
    )
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(Card("GPU-a"), Card("GPU-b")))
    seen = {} if sees_gpu else {"devices": (Device("cpu", "Fake CPU"),)}
    machine.answers = {"fake": manifest(build=build, **seen)}
    lines = out(capsys, "doctor").splitlines()
    assert "  gpus      2 x NVIDIA H200; driver 470.82, for CUDA up to 11.4" in lines
    unseen = [line for line in lines if line.startswith("  no gpu")]
    assert unseen == ([] if message is None else [f"  no gpu      {message}"])


@tabled
def test_doctor_names_the_build_that_the_driver_runs(
    framework: str, build: dict[str, str], cuda: str, message: str
) -> None:
    unseeing = manifest(name=framework, build=build, devices=(Device("cpu", "Fake CPU"),))
    assert unseen_module.unseen_gpus(unseeing, {"models": ["NVIDIA H200"], "cuda": cuda}) == message


@tabled
def test_doctor_tells_a_plugin_that_does_not_start_from_none(
    build: dict[str, str], failure: str, cuda: str, message: str
) -> None:
    devices = (Device("cpu", "Fake CPU"),)
    unseeing = manifest(name="jax", build=build, gpu_failure=failure, devices=devices)
    assert unseen_module.unseen_gpus(unseeing, {"models": ["NVIDIA H200"], "cuda": cuda}) == message


@pytest.mark.nightly
@tabled
def test_builds_for_gpus_are_those_of_their_driver(
    tmp_path: Path, driver: int, framework: str, cuda: str
) -> None:
    """Resolved by the index, and not downloaded; each has one cuDNN, for the CUDA of the driver."""
    command = shlex.split(unseen_module.gpu_build(framework, cuda))
    assert command[:4] == ["fwbench", "env", "add", framework], driver
    requirement = tmp_path / "requirements.in"
    requirement.write_text(command[4], encoding="utf-8")
    resolved = programs.output(
        *("-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", requirement),
        *("--python-version", "3.12", "--python-platform", "x86_64-unknown-linux-gnu"),
    )
    versions = dict(line.split("==") for line in resolved.splitlines())
    runtimes = [v for name, v in versions.items() if name.startswith("nvidia-cuda-runtime")]
    assert [int(v.partition(".")[0]) <= int(cuda.partition(".")[0]) for v in runtimes] == [True]
    assert len([name for name in versions if name.startswith("nvidia-cudnn")]) == 1


@pytest.mark.usefixtures("machine")
def test_without_a_driver_doctor_says_nothing_of_gpus(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "  gpus " not in out(capsys, "doctor")
    assert json.loads(out(capsys, "doctor", "--json"))["gpus"]["models"] == []
