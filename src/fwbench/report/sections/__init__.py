"""Detailed part of a report: a module for each kind of sections.

A module defines ``ORDER``, its place in the report, and ``sections(runs, names)``, which returns
what it shows of the runs, called by these names. ``CONTENTS`` is their heading in the table of
contents; without it each section is listed under the family of its operation.
"""

import itertools
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from fwbench.report.discovery import extensions
from fwbench.report.model import Run, labels
from fwbench.report.section import Section

#: The entry points by which other packages add sections.
GROUP = "fwbench.sections"


def details(runs: Sequence[Run]) -> list[Section]:
    """All sections, in the order in which they are shown, without ids."""
    names = labels(runs)
    modules = extensions(sys.modules[__name__], GROUP, "sections")
    return [
        replace(section, group=getattr(module, "CONTENTS", ""))
        for module in modules
        for section in module.sections(runs, names)
    ]


def slug(title: str) -> str:
    """A title in letters, digits and hyphens alone."""
    return re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")


def linkable(sections: Sequence[Section]) -> list[Section]:
    """The same sections with ids of their own, also where titles differ in signs alone."""
    taken: set[str] = set()
    linked = []
    for section in sections:
        stem = slug(f"part-{section.title}")
        numbered = (f"{stem}-{number}" for number in itertools.count(2))
        free = next(name for name in itertools.chain([stem], numbered) if name not in taken)
        taken.add(free)
        linked.append(replace(section, id=free))
    return linked
