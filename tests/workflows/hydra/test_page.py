"""The table of the page *Hydra projects*: each test that it names exists. tests/e2e/test_hydra.py follows the page."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[2]
PAGE = TESTS.parent / "docs" / "how-to" / "hydra.md"
FOLDERS = (TESTS / "workflows" / "hydra", TESTS / "e2e")


def test_each_test_that_the_page_names_exists() -> None:
    named = re.findall(r"`(test_\w+\.py)::(test_\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 10
    missing = []
    for file, name in named:
        (path,) = [folder / file for folder in FOLDERS if (folder / file).is_file()]
        if f"def {name}(" not in path.read_text(encoding="utf-8"):
            missing.append(f"{file}::{name}")
    assert missing == []
