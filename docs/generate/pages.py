"""Writes the generated pages into a folder."""

from collections.abc import Callable
from pathlib import Path

from generate import command_line, experiment_config, rest_api, settings_pages

PAGES: dict[str, Callable[[], str]] = {
    "command-line.md": command_line.page,
    "experiment-config.md": experiment_config.page,
    "master-settings.md": settings_pages.master_page,
    "agent-settings.md": settings_pages.agent_page,
    "rest-api.md": rest_api.page,
}


def write(folder: Path) -> None:
    """Writes the pages that have changed, so that Sphinx reads only those again."""
    for name, page in PAGES.items():
        path, text = folder / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
