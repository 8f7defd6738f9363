"""Fixtures of the tests of cases."""

from unittest.mock import Mock

import pytest

from fwbench.cases import training
from support.fake_learner import data_set


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Sixteen images to train on, wherever they are looked for."""
    loaded = Mock(return_value=data_set(test=[0, 0, 1]))
    monkeypatch.setattr(training, "read", loaded)
    return loaded
