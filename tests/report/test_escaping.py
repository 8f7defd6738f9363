"""Names and reasons are shown as they are, and do nothing."""

import re

import pytest

from fwbench.report import escaping

_JOINER = "\u2060"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("l2_normalize-torch@nightly-cpu", "l2_normalize-torch@nightly-cpu"),
        ("a|b", r"a\|b"),
        ("a\\", r"a\\"),
        ("a\n\n# b", "a # b"),
        ("![x](y)", r"!\[x\](y)"),
        ("<img src=x>", "&lt;img src=x>"),
        ("&lt;img>", "&amp;lt;img>"),
        ("**bold** `code` ~~gone~~", r"\*\*bold\*\* \`code\` \~\~gone\~\~"),
        ("_a_ and __b__", r"\_a\_ and \_\_b\_\_"),
        ("ask @somebody", f"ask @{_JOINER}somebody"),
        ("me@host", "me@host"),
        ("fixes #12 and me/mine#3", f"fixes #{_JOINER}12 and me/mine#{_JOINER}3"),
        ("GH-12", f"GH-{_JOINER}12"),
        ("https://x.org/y", f"https://{_JOINER}x.org/y"),
        ("www.x.org", f"www.{_JOINER}x.org"),
        ("\x1b[31mred", r"\\x1b\[31mred"),
        ("half \ud800", r"half \\ud800"),
    ],
)
def test_markdown(text: str, shown: str) -> None:
    """On GitHub it is read as it was written: no markup, no picture, no mention, no reference."""
    assert escaping.markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("gemm-torch", "gemm-torch"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\r\x07\x9b", r"\r\x07\x9b"),
        ("\u202eback", r"\u202eback"),
        ("half \udfff", r"half \udfff"),
        ("größe", "größe"),
    ],
)
def test_terminal(text: str, shown: str) -> None:
    assert escaping.terminal(text) == shown


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t"])
def test_spreadsheet(sign: str) -> None:
    assert escaping.spreadsheet(f"{sign}1+1") == f"'{sign}1+1"
    assert escaping.spreadsheet(f"a{sign}1") == f"a{sign}1"


def test_every_text_can_be_written() -> None:
    every = "".join(map(chr, range(0x3000))) + "\ud800\udfff\U0001f600"
    for escape in (escaping.markdown, escaping.terminal, escaping.spreadsheet):
        assert not re.search(r"[\x00-\x08\x1b\x7f\ud800]", escape(every))
        escape(every).encode("utf-8")
