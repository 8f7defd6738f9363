"""Replicas of JAX: what they exchange and train, and how each way not to train is found."""

import sys
from collections.abc import Callable, Mapping
from typing import Any

#: A program for an environment with JAX; its argument is a folder. Prints what it found, as JSON.
PROGRAM = """
import json, os, sys
from dataclasses import asdict
from pathlib import Path
import numpy as np
from fwbench import workloads
from fwbench.errors import VerificationError
from fwbench.measure.resources import sent_bytes
from fwbench.gangs import checks
from fwbench.gangs.shares import Task
from fwbench.workloads.models import trajectories
from fwbench.workloads.models.stable_weights import to_share
from support.cheats import normalized_step
from support.gangs import installed, started

installed(Path(sys.argv[1]), "cheating_jax", "support.cheating_jax:CheatingJax")
os.environ["PYTHONPATH"] = os.pathsep.join([sys.argv[1], os.environ["PYTHONPATH"]])


def ask(gang, kind, *values):
    return gang.ask(kind, *values, limit_s=300.0, doing=kind)


def bound(gang, workload, size, steps, dtype="float32", **more):
    ask(gang, "bind", asdict(Task(workload, size, "cpu", "jit", dtype, sparse=False, **more)))
    return ask(gang, "check", steps)


def judged(gang, training, batch):
    answers = bound(gang, training.step.name, batch, 10)
    checks.training(answers, training, (batch, 2), "float32", "before the timing")
    return answers


def trained(gang, training):
    answers = judged(gang, training, 120)
    losses = np.mean([answer["losses"] for answer in answers], axis=0)
    expected = np.array(trajectories.expected_losses(training, 120, update="dense")[:10])
    ask(gang, "round", 3)
    checks.same_weights(ask(gang, "verify_last"), "after the timing")
    least_bytes = 10 * 2 * (len(answers) - 1) * 4 * training.parameters
    return float(abs(losses / expected - 1.0).max()), checks.sent(answers), least_bytes


def normalized(gang, parts, synchronized):
    shape = normalized_step.smallest
    objective = to_share(normalized_step.at(shape), shape["batch"], parts)
    more = {"shape": str(shape), "synchronized": synchronized}
    answers = bound(gang, normalized_step.name, shape["batch"], 4, **more)
    _, checked = checks.training(answers, objective, (shape["batch"], parts), "float32", "before")
    return checked.gradient_error


def exchanged(gang, collective, dtype):
    answers = bound(gang, collective, 1002, 3, dtype)
    ask(gang, "round", 3)
    assert ask(gang, "verify_last") == [{}, {}]
    return checks.sent(answers)


def failure(gang, batch):
    try:
        judged(gang, workloads.lenet, batch)
    except VerificationError as error:
        return f"{type(error).__name__}: {error}"
    return ""


results = {"trained": {}, "counts": sent_bytes() is not None}
for replicas in (2, 3):
    gang = started(replicas, "cheating_jax")
    results["trained"][replicas] = [
        trained(gang, training) for training in (workloads.mlp, workloads.lenet)
    ]
    if replicas == 2:
        results["sent"] = {
            f"{name} {dtype}": exchanged(gang, name, dtype)
            for name in ("all_reduce", "reduce_scatter", "all_gather")
            for dtype in ("float32", "float64")
        }
        results["normalized"] = [normalized(gang, 2, False), normalized(gang, 1, True)]
        results["cheats"] = [failure(gang, batch) for batch in (16, 32, 48, 64)]
    gang.close()
print(json.dumps(results))
"""

#: Another one, of which each gang is ended by a fault: JAX itself would wait for minutes, or end
#: the others with a trace of its own. Prints, as JSON, how each has failed, which processes are
#: left, and where its members could be reached: in a network of their own, where there can be one.
FAULTS = """
import json, os, signal, socket, sys, threading
from dataclasses import asdict
import psutil
from fwbench.terms.replicas import Link
from fwbench.errors import GangFailed
from fwbench.gangs import gang as gang_module
from fwbench.gangs.launch import Local
from fwbench.gangs.gang import Gang
from fwbench.gangs.network import missing
from fwbench.gangs.shares import Task
from support.gangs import SOON, Meddled, composition

FOR_EVER = 10**6


class Struck(Gang):
    moment, number, pids_then, addresses = "", 0, (), ()

    def ask(self, kind, *values, **how):
        if kind == "join":
            self.pids_then, self.addresses = self.pids, values[0]
        if kind == self.moment:
            strike = os.kill, (self.pids[1], self.number)
            if kind == "round":
                threading.Timer(0.3, *strike).start()
            else:
                os.kill(*strike[1])
            how["limit_s"] = 1.5 if self.number == signal.SIGSTOP else 300.0
        return super().ask(kind, *values, **how)


def robbed():
    gang_module._STARTS = 1
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        moved = lambda _, addresses: [original and address for original in addresses]
        try:
            Meddled(moved, composition(2, "jax"), SOON.join_s).start()
        except GangFailed as error:
            return str(error)


def failed(moment, number, network="loopback"):
    gang = Struck(composition(2, "jax", network=network), Local(), SOON)
    gang.moment, gang.number = moment, number
    try:
        gang.start()
        task = Task("all_reduce", 1000, "cpu", "jit", "float32", sparse=False)
        gang.ask("bind", asdict(task), limit_s=300.0, doing="building")
        gang.ask("check", 3, limit_s=300.0, doing="checking")
        gang.ask("round", FOR_EVER, limit_s=300.0, doing="stepping")
    except GangFailed as error:
        message = str(error)
    left = [pid for pid in gang.pids_then if psutil.pid_exists(pid)]
    return {"message": message, "left": left, "addresses": gang.addresses}


network = "loopback" if missing(Link(100_000_000)) else "100mbit"
print(json.dumps({
    "killed before they join": failed("join", signal.SIGKILL),
    "stopped before they join": failed("join", signal.SIGSTOP),
    "killed": failed("round", signal.SIGKILL),
    "stopped": failed("round", signal.SIGSTOP, network),
    "port": robbed(),
    "network": network,
}))
"""


def check_faults(figures: dict[str, Any]) -> None:
    """The role is named, at once or at the limit; nothing is left; links are those asked for."""
    assert "took the ports of a gang 1 times: worker 0 of 2" in figures["port"], figures["port"]
    for fault, (message, doing) in {
        "killed before they join": ("worker 1 of 2 was killed by SIGKILL", "joining the others"),
        "stopped before they join": ("did not answer within 1.5 s", "joining the others"),
        "killed": ("worker 1 of 2 was killed by SIGKILL", "stepping"),
        "stopped": ("did not answer within 1.5 s", "stepping"),
    }.items():
        failure = figures[fault]["message"]
        assert message in failure, failure
        assert f"while {doing}" in failure, failure
        assert "stopped" not in fault or "worker 1 of 2 is stopped (SIGSTOP" in failure, failure
        assert figures[fault]["left"] == []
    (host, *_) = (address.rpartition(":")[0] for address in figures["stopped"]["addresses"])
    assert host == ("127.0.0.1" if figures["network"] == "loopback" else "10.77.0.1")


def check(figures: dict[str, Any]) -> None:
    """Losses are those of one worker, all that must be sent is, and each mistake is named."""
    counts = figures["counts"]
    assert counts or sys.platform != "linux"
    for trained in figures["trained"].values():
        for deviation, sent, least_bytes in trained:
            assert deviation < 1e-5
            assert (sent >= least_bytes) if counts else sent is None
    for exchange, sent in figures["sent"].items():
        factor = 2.0 if exchange.startswith("all_reduce") else 1.0
        least_bytes = 3 * factor * (8 if exchange.endswith("float64") else 4) * 1002
        assert (sent >= least_bytes) if counts else sent is None, exchange
    assert max(figures["normalized"]) < 2e-4
    nothing, summed, otherwise, skipped = figures["cheats"]
    wrong = "WrongGradient: before the timing, what 2 replicas exchange is wrong: the gradient by "
    assert nothing.startswith(wrong)
    assert summed.startswith(wrong)
    assert "worker 1 has other weights than worker 0 before the first step" in otherwise
    assert "worker 1 has other weights than worker 0 after step 3" in skipped


#: Each program, with the check of what it prints.
PARTS: Mapping[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "train": (PROGRAM, check),
    "fail": (FAULTS, check_faults),
}
