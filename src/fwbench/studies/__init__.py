"""Published reports, and runs compared with them: a package a study.

A study defines ``OPTION``, the option of ``fwbench report`` that asks for it, without dashes;
``HELP``; ``ORDER``, its place among the options; and ``sections(runs)``, which returns what is
shown before the runs' own sections.
"""

from __future__ import annotations

import sys
from typing import Any

from fwbench.report.discovery import extensions

#: The entry points by which other packages add studies.
GROUP = "fwbench.studies"


def all_studies() -> tuple[Any, ...]:
    """The studies of fwbench and of other packages, in the order of their options.

    Raises:
        DeclarationError: a study of another package cannot be used.
    """
    return extensions(sys.modules[__name__], GROUP, "OPTION", "HELP", "sections")
