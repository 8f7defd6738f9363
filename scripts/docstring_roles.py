"""Sphinx roles in docstrings as links of the site: an extension of Griffe (see mkdocs.yml)."""

from __future__ import annotations

import re

import griffe

_ROLE = re.compile(r":(attr|class|data|exc|func|meth|mod):`~?([\w.]+)`")

#: What has a place of its own on the page; attributes stand in the table of their class.
_LINKED = ("class", "exc", "func", "meth")


class DocstringRoles(griffe.Extension):
    """Has a role link to the public object that it names, and show others as code."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        """Rewrite the docstrings of a package, once all of it is read."""
        self._public = {name: f"{pkg.path}.{name}" for name in pkg.exports or ()}
        self._rewrite(pkg)

    def _rewrite(self, described: griffe.Object) -> None:
        if described.docstring:
            described.docstring.value = _ROLE.sub(self._link, described.docstring.value)
        for member in described.members.values():
            if isinstance(member, griffe.Object):
                self._rewrite(member)

    def _link(self, role: re.Match[str]) -> str:
        kind, path = role.groups()
        name = path.removeprefix("fwbench.")
        target = self._public.get(name.partition(".")[0])
        if target is None or kind not in _LINKED:
            return f"`{path}`"
        return f"[`{name}`][{'.'.join([target, *name.split('.')[1:]])}]"
