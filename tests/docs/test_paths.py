"""Pages for people who change the product name files that exist."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "architecture").glob("*.md"))]
PAGES += [
    page
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md"))
    if "\nStatus: replaced" not in page.read_text(encoding="utf-8")  # it describes what is gone
]
SOURCE = re.compile(r"`([\w./-]*\w\.(?:py|sh|toml|ts|tsx|md|patch))(?::[^`]*)?`")
OF_USERS = {"agent.py", "folder/file.py", "startup-hook.sh"}
"""Files that are named on these pages and lie in contexts."""


def tracked() -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")


@pytest.fixture(scope="module")
def endings() -> set[str]:
    """Returns every file by its path and by each end of it: pages name `trials/service.py` of the master so."""
    parts = [path.split("/") for path in tracked()]
    return {"/".join(each[start:]) for each in parts for start in range(len(each))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_source_file_in_backticks_exists(page: Path, endings: set[str]) -> None:
    named = {match.group(1) for match in SOURCE.finditer(page.read_text(encoding="utf-8"))}
    missing = sorted(name for name in named - OF_USERS if name.strip("./") not in endings)
    assert missing == []
