"""Prints pip's settings of the network as uv's, for a shell to evaluate.

Prints exports of uv's environment variables, and sets ``uv_options`` to those options of ``uv pip
install`` that no variable sets. Reads the output of ``pip config list`` from standard input. uv
reads neither pip's files nor its variables; with these it asks the indexes that pip asks, in the
same way.
"""

from __future__ import annotations

import ast
import os
import shlex
import sys
from collections.abc import Iterable, Mapping

#: From the weakest: a file's section for all commands, the one for `pip install`, a variable.
_SECTIONS = ("global", "install", ":env:")

#: uv's variable for each setting, and what separates its values.
_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
    "proxy": ("ALL_PROXY", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
}

#: What pip takes for yes.
_YES = ("y", "yes", "t", "true", "on", "1")


def settings(lines: Iterable[str]) -> dict[str, str]:
    """Settings of pip by name; of several sections the strongest counts.

    Args:
        lines: of ``pip config list``, such as ``global.index-url='https://...'``.
    """
    by_section: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in lines:
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in by_section:
            by_section[section][name] = str(ast.literal_eval(value.strip()))
    return {name: value for section in _SECTIONS for name, value in by_section[section].items()}


def variables(configured: Mapping[str, str]) -> dict[str, str]:
    """Environment variables of uv for settings of pip.

    Args:
        configured: pip's settings by name.
    """
    made = {
        variable: separator.join(configured[name].split())
        for name, (variable, separator) in _VARIABLES.items()
        if configured.get(name)
    }
    if "UV_INDEX" in made:
        # As pip: the best version of all indexes. uv's own default is the first index that has any.
        made["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return made


def options(configured: Mapping[str, str]) -> str:
    """Options of ``uv pip install`` for settings of pip.

    Args:
        configured: pip's settings by name.
    """
    return "--no-index" if configured.get("no-index", "").lower() in _YES else ""


if __name__ == "__main__":
    configured = settings(sys.stdin)
    for name, value in variables(configured).items():
        if name not in os.environ:
            print(f"export {name}={shlex.quote(value)}")
    print(f"uv_options={options(configured)}")
