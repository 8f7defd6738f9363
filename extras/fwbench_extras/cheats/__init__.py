"""Frameworks that cheat or err, each in one way, to test a harness with.

Every cheat is a complete :class:`fwbench.Framework` on NumPy with one thing changed, as small as
that can be said: it stands for a mistake that benchmarks were published with. docs/cheats.md lists
them, with what each fakes and what catches it.

Any harness can be tested with them::

    from fwbench_extras import cheats

    def harness(cheat):
        ...  # time cheat.run(); raise if something is wrong

    for name, error in cheats.check_harness(harness).items():
        print(name, "caught" if error else "missed")

With fwbench they are frameworks like any other, once a folder with their entry points is on the
path; users do not have them among theirs::

    python -m fwbench_extras.cheats /tmp/cheats
    PYTHONPATH=/tmp/cheats pytest benchmarks --fw cached_output
"""

from fwbench_extras.cheats.cheat import Cheat
from fwbench_extras.cheats.harness import BoundCheat, check_harness
from fwbench_extras.cheats.honest import Honest
from fwbench_extras.cheats.table import CHEATS, register

__all__ = ["CHEATS", "BoundCheat", "Cheat", "Honest", "check_harness", "register"]
