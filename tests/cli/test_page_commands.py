"""The commands that the web page shows: each exists."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from determined_cli import command, command_table

PAGE = Path(__file__).parents[2] / "webui" / "src"
COMMAND = re.compile(r"\bdet ([a-z][a-z-]+) ([a-z][a-z-]+)\b")
SHOWN_COMMANDS = sorted(
    {
        match.groups()
        for path in PAGE.rglob("*.tsx")
        if not path.name.endswith(".test.tsx")
        for match in COMMAND.finditer(path.read_text(encoding="utf-8"))
        if match[1] not in ("up", "down")  # they have no verbs
    }
)


@pytest.mark.parametrize(("noun", "verb"), SHOWN_COMMANDS, ids=lambda word: word)
def test_each_command_that_the_page_shows_exists(noun: str, verb: str):
    name = command_table.find(noun)
    assert name is not None
    assert command.find(import_module(command_table.NOUNS[name][0]).VERBS, verb) is not None


def test_the_page_shows_experiment_create():
    assert ("experiment", "create") in SHOWN_COMMANDS
