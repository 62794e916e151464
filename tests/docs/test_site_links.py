"""Links, anchors and images of the built site lead to something. ``make docs`` builds it; other sites are not
requested."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
LINKS = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Page(HTMLParser):
    """Collects the links and the anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        link = values.get(LINKS.get(tag, ""))
        if link:
            self.links.append(link)


def broken_links(site: Path) -> list[str]:
    """Returns each broken link, after the page that has it."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            missing = target not in pages if anchor else not target.is_file()
            if missing or (anchor and anchor not in pages[target].anchors):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


@pytest.mark.long
def test_each_link_of_the_site_leads_to_a_page_an_anchor_or_a_file() -> None:
    assert (SITE / "index.html").is_file(), "run make docs first"
    assert broken_links(SITE.resolve()) == []


def test_broken_links_returns_missing_pages_anchors_and_files(tmp_path: Path) -> None:
    good = '<h1 id="top">x</h1><a href="b.html#part">1</a><a href="#top">2</a><img src="a%20b.png"><a href="http://x/">3</a>'
    bad = '<h1 id="part">y</h1><a href="none.html">1</a><a href="a.html#none">2</a><img src="none.png">'
    (tmp_path / "a.html").write_text(good, encoding="utf-8")
    (tmp_path / "b.html").write_text(bad, encoding="utf-8")
    (tmp_path / "a b.png").write_bytes(b"")
    assert broken_links(tmp_path.resolve()) == ["b.html: none.html", "b.html: a.html#none", "b.html: none.png"]
