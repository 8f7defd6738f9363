"""docs/liars.md, written from the liars: ``python -m fwbench.testing.liars.page``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from itertools import chain

from fwbench.testing.liars import naive
from fwbench.testing.liars.exhibits import hold_against
from fwbench.testing.liars.liar import Liar
from fwbench.testing.liars.museum import LIARS, ROOMS

_HEAD = """# A museum of liars

<!-- Written by `python -m fwbench.testing.liars.page > docs/liars.md` from the classes in
`src/fwbench/testing/liars`; do not edit. -->

Frameworks that cheat or err, each in one way and as briefly as possible, to test a harness with.
They stand for mistakes of published benchmarks. Each is NumPy with one thing changed; `Honest` is
NumPy with nothing changed.
"""

_ANY_HARNESS = """## Any harness

`hold_against(harness)` calls a harness with one exhibit after the other. The harness times
`exhibit.run()` like anything else, and raises if something looks wrong; a liar that gets a number
was missed. For careful harnesses an exhibit also has `inputs` (NumPy arrays, which may be changed
in place), `wait()`, `read(returned)` and `expected()`.

This harness is a typical loop, which even checks the first result:

```python
{source}```

It misses {missed} of {shown} (a liar that lies forward and backward counts twice):

```python
from fwbench.testing.liars import hold_against
from fwbench.testing.liars.naive import first_call_checked

outcomes = hold_against(first_call_checked)
print(list(outcomes.values()).count(None), "of", len(outcomes))
```

`benchmarks/harness/liars.py` tests that loop, a more careful one and fwbench with all of them.
"""

_FWBENCH = """## fwbench

Liars are frameworks like any other once a folder with their entry points is on the path. fwbench's
own entry points do not name them, so nobody measures one by accident.

```sh
python -m fwbench.testing.liars /tmp/liars
PYTHONPATH=/tmp/liars pytest benchmarks --fw {example} -k {workload}
```

Of the {liars} liars below, {caught} end as a failed case, with one sentence and without a number.
The other {missed} get a number; the last column says why, and how they can still be noticed.
"""


def page() -> str:
    """The whole text of docs/liars.md."""
    return "\n".join([_HEAD, _any_harness(), _fwbench(), *chain.from_iterable(map(_room, ROOMS))])


def _any_harness() -> str:
    outcomes = hold_against(naive.first_call_checked)
    return _ANY_HARNESS.format(
        source=inspect.getsource(naive),
        missed=list(outcomes.values()).count(None),
        shown=len(outcomes),
    )


def _fwbench() -> str:
    caught = sum(liar.caught_by is not None for liar in LIARS)
    first = LIARS[0]
    return _FWBENCH.format(
        example=first.name,
        workload=first.workload.name,
        liars=len(LIARS),
        caught=caught,
        missed=len(LIARS) - caught,
    )


def _room(title: str) -> Iterator[str]:
    yield f"## {title}\n"
    yield "| liar | what it does | stands for | ends in | what catches it, or why nothing does |"
    yield "|---|---|---|---|---|"
    yield from map(_row, ROOMS[title])
    yield ""


def _row(liar: type[Liar]) -> str:
    fakes = (liar.__doc__ or "").partition("\n")[0]
    error = liar.caught_by.__name__ if liar.caught_by else "**a number**"
    cells = (f"`{liar.name}`", fakes, liar.mistake, error, liar.why)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(page(), end="")
