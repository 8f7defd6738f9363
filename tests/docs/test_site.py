"""The documentation as a site: it builds, is complete, and asks no other host for anything."""

import html.parser
import json
from pathlib import Path

import pytest

from support import programs
from support.documents import PAGES, ROOT, read

#: What a browser loads by itself: elements, and the attribute with the address.
_LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}

#: Links of a page's head that only name something.
_NAMED_ONLY = {"canonical", "next", "prev"}


#: Pages that are written from the code.
_FROM_CODE = (
    *("api", "cheats", "commands", "frameworks", "idioms", "operations", "options", "record"),
    "regressions",
)

_BY_HAND = [
    page for page in PAGES if page.startswith("docs/") and Path(page).stem not in _FROM_CODE
]


@pytest.mark.parametrize("page", _BY_HAND)
def test_a_page_begins_with_what_it_is_for(page: str) -> None:
    title, first = read(page).split("\n\n", 2)[:2]
    assert title.startswith("# ")
    assert first[0].isupper() or first.startswith(("fwbench", "`"))


def test_a_reader_can_know_all_pages() -> None:
    """At most 25 are written by hand: what overlaps belongs on one page."""
    assert len(_BY_HAND) <= 25


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: warnings are errors."""
    folder = tmp_path_factory.mktemp("site")
    build = ("-m", "mkdocs", "build", "--strict", "--site-dir", folder)
    programs.output(*build, cwd=ROOT, variables={"NO_MKDOCS_2_WARNING": "1"})
    return folder


class _Loads(html.parser.HTMLParser):
    """The addresses that a page makes a browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("rel") not in _NAMED_ONLY and tag in _LOADED:
            self.addresses += [address for address in [given.get(_LOADED[tag])] if address]


def _loads(page: Path) -> list[str]:
    parser = _Loads()
    parser.feed(page.read_text(encoding="utf-8"))
    return parser.addresses


def test_no_page_asks_another_host_for_anything(site: Path) -> None:
    pages = [*site.rglob("*.html")]
    assert len(pages) > 20
    for page in pages:
        addresses = _loads(page)
        assert any(address.endswith(".css") for address in addresses)
        assert [address for address in addresses if "//" in address] == []
    for sheet in site.rglob("*.css"):
        assert "url(http" not in sheet.read_text(encoding="utf-8"), sheet


def test_the_search_finds_an_option_without_a_server(site: Path) -> None:
    """Its index is a script, which a page that was opened as a file may load."""
    script = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("var __index = "))
    (options,) = [page for page in index["docs"] if page["location"] == "options.html"]
    assert options["title"] == "Options of pytest"
    assert any("--fw-size" in page["text"] for page in index["docs"])


def test_the_api_comes_from_docstrings(site: Path) -> None:
    import fwbench

    text = (site / "api.html").read_text(encoding="utf-8")
    missing = [name for name in fwbench.__all__ if f'id="fwbench.{name}"' not in text]
    assert missing == []
    assert ":class:" not in text  # roles are links
    assert 'href="#fwbench.Form.sizes"' in text
