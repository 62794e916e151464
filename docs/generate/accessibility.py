"""A Sphinx extension that completes the theme's HTML for screen readers and keyboards."""

from typing import Any

from sphinx.application import Sphinx

REPLACEMENTS = (
    # A heading without a level.
    ('<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    # Wide blocks and tables scroll; without a mouse they do so only when they have the focus.
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
)
KEYS = ("body", "furo_navigation_tree", "toc")
AFTER_THEME = 900
"""Priority: the theme's own handler makes the navigation."""


def complete(_app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object) -> None:
    """Replaces in the parts of a page from which the theme's template makes it."""
    for key in KEYS:
        if isinstance(context.get(key), str):
            context[key] = completed(context[key])


def completed(html: str) -> str:
    for old, new in REPLACEMENTS:
        html = html.replace(old, new)
    return html


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("html-page-context", complete, priority=AFTER_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
