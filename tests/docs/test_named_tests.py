"""Each test that a page of the documentation names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"`(test_\w+)`")


def _named() -> dict[str, set[str]]:
    """Returns the tests that each page names."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    found = {str(page.relative_to(ROOT)): set(_NAMED.findall(page.read_text(encoding="utf-8"))) for page in pages}
    return {page: names for page, names in found.items() if names}


NAMED = _named()


def test_the_table_of_the_grid_runner_is_found() -> None:
    assert len(NAMED["docs/how-to/grid-runner.md"]) > 20


@pytest.mark.parametrize("page", NAMED)
def test_each_named_test_exists(page: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    defined = set(re.findall(r"def (test_\w+)\(", "\n".join(texts))) | {
        path.stem for path in (ROOT / "tests").rglob("test_*.py")
    }
    assert NAMED[page] <= defined
