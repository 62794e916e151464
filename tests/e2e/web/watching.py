"""Detects in a browser that a text was interpreted instead of displayed."""

from playwright.sync_api import Dialog, Page
from tests.e2e.web.visits import Visit

INSIDE = """
window.alert = window.confirm = window.prompt = () => { window.__ran = (window.__ran || 0) + 1; };
const before = Object.getOwnPropertyNames(Object.prototype).length;
window.__polluted = () => Object.getOwnPropertyNames(Object.prototype).length !== before || "polluted" in {};
"""
MARKUP = "iframe, base ~ base, object, embed, script:not([src*='assets/']), img:not([src='mark.svg']), [onerror], [onload], [onmouseover], a[href^='javascript:'], meta[http-equiv]"
CONTROL_CHARACTERS = """() => {
  const acts = /[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069]/;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement } = walker.currentNode;
    if (acts.test(data) && !parentElement.closest("textarea, .cm-editor")) found.push(`${parentElement.tagName} ${data.slice(0, 60)}`);
  }
  return found;
}"""


class Watch:
    """Watches all pages of a visit."""

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self.places: list[str] = []
        self._dialogs: list[str] = []
        self._found: list[str] = []
        visit.context.add_init_script(INSIDE)
        visit.context.on("dialog", self._on_dialog)

    def look(self, page: Page, what: str) -> None:
        """Records whether the page in its present state ran a script, built markup, or shows control
        characters outside of editors."""
        self.places.append(what)
        built = page.locator(MARKUP)
        self._found += [
            f"{what}: {problem}"
            for problem, is_there in {
                "something ran": page.evaluate("window.__ran ?? 0") != 0,
                "a prototype was changed": page.evaluate("window.__polluted()"),
                f"markup was built: {[each.evaluate('e => e.outerHTML') for each in built.all()]}": built.count() > 0,
                f"control characters: {page.evaluate(CONTROL_CHARACTERS)}": page.evaluate(CONTROL_CHARACTERS) != [],
                f"a dialog: {self._dialogs}": self._dialogs != [],
                f"requests to other origins: {self.visit.foreign}": self.visit.foreign != [],
                f"led away to {page.url}": not page.url.startswith(self.visit.url),
            }.items()
            if is_there
        ]

    def found_nothing(self) -> None:
        assert self._found == [], "\n".join(self._found)

    def _on_dialog(self, dialog: Dialog) -> None:
        self._dialogs.append(dialog.message)
        dialog.dismiss()
