"""The pictures of the page that are in git: the main screens in each width and theme, and those that texts show."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "docs/pictures"
MAIN_SCREENS = (
    "list",
    "experiment-overview",
    "trial-curves",
    "compare-curves",
    "cluster",
    "checkpoints",
    "events",
    "users",
    "settings",
    "sign-in",
)
"""A picture of each route of the page."""
VARIANTS = tuple(f"{theme}-{width}" for theme in ("light", "dark") for width in (1440, 390))
_SHOWN = re.compile(r"!\[[^\]]*\]\((?:\.\./|docs/)pictures/([\w-]+\.png)\)")


def shown() -> set[str]:
    """Returns the names of the pictures that README and pages of the documentation show."""
    command = ["git", "ls-files", "README.md", "docs/*.md"]
    texts = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for text in texts for name in _SHOWN.findall((ROOT / text).read_text(encoding="utf-8"))}


def kept() -> set[str]:
    """Returns the names of all pictures that are in git."""
    return shown() | {f"{screen}-{variant}.png" for screen in MAIN_SCREENS for variant in VARIANTS}
