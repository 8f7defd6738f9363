"""Comments on pull requests: which one, and what is said, of a comparison that nobody vouches for.

The action ``comment`` runs this where it lies, next to fwbench's sources, and installs nothing: all
that it imports is in the standard library. The event is GitHub's word. The comparison comes from a
job that has run code of the pull request, and so may be anybody's text.
"""

import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fwbench.errors import FwbenchError, UnreadableRun, UsageError
from fwbench.report import escaping

#: By this invisible mark the action knows its own comment; others stay as they are.
MARK = "<!-- fwbench ab -->"

#: Characters of a comment on GitHub; bytes are counted, of which there are as many at least.
LONGEST = 65_536

_LONGEST_HEADING = 4_000
_LARGEST_BYTES = 20_000_000

_CUT = "\n\nThat is not all of it: the artifact fwbench-ab of that run has the rest.\n"


def pull_request(event: Mapping[str, Any], candidates: Iterable[Mapping[str, Any]]) -> int:
    """The number of the pull request that a run has measured.

    Nothing of the run's artifact decides on it, but repository, branch and commit of its head.

    Args:
        event: as GitHub gives it, ``pull_request`` or ``workflow_run``.
        candidates: open pull requests, as GitHub's API lists them; only of a ``workflow_run``,
            which names none if its pull request comes from a fork.

    Raises:
        UsageError: not exactly one of them has that head.
    """
    if "pull_request" in event:
        return int(event["pull_request"]["number"])
    if "workflow_run" not in event:
        raise UsageError(
            "the event is neither of a pull request nor of a run that has measured one: call the "
            "action in a workflow on pull_request or on workflow_run"
        )
    run = event["workflow_run"]
    of_run = (run["head_repository"], run["head_branch"], run["head_sha"])
    heads = {each["number"]: each["head"] for each in candidates}
    numbers = [n for n, head in heads.items() if _is_head(head, *of_run)]
    if len(numbers) != 1:
        which = f"pull requests {', '.join(map(str, numbers))} have" if numbers else "none has"
        raise UsageError(
            f"one open pull request must have {run['head_sha']}, which was measured, as its head, "
            f"and {which}: nothing is commented (it was pushed to since, or closed, or there are "
            "two with other bases)"
        )
    return int(numbers[0])


def _is_head(
    head: Mapping[str, Any], repository: Mapping[str, Any] | None, branch: str, commit: str
) -> bool:
    if not repository or not head["repo"]:  # the fork was deleted
        return False
    of_head = (head["repo"]["full_name"], head["ref"], head["sha"])
    return of_head == (repository["full_name"], branch, commit)


def body(comparison: str, url: str, head: str) -> str:
    """The comment on a comparison, in GitHub's Markdown; one line where nothing has changed.

    Args:
        comparison: as ``fwbench ab --markdown`` writes it, if it is that.
        url: of the run, which keeps all figures.
        head: the commit that was measured: the comment stays where a later one is not.

    Raises:
        UnreadableRun: it has a link, a mention or HTML, which fwbench escapes, or begins otherwise.
    """
    shown = comparison.partition(f"\n{escaping.FOLDED}\n")[0].rstrip()
    heading, _, rest = shown.partition("\n")
    is_own = heading.startswith(escaping.HEADING) and len(heading) <= _LONGEST_HEADING
    if not (is_own and escaping.is_inert(shown)):
        raise UnreadableRun("the comparison is not as fwbench writes it, and is not commented")
    text = f"{MARK}\n{heading} ([figures of {head[:7]}]({url}))\n{rest}".rstrip() + "\n"
    if _size(text) <= LONGEST:
        return text
    kept = text.encode()[: LONGEST - _size(_CUT)].decode(errors="ignore")
    return kept.rpartition("\n")[0] + _CUT  # without the line that was cut


def _size(text: str) -> int:
    return len(text.encode())


def _read(file: Path) -> str:
    """The comparison in a file of an artifact."""
    try:
        found = file.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST_BYTES:
            return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableRun(f"{file.name} of the artifact cannot be read: {error}") from error
    raise UnreadableRun(f"{file.name} of the artifact is not a file, or too large to be read")


def _url(event: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """The address of the run that has measured."""
    run = int(event.get("workflow_run", {}).get("id") or environment["GITHUB_RUN_ID"])
    server, repository = environment["GITHUB_SERVER_URL"], environment["GITHUB_REPOSITORY"]
    return f"{server}/{repository}/actions/runs/{run}"


def _head(event: Mapping[str, Any]) -> str:
    """The commit that was measured, as the head of its branch."""
    run = event.get("workflow_run")
    return str(run["head_sha"] if run else event["pull_request"]["head"]["sha"])


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Print the number of the pull request, or its comment; see ``.github/actions/comment``.

    Args:
        arguments: ``number`` and the file of GitHub's list, or ``body`` and that of a comparison.
        environment: with GitHub's variables, of which one leads to the event.

    Returns:
        The exit status; with 1 there is nothing to comment, and an annotation says why.
    """
    what, file = arguments
    event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    try:
        if what == "number":
            print(pull_request(event, json.loads(Path(file).read_text(encoding="utf-8"))))
        else:
            print(body(_read(Path(file)), _url(event, environment), _head(event)), end="")
    except FwbenchError as error:
        kind = "error" if isinstance(error, UnreadableRun) else "warning"
        line = " ".join(escaping.terminal(str(error)).split())
        print(f"::{kind}::{line.replace('%', '%25')}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
