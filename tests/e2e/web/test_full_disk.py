"""The page shows a banner while the disk of the master is full."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from tests.e2e.web.visits import visit
from tests.support.live_cluster import live_cluster
from tests.support.small_disk import small_disk

pytestmark = pytest.mark.e2e


@pytest.mark.long  # tests/security/test_full_disk_live.py has the state that it shows
def test_a_banner_shows_while_the_disk_is_full(tmp_path: Path, browser: Browser):
    with (
        small_disk(tmp_path / "disk", "256m") as disk,
        live_cluster(disk.path / "cluster", slots=0) as cluster,
        visit(browser, cluster) as person,
    ):
        page = person.page()
        banner = page.get_by_role("alert").filter(has_text="disk is full")
        expect(page.get_by_role("navigation", name="Main")).to_be_visible()
        expect(banner).to_have_count(0)
        disk.fill()
        expect(banner).to_contain_text(f"on {cluster.data}). Trials wait")
        page.screenshot(path=tmp_path / "banner.png")
        disk.free()
        expect(banner).to_have_count(0)
