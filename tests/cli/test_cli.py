"""Arguments that are not understood are errors, and asking for help is none."""

from __future__ import annotations

import pytest

from fwbench import cli
from fwbench.version import __version__


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "COMMAND"),
        (["docter"], "docter"),
        (["doctor", "--threads", "0"], "number of threads '0' is not a positive whole number"),
        (["doctor", "--threads", "many"], "number of threads 'many'"),
        (["doctor", "--jsn"], "--jsn"),
        (["recover"], "-o/--output"),
    ],
    ids=" ".join,
)
def test_what_is_not_understood_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    """Arguments that are not understood are named, and nothing is done."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--version"], f"fwbench {__version__}"), (["--help"], "recover"), (["doctor", "-h"], "N")],
)
def test_asking_for_help_exits_with_0(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """The version and the help are printed on standard output."""
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 0
    assert said in capsys.readouterr().out
