"""Hatch's hook: the built page and documentation go into the wheel; without them a wheel can still be made."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = {
    "_webui": ("webui/dist", "page", "the API alone"),
    "_docs": ("docs/_build/html", "documentation", "no /docs"),
}


class PageHook(BuildHookInterface[Any]):
    """Both folders are built by other tools and known to no version control, so they are looked for at each build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # reads the checkout's own
            return
        for name, (folder, what, without) in BUILT.items():
            built = Path(self.root) / folder
            if (built / "index.html").is_file():
                build_data["force_include"][str(built)] = f"determined_master/{name}"
            else:
                self.app.display_warning(f"no built {what} in {folder}: this wheel serves {without}")
