"""Fixtures of the tests of the real frameworks."""

from collections.abc import Iterator

import pytest

from support.forkserver import SLOW_TO_IMPORT, Forking
from support.verification import QUICK_XLA


@pytest.fixture(scope="module", autouse=True)
def quick_xla() -> Iterator[None]:
    """Have XLA compile quickly; the night's verification has it take all its passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", QUICK_XLA)
        yield


@pytest.fixture(autouse=True)
def imported(request: pytest.FixtureRequest, forking_with: Forking) -> Iterator[None]:
    """Fork what a test of one framework starts from a process that has imported it.

    The framework is the test's parameter of that name, or the module's: ``test_torch.py``.
    """
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    framework = parameters.get("framework", request.path.stem.split("_")[1])
    if framework not in SLOW_TO_IMPORT:
        yield
        return
    with forking_with(framework):
        yield
