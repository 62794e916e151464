"""Runs axe-core in the page and describes problems of serious and critical impact."""

from functools import cache
from typing import Any

from playwright.sync_api import Page
from tests.support.live_models import ROOT

GRAVE = ("serious", "critical")


@cache
def _source() -> str:
    return (ROOT / "webui" / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def problems(page: Page, *, rules: tuple[str, ...] = ()) -> list[str]:
    """Returns the problems. The script runs through the browser's debugging interface, to which the content security
    policy does not apply. Without ``rules`` all rules run."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    violations = page.evaluate("options => axe.run(document, options).then(({ violations }) => violations)", options)
    return [
        f"{violation['id']} ({violation['impact']}): {node['html'][:160]} — {node['failureSummary'][:300]}"
        for violation in violations
        if violation["impact"] in GRAVE
        for node in violation["nodes"][:3]
    ]
