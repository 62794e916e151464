"""What the browser has to fetch before the page can show anything."""

import re

import pytest

from determined_master.web.assets import INDEX, page_folder

pytestmark = pytest.mark.e2e


def test_the_first_page_waits_for_the_frame_and_its_own_file_and_for_no_curves() -> None:
    """A module that moves and no longer matches the groups of ``vite.config.ts`` drags others along."""
    text = (page_folder() / INDEX).read_text(encoding="utf-8")
    assets = sorted(re.findall(r'(?:src|href)="\./assets/([\w-]+)-[\w-]{8}\.(js|css)"', text))
    assert assets == [
        ("frame", "css"),
        ("frame", "js"),
        ("index", "css"),
        ("index", "js"),
        ("rolldown-runtime", "js"),
    ]
