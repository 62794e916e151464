"""The tests that pages of the documentation name: each exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"`(test_\w+)`")


def _named() -> dict[str, set[str]]:
    """Returns the tests that each page names."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    names_by_page = {
        str(page.relative_to(ROOT)): set(_NAMED.findall(page.read_text(encoding="utf-8"))) for page in pages
    }
    return {page: names for page, names in names_by_page.items() if names}


NAMED = _named()


def test_the_page_of_the_grid_runner_names_more_than_twenty_tests() -> None:
    assert len(NAMED["docs/how-to/grid-runner.md"]) > 20


@pytest.mark.parametrize("page", NAMED)
def test_each_test_that_a_page_names_exists(page: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    defined = set(re.findall(r"def (test_\w+)\(", "\n".join(texts))) | {
        path.stem for path in (ROOT / "tests").rglob("test_*.py")
    }
    assert NAMED[page] <= defined
