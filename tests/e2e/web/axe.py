"""axe-core in the page: what it finds of serious and critical impact, in words."""

from functools import cache
from typing import Any

from playwright.sync_api import Page
from tests.support.live_models import ROOT

GRAVE = ("serious", "critical")


@cache
def _source() -> str:
    return (ROOT / "webui" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def problems(page: Page, *, rules: tuple[str, ...] = ()) -> list[str]:
    """Evaluated through the browser's own tools, which the content security policy does not concern. Without
    ``rules`` all of them are asked."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = page.evaluate("options => axe.run(document, options).then(({ violations }) => violations)", options)
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]} — {node['failureSummary'][:300]}"
        for violation in found
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
