"""Links of the texts beside the documentation site: they lead to tracked files. Sphinx checks the links of the site."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "client/README.md", "docs/index.md")
_LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_of_the_repository(page):
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    names = {*tracked, *(str(parent) for name in tracked for parent in Path(name).parents)}
    text = (ROOT / page).read_text(encoding="utf-8")
    missing = []
    for link in _LINK.findall(text):
        path = link.partition("#")[0]
        if not path or "://" in path:
            continue
        target = ((ROOT / page).parent / path).resolve()
        if not target.is_relative_to(ROOT) or str(target.relative_to(ROOT)) not in names:
            missing.append(link)
    assert missing == []
