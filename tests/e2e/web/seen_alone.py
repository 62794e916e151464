"""``seen_alone.py LINK CHROMIUM`` signs in by the link and opens the list and its first experiment. ``wheel_test.sh`` runs it
without Node and without a network, so it imports nothing of this checkout."""

import sys
from urllib.parse import urlsplit

from playwright.sync_api import expect, sync_playwright


def main(link: str, chromium: str) -> None:
    parts = urlsplit(link)
    origin = f"{parts.scheme}://{parts.netloc}/"
    expect.set_options(timeout=60_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        page = browser.new_page()
        requested: list[str] = []
        thrown: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.goto(link)
        row = page.get_by_role("row").filter(has=page.get_by_role("link", name="wheel", exact=True))
        expect(row).to_contain_text("completed")
        row.get_by_role("link", name="wheel").click()
        expect(page.get_by_role("heading", name="wheel")).to_be_visible()
        page.get_by_role("link", name="Logs").click()
        expect(page.get_by_role("log")).to_contain_text("trained from the wheel")
        browser.close()
    elsewhere = [url for url in requested if not url.startswith((origin, "data:", "blob:"))]
    assert not elsewhere, elsewhere
    assert not thrown, thrown
    print(f"wheel: the page was seen without Node and without a network, in {len(requested)} requests")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
