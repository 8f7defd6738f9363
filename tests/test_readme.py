"""The README's own examples, run as a reader would run them."""

import importlib.util
import re
from pathlib import Path

from support.projects import Project

README = Path(__file__).parents[1] / "README.md"


def test_the_readmes_operations_run_from_a_folder_of_their_own(project: Project) -> None:
    """The blocks of the README, pasted into one file outside the repository, measure and pass."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    project.write("test_swish.py", "".join(blocks))
    result = project.run("--fw-size=64", fw=None)
    counts = result.parseoutcomes()
    assert "failed" not in counts
    assert "errors" not in counts
    # NumPy computes the model alone; PyTorch both; the others have no model.
    installed = [importlib.util.find_spec(name) is not None for name in ("torch", "numpy")]
    assert counts["passed"] >= 2 * installed[0] + installed[1]
