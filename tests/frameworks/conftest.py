"""Fixtures of the tests of the real frameworks."""

from collections.abc import Iterator

import pytest

from support.verification import QUICK_XLA


@pytest.fixture(scope="module", autouse=True)
def quick_xla() -> Iterator[None]:
    """Have XLA compile quickly; the night's verification has it take all its passes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", QUICK_XLA)
        yield
