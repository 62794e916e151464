"""Texts and comments refer to nothing that a reader of the repository does not have: numbered documents, issues, requirements."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ELSEWHERE = re.compile(
    r"\b[Dd]ocument \d{3}\b|\b[Ii]ssues? #?\d+\b|\bbefore (?:an|each) issue\b|\b[Rr]equirements? \d|(?<![\w/.-])design/"
)
OWN = "tests/docs/test_references.py"


def texts() -> list[str]:
    done = subprocess.run(["git", "grep", "-lI", "", "--", "."], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if name != OWN and not name.endswith(("lock.json", ".lock"))]


def test_no_file_refers_to_a_paper_that_readers_do_not_have() -> None:
    found = []
    for name in texts():
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            if match := ELSEWHERE.search(line):
                found.append(f"{name}:{number}: {match[0]}")
    assert found == []


@pytest.mark.parametrize(
    "line", ["see document 003", "# issue 41 asks", "Issue #7", "design/style.md", "requirement 8"]
)
def test_such_a_reference_is_recognized(line: str) -> None:
    assert ELSEWHERE.search(line)


@pytest.mark.parametrize("line", ["a YAML document", "tests/design/x.py", "issued 3 tokens", "requirements.txt"])
def test_other_words_are_not_taken_for_references(line: str) -> None:
    assert not ELSEWHERE.search(line)
