"""Small pages in place of a task's: what happened and what to do, as HTML or text, by what the visitor accepts."""

import html
from collections.abc import Mapping

from starlette.responses import HTMLResponse, PlainTextResponse, Response

_STYLE = "font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em"
HEADERS: Mapping[str, str] = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
}


def plain_page(
    accept: str, status: int, title: str, text: str, *, link: tuple[str, str] | None = None, button: str = ""
) -> Response:
    """Returns a page.

    Args:
        accept: the ``Accept`` header of the request.
        status: of the answer.
        title: what happened.
        text: why, and what to do.
        link: address and words of a link.
        button: words of a button that posts to the page's own address; empty for none.
    """
    if "text/html" not in accept:
        where = f" {link[0]}" if link else ""
        return PlainTextResponse(f"{title}: {text}{where}\n", status, HEADERS)
    anchor = f'<p><a href="{html.escape(link[0])}">{html.escape(link[1])}</a></p>' if link else ""
    form = f'<form method="post"><button style="font:inherit">{html.escape(button)}</button></form>' if button else ""
    head, escaped = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">', html.escape(title)
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head>{head}<title>{escaped}</title></head><body style="{_STYLE}">'
        f'<h1 style="font-size:1.4em">{escaped}</h1><p>{html.escape(text)}</p>{anchor}{form}</body></html>',
        status,
        # Without a referrer, browsers say that a form comes from the origin "null", which may post nothing.
        {**HEADERS, "referrer-policy": "same-origin"} if button else HEADERS,
    )
