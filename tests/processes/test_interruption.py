"""A job is interrupted once, and cleans up undisturbed."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from fwbench.processes.interruption import SIGNALS, as_keyboard_interrupt, held
from support.suites import listen, listening


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts_once(number: signal.Signals) -> None:
    """A process that cleans up goes on after three further signals."""
    with listening():
        with as_keyboard_interrupt():
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
            for repeated in SIGNALS:
                os.kill(os.getpid(), repeated)
        assert {signal.getsignal(signal_number) for signal_number in SIGNALS} == {signal.SIG_DFL}
        with as_keyboard_interrupt(), pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)


def test_a_block_is_not_interrupted() -> None:
    """A signal that arrives meanwhile counts when the outermost one is over, not twice."""
    done = []
    with listening(), as_keyboard_interrupt():
        with suppress(KeyboardInterrupt):
            with held():
                with held():
                    os.kill(os.getpid(), signal.SIGTERM)
                    done.append("inner")
                done.append("outer")
            done.append("not reached")
        with held():
            done.append("after")
    assert done == ["inner", "outer", "after"]


def test_what_is_ignored_stays_so() -> None:
    """``nohup fwbench ab`` goes on when its terminal is closed."""
    with listening():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with as_keyboard_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)


_CLEANING_UP = """
import sys, time
from fwbench.processes.interruption import as_keyboard_interrupt
with as_keyboard_interrupt():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        time.sleep(0.2)
        print("where to?", flush=True)
        open(sys.argv[1], "w").close()
"""


def test_a_terminal_that_is_closed(tmp_path: Path) -> None:
    """Output is discarded then, and is not an error that keeps from cleaning up."""
    local, remote = pty.openpty()
    cleaned = tmp_path / "cleaned"
    with subprocess.Popen(
        [sys.executable, "-c", _CLEANING_UP, cleaned],
        stdout=remote,
        stderr=remote,
        preexec_fn=listen,  # noqa: PLW1509
    ) as process:
        os.close(remote)
        message = b""
        while not message.endswith(b"\n"):  # the terminal may take a line in two pieces
            message += os.read(local, 100)
        os.close(local)
        process.send_signal(signal.SIGHUP)
    assert cleaned.exists()
