"""Fixtures of the tests beside other plugins."""

import pytest

from support.neighbours import NAMES, Beside, blocking


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Beside:
    """Other tests' sessions have no other plugins; these have those that are named."""

    def allow(*names: str) -> None:
        assert {*names} <= {*NAMES}
        monkeypatch.setenv("PYTEST_ADDOPTS", blocking(*names))

    return allow
