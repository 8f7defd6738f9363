"""Under any signal at any time a session leaves nothing behind and loses no finished case.

Each fault is a session of its own, of NumPy's operations, in two of five a training with a loader's
process (in PyTorch or MXNet, as installed), and a plain benchmark. A signal (SIGINT, SIGTERM,
SIGHUP, SIGKILL, or SIGSTOP and SIGCONT a second later) goes to the session, to its worker or to a
loader, a random moment after a random phase has begun.
Within ten seconds of the session's end there must be

- no process of it, recognised by a variable in its environment,
- no file that it made in the folder for temporary files, under /dev/shm, or beside its results,
- every case that its terminal called PASSED in the JSON, or in what ``fwbench recover`` writes.

A session that has not ended after two minutes has failed as well. ``--seed`` repeats the choices,
not the moments: those are the machine's. Linux only.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import bounds
import psutil
from watched import Watched, settled

_END_WITHIN_S = 120.0
_GONE_WITHIN_S = 10.0
_STOPPED_S = 1.0

#: A phase that does not come is given up, and the signal sent.
_PHASE_WITHIN_S = 60.0

#: The longest time from the beginning of the phase to the signal.
_DELAY_S = 0.4

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL", "SIGSTOP")
_TARGETS = ("session", "worker")
_PHASES = (
    *("start", "collection", "manifests", "worker", "binding", "verification", "timing"),
    *("reported", "storing"),
)

#: A training has loaders while it has epochs, which are as many phases to it.
_TRAINING = ("epoch",) * 6

_CONFTEST = """
import sys
from pathlib import Path

import pytest

def note(phase):
    Path(__file__).with_name(f"phase-{phase}").touch()

def audit(event, arguments):
    if event == "subprocess.Popen" and any("fwbench" in str(word) for word in arguments[1]):
        note("worker" if Path(__file__).with_name("phase-collected").exists() else "manifests")

sys.addaudithook(audit)

def pytest_collection():
    note("collection")

def pytest_collection_finish():
    note("collected")

def pytest_runtest_logreport(report):
    note("reported")

def pytest_fwbench_epoch():
    note("epoch")

def pytest_benchmark_update_json():
    note("storing")
"""

_SUITE = """
import pytest
from conftest import note
from fwbench import Operation
from fwbench.workloads import TRAINING

calls = 0

def inputs(size, rng):
    note("binding")
    return (rng.standard_normal(size),)

def reference(x):
    note("verification")
    return 2.0 * x

def compute(x):
    global calls
    calls += 1
    if calls == 100:
        note("timing")
    return 2.0 * x

def doubling(name):
    made = Operation(name=name, inputs=inputs, reference=reference, sizes=(10, 10_000))
    made.implement("numpy")(lambda np: compute)
    return made

@pytest.mark.fwbench(doubling("first"), doubling("second"), TRAINING, doubling("third"))
def test_case(case):
    case.measure()

def test_plain(benchmark):
    benchmark(sum, [1, 2])
"""


@dataclass(frozen=True)
class Fault:
    """A fault of one session.

    Attributes:
        phase: the signal comes after it has begun.
        delay_s: how long after.
        target: who gets the signal; the worker or the session in its place if it is not there.
        signal: the signal's name.
    """

    phase: str
    delay_s: float
    target: str
    signal: str

    @classmethod
    def drawn(cls, source: random.Random, *, trains: bool) -> Fault:
        """A random one.

        Args:
            source: of the choices.
            trains: whether the session has a training.
        """
        phase = source.choice(_PHASES + _TRAINING * trains)
        return cls(
            phase,
            source.uniform(0.0, _DELAY_S),
            source.choice((*_TARGETS, *["loader"] * (phase == "epoch"))),
            source.choice(_SIGNALS),
        )

    def __str__(self) -> str:
        return f"{self.signal} to the {self.target} {self.delay_s:.2f} s after {self.phase}"


class Session(Watched):
    """A session of NumPy's operations, and perhaps of a training.

    Args:
        folder: an empty one.
        frameworks: as ``--fw`` takes them.
    """

    def __init__(self, folder: Path, frameworks: Sequence[str]) -> None:
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.pids: set[str] = set()
        trains = "mlp" if len(frameworks) > 1 else "noop"
        super().__init__(
            folder,
            {"conftest.py": _CONFTEST, "test_suite.py": _SUITE.replace("TRAINING", trains)},
            (*_ARGUMENTS, f"--fw={','.join(frameworks)}"),
            {
                "TMPDIR": str(self.temporary),
                # A cache that PyTorch keeps on purpose.
                "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled"),
            },
        )

    def suffer(self, fault: Fault) -> str:
        """Send the signal, and wait for the end.

        Returns:
            Who got it; empty if the session had ended before.
        """
        self.wait(lambda: self._has_begun(fault.phase), time.monotonic() + _PHASE_WITHIN_S)
        time.sleep(fault.delay_s)
        name, process = self._target(fault.target)
        if process is None:
            return ""
        number = signal.Signals[fault.signal]
        self.pids = {str(child.pid) for child in self.processes()}
        try:
            process.send_signal(number)
            if number == signal.SIGSTOP:
                time.sleep(_STOPPED_S)
                process.send_signal(signal.SIGCONT)
        except psutil.NoSuchProcess:
            return ""
        self.wait(lambda: False, time.monotonic() + _END_WITHIN_S)
        return name

    def _has_begun(self, phase: str) -> bool:
        return phase == "start" or (self.folder / f"phase-{phase}").exists()

    def _target(self, name: str) -> tuple[str, psutil.Process | None]:
        with contextlib.suppress(psutil.NoSuchProcess):
            session = psutil.Process(self.process.pid)
            workers = [child for child in session.children() if _is_worker(child)]
            loaders = [child for worker in workers for child in worker.children()]
            if name == "loader" and loaders:
                return "loader", loaders[-1]
            if name != "session" and workers:
                return "worker", workers[-1]
            if self.process.poll() is None:
                return "session", session
        return "", None

    def problems(self) -> Iterator[str]:
        """Problems ten seconds after the end."""
        if self.process.poll() is None:
            yield f"it has not ended within {_END_WITHIN_S:g} s"
        yield from settled(self._left, _GONE_WITHIN_S)
        yield from self._lost()
        if "INTERNALERROR" in self.printed:
            yield "INTERNALERROR in its output"

    def _left(self) -> Iterator[str]:
        yield from self.left()
        files = [*self.temporary.rglob("*"), *self.folder.rglob("*.tmp"), *self._shared()]
        yield from (f"{path} is left" for path in files)

    def _shared(self) -> Iterator[Path]:
        """The files under /dev/shm with a process of it in their names, as loaders name them."""
        for path in Path("/dev/shm").glob("*"):  # noqa: S108 (where shared memory is)
            if self.pids & {*re.split(r"\D+", path.name)}:
                yield path

    def _lost(self) -> Iterator[str]:
        passed = {*re.findall(r"^(test_suite\.py::\S+) .*?PASSED", self.printed, re.MULTILINE)}
        if not passed:
            return
        results = self.folder / "results.json"
        if not results.exists():
            subprocess.run(
                [*_FWBENCH, "recover", "-o", str(results)],
                cwd=self.folder,
                capture_output=True,
                check=False,
            )
        kept = set()
        if results.exists():
            stored = json.loads(results.read_text(encoding="utf-8"))
            kept = {entry["fullname"] for entry in stored["benchmarks"]}
        yield from (f"{nodeid} has passed and is lost" for nodeid in sorted(passed - kept))


_FWBENCH = (sys.executable, "-c", "import sys; from fwbench.cli import main; sys.exit(main())")

_ARGUMENTS = (
    *("-p", "no:randomly"),
    # A loader's pool may wait for ever for a process that was ended.
    "--fw-timeout=20",
    *("-v", "--color=no", "--benchmark-json=results.json", "--benchmark-max-time=0.05"),
    *("--fw-warmup=0.1", "--fw-threads=1", "--fw-toggle=workers=1"),
    *(
        "--fw-execution=eager",
        "--fw-train=steps=20",
        "--fw-train=epochs=4",
        "--fw-train=warmup-epochs=1",
    ),
    "--fw-train=repetitions=1",
)


def _is_worker(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return any("fwbench.plugin.worker" in word for word in process.cmdline())
    return False


def _frameworks(source: random.Random) -> list[str]:
    """NumPy, and in two sessions of five one that trains."""
    training = [name for name in ("torch", "mxnet") if importlib.util.find_spec(name)]
    return ["numpy", *([source.choice(training)] if training and source.random() < 0.4 else [])]


def main() -> int:
    """Do what the options say, and give the exit status: 1 if anything was left or lost."""
    given = bounds.arguments(__doc__, rounds=100, seed=random.randrange(10**6))  # noqa: S311
    source = random.Random(given.seed)  # noqa: S311 (no secret)
    print(f"--rounds {given.rounds} --seed {given.seed}", flush=True)
    hit, broken = Counter[str](), 0
    for number in range(1, given.rounds + 1):
        frameworks = _frameworks(source)
        fault = Fault.drawn(source, trains=len(frameworks) > 1)
        folder = Path(tempfile.mkdtemp(prefix="fwbench-faults-"))
        session = Session(folder, frameworks)
        try:
            target = session.suffer(fault)
            problems = [*session.problems()]
        finally:
            session.end()
        hit[target] += 1
        print(f"{number:3} {','.join(frameworks)}: {fault}: hit {target or 'nothing'}", flush=True)
        for problem in problems:
            print(f"      {problem}", flush=True)
        if problems:
            broken += 1
            print(f"      see {folder}", flush=True)
        else:
            shutil.rmtree(folder)
    findings = [
        bounds.Finding(f"signals to {name or 'nothing'}", str(n)) for name, n in hit.items()
    ]
    kept = broken == 0
    return bounds.conclude([*findings, bounds.Finding("sessions broken", str(broken), "0", kept)])


if __name__ == "__main__":
    sys.exit(main())
