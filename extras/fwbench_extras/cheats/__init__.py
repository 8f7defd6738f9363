"""A museum of liars: frameworks that cheat or err, each in one way, to hold a harness against.

Every liar is a complete :class:`fwbench.Framework` on NumPy with one thing changed, as small as
that can be said: it stands for a mistake that benchmarks were published with. docs/cheats.md lists
them, with what each fakes and what catches it.

Any harness can be held against them::

    from fwbench_extras import cheats

    def harness(exhibit):
        ...  # time exhibit.run() as ever; raise if something is wrong

    for name, error in liars.hold_against(harness).items():
        print(name, "caught" if error else "missed")

With fwbench they are frameworks like any other, once a folder with their entry points is on the
path; users do not have them among theirs::

    python -m fwbench_extras.cheats /tmp/liars
    PYTHONPATH=/tmp/liars pytest benchmarks --fw cached_output
"""

from fwbench_extras.cheats.exhibits import Exhibit, exhibit, hold_against
from fwbench_extras.cheats.honest import Honest
from fwbench_extras.cheats.liar import Liar
from fwbench_extras.cheats.museum import LIARS, register

__all__ = ["LIARS", "Exhibit", "Honest", "Liar", "exhibit", "hold_against", "register"]
