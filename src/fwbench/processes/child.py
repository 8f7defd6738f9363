"""What every process that fwbench starts does first."""

from __future__ import annotations

import ctypes
import faulthandler
import signal
import sys
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def begin() -> None:
    """End with the parent, and write a traceback when it asks for one."""
    _end_with_parent()
    faulthandler.enable()
    # The parent asks for a traceback before it ends a case that hangs.
    faulthandler.register(signal.SIGUSR1)


def _end_with_parent() -> None:
    """Have the kernel end this process when the parent dies without closing anything."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The kernel's out-of-memory killer takes a worker before it takes the session.
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
