"""The table of what each command starts: its commands, flags and places are those of the program."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tests.docs.test_commands import problem

from determined_cli import command_table
from determined_cli.main import main
from determined_cli.workflow_verbs import PURPOSES, TARGETS

ROOT = Path(__file__).parents[2]
NAME = "docs/reference/which-command.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]
WORKFLOWS = {row[0].strip("`").split()[1]: row for row in ROWS if row[0].endswith(" run`") and "," not in row[0]}
CODE = re.compile(r"`([^`]+)`")


def test_the_table_has_nine_lines_and_each_command_once() -> None:
    commands = [command for row in ROWS for command in CODE.findall(row[0])]
    assert len(ROWS) == 9
    assert len(set(commands)) == len(commands)


def test_each_command_of_the_table_exists() -> None:
    named = [code for row in ROWS for cell in row for code in CODE.findall(cell) if code.startswith("det ")]
    assert len(named) > len(ROWS)
    assert [reason for command in named if (reason := problem(command))] == []
    for program in ("det-master", "det-agent"):
        assert any(f"`{program}`" in row[0] for row in ROWS)


@pytest.mark.parametrize("noun", sorted(WORKFLOWS))
def test_the_places_of_a_workflow_are_those_of_its_flag_and_the_first_is_the_default(
    noun: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([noun, "run", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    found = re.search(r"--on TARGET ((?:(?:, | or )?\w+ \([^)]*\))+); default: (\w+)", text)
    assert found is not None, text
    offered = [target for target in TARGETS if f"{target} (" in found[1]]
    places = CODE.findall(WORKFLOWS[noun][2])
    assert sorted(places) == sorted(offered)
    assert places[0] == found[2]


def test_every_workflow_is_in_the_table() -> None:
    verbs = {noun: import_module(module).VERBS for noun, (module, _, _) in command_table.NOUNS.items()}
    assert {noun for noun in verbs if {*PURPOSES} <= {verb.name for verb in verbs[noun]}} == WORKFLOWS.keys()


def test_readme_and_help_name_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert NAME in capsys.readouterr().out
    assert f"]({NAME})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_help_is_printed_without_the_modules_of_commands() -> None:
    code = "import sys; from determined_cli.main import main; main(['--help']); print(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert NAME in done.stdout
    assert loaded & {"argparse", "determined.client", "httpx", "pydantic", "determined_cli.experiment"} == set()
