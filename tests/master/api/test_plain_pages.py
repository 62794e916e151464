"""Pages in place of a task's: what a browser sends from their buttons."""

import pytest

from determined_master.api.proxy.plain_pages import plain_page


@pytest.mark.parametrize(("button", "policy"), [("Open", "same-origin"), ("", "no-referrer")])
def test_a_page_with_a_button_lets_the_browser_name_its_origin(button: str, policy: str):
    """With no-referrer a browser posts a form with ``Origin: null``, which no master takes for its own page."""
    page = plain_page("text/html", 200, "Open a page", "It comes from the task.", button=button)
    assert page.headers["referrer-policy"] == policy
