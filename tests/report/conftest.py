"""Fixtures of the report's tests."""

from __future__ import annotations

import pytest

from support import browser


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser; without one these tests fail, since nothing else says that the page works."""
    found = browser.found()
    if found is None:
        pytest.fail(
            f"there is no browser ({', '.join(browser.BROWSERS)}); on Debian: apt install chromium"
        )
    return found
