"""``fwbench env``: environments with other packages, to be measured along with this one."""

import argparse
import sys
from pathlib import Path
from typing import Any

from fwbench.cli.common import add_command, print_result
from fwbench.errors import unknown
from fwbench.gate.sides import remove_abandoned
from fwbench.plugin.lines import Live
from fwbench.project import project_root
from fwbench.workers import install
from fwbench.workers.environments import NOT_MADE_HERE, Environment, Environments


def add_to(commands: Any) -> None:
    """Add ``fwbench env`` and its subcommands to the commands."""
    env = add_command(commands, "env")
    actions = env.add_subparsers(required=True, metavar="ACTION")
    for name, run in (("add", _add), ("list", _list), ("show", _show), ("remove", _remove)):
        add_command(actions, f"env {name}", run)


def _environments() -> Environments:
    """The environments of the project, and nothing of what killed commands have left."""
    remove_abandoned()
    environments = Environments(project_root(Path()))
    install.remove_abandoned(environments.folder)
    return environments


def _add(arguments: argparse.Namespace) -> int:
    live = Live(sys.stderr)
    with live.doing(f"making {arguments.name}"):
        made = install.add(
            _environments(), arguments.name, arguments.requirements, arguments.python, live.say
        )
    text = f"{_line(made)}\nmeasure it: pytest benchmarks --fw {','.join(made.references)}"
    print_result(arguments, _facts(made), text)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    environments = _environments()
    by_name = environments.all()
    names = environments.names()
    unfinished = install.unfinished_names(environments.folder)
    facts = {
        "folder": str(environments.folder),
        "environments": [_facts(environment) for environment in by_name.values()],
        "unreadable": [name for name in names if name not in by_name],
        "unfinished": unfinished,
    }
    lines = [_line(by_name[name]) if name in by_name else _unreadable(name) for name in names]
    lines += [install.conflict(environments.folder_of(name)) for name in unfinished]
    none = f"there is no environment under {environments.folder}; make one: fwbench env add"
    print_result(arguments, facts, "\n".join(lines or [none]))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    by_name = _environments().all()
    if arguments.name not in by_name:
        raise unknown("environment", arguments.name, by_name)
    environment = by_name[arguments.name]
    rows = {
        "folder": environment.folder,
        "python": environment.python,
        "requirements": " ".join(environment.requirements),
        "installed by": environment.installer,
        "--fw": ",".join(environment.references),
        **environment.frameworks,
    }
    lines = [f"  {name:<13} {value}" for name, value in rows.items()]
    print_result(arguments, _facts(environment), "\n".join([environment.name, *lines]))
    return 0


def _remove(arguments: argparse.Namespace) -> int:
    install.remove(_environments(), arguments.name)
    print_result(arguments, {"removed": arguments.name}, f"removed {arguments.name}")
    return 0


def _facts(environment: Environment) -> dict[str, Any]:
    more = {"references": environment.references, "made_here": environment.is_made_here}
    return {**vars(environment), "folder": str(environment.folder), **more}


def _unreadable(name: str) -> str:
    return f"{name}: cannot be read; fwbench env remove {name}, and recreate it"


def _line(environment: Environment) -> str:
    frameworks = ", ".join(f"{name} {version}" for name, version in environment.frameworks.items())
    line = f"{environment.name}: python {environment.python}; {frameworks}"
    if environment.is_made_here:
        return line
    name = environment.name
    return f"{line}; {NOT_MADE_HERE}: fwbench env remove {name}, then add it again"
