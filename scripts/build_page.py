"""Hatch's hook: the built page goes into the wheel where it is built; without it a wheel can still be made."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface[Any]):
    """``webui/dist`` is made by npm and known to no version control, so it is looked for at each build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        page = Path(self.root) / "webui" / "dist"
        # An editable install reads the checkout's own.
        if version != "editable" and (page / "index.html").is_file():
            build_data["force_include"][str(page)] = "determined_master/_webui"
        elif version != "editable":
            self.app.display_warning("no built page in webui/dist: this wheel serves the API alone")
