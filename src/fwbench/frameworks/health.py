"""Does a device still work? An illegal access spoils it for the process that made it, for good.

CUDA returns the error of such a kernel from every later call of the process ("sticky" errors; CUDA
Runtime API, cudaErrorIllegalAddress: "the process must be terminated and relaunched").
"""

from __future__ import annotations

from fwbench.frameworks.contract import Framework


def responds(framework: Framework, device: str) -> bool:
    """Tell whether a framework can still place a number on a device, and read it back."""
    try:
        with framework.scope(device, "float32"):
            wait = framework.waiter(device)
            placed = framework.creator(device, "float32")([0.0])
            if wait is not None:
                wait()
            framework.to_numpy(placed)
    except Exception:  # noqa: BLE001 (a framework may raise anything)
        return False
    return True


def leaves_well(framework: Framework, device: str, *, failed: bool) -> bool:
    """Give back what a case has left on a device, and tell whether another case can run there.

    Args:
        failed: whether it has.
    """
    if failed and not responds(framework, device):
        return False
    try:
        framework.release(device)
    except Exception:  # noqa: BLE001 (the error of the case that was just over)
        return False
    return True
