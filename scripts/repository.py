"""Name the repository in metadata and documentation: ``scripts/repository.py OWNER/NAME``.

The homepage in ``pyproject.toml`` says which name is there now; it is replaced wherever it stands.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

_HOST = "https://github.com/"

#: What is published, or tells readers where to find what is.
_NAMING = (
    *("pyproject.toml", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "docs/**/*.md"),
    "src/fwbench/records/schemas/*.json",
)


def named(root: Path) -> str:
    """The repository that the metadata name, as ``OWNER/NAME``."""
    metadata = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    homepage: str = metadata["project"]["urls"]["Homepage"]
    return homepage.removeprefix(_HOST)


def rename(root: Path, repository: str) -> list[Path]:
    """Name another repository; returns the files that are changed.

    Args:
        root: of the working tree.
        repository: as ``OWNER/NAME``.
    """
    old = re.compile(rf"(?<![\w.-]){re.escape(named(root))}(?![\w-])")
    changed = []
    for path in sorted(path for pattern in _NAMING for path in root.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        written = old.sub(repository, text)
        if written != text:
            path.write_text(written, encoding="utf-8")
            changed.append(path)
    return changed


def main() -> int:
    """Rename, and print what was changed."""
    root = Path(__file__).parents[1]
    match sys.argv[1:]:
        case [repository] if re.fullmatch(r"[\w-]+/[\w.-]+", repository):
            for path in rename(root, repository):
                print(path.relative_to(root))
            return 0
    print(
        f"give the repository as OWNER/NAME: scripts/repository.py OWNER/NAME; {named(root)} is "
        "named now",
        file=sys.stderr,
    )
    return 2


if __name__ == "__main__":
    sys.exit(main())
