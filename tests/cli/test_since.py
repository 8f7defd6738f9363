"""``fwbench since``, end to end, with releases in a folder."""

from pathlib import Path

import pytest

from fwbench import cli
from support.suites import git_repository
