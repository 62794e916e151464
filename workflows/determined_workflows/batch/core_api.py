"""Finds out if the script of a command uses the Core API: such a script can be paused."""

import re
from collections.abc import Sequence
from pathlib import Path

from determined.errors import ConfigError
from determined_workflows.batch import shell_words

MAX_BYTES = 1 << 20
_USES = re.compile(
    r"^[^#\n]*\b(determined\.core|det\.core|from\s+determined\s+import\s+[^\n]*\bcore\b|determined\.transformers)\b",
    re.MULTILINE,
)


def script_of(command: str, workdir: Path) -> Path | None:
    """Returns the script that a command names, or the file of its module; None if there is none in the project."""
    try:
        words = shell_words.split(command)
    except ConfigError:
        return None
    for before, word in zip(["", *words], words, strict=False):
        name = word.strip("'\"")
        for path in _candidates(before, name, workdir):
            if path.is_file():
                return path
    return None


def _candidates(before: str, name: str, workdir: Path) -> Sequence[Path]:
    if name.endswith(".py"):
        return [workdir / name]
    if before in ("-m", "--module") and re.fullmatch(r"\w+(\.\w+)*", name):
        base = workdir / name.replace(".", "/")
        return [base.with_suffix(".py"), base / "__main__.py"]
    return []


def is_used(script: Path) -> bool:
    """Returns True if the script names ``determined.core``. What it imports is not read."""
    try:
        with script.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return False
    return _USES.search(text) is not None


def note(script: Path | None) -> str:
    """Returns the sentence about pauses of a submission."""
    if script is None:
        return "no script of the project is named in the command: a paused trial starts anew when it is activated"
    if is_used(script):
        return f"{script.name} uses determined.core: it can be paused, and goes on from the checkpoints that it saves"
    return (
        f"{script.name} does not name determined.core: it is taken for a plain program, which is ended by a pause and "
        "starts anew when it is activated; if what it imports saves checkpoints, set --config preemption_timeout=600"
    )
