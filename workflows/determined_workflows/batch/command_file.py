"""Reads the command of a job from its file. Bash on the node interprets it; nothing is expanded here."""

import re
from pathlib import Path

from determined.errors import ConfigError

FILE_NAME = "experiment_configurations.txt"
MAX_BYTES = 1 << 20


def find(given: str | None, folder: Path) -> Path:
    """Returns the command file: as given, relative to the working folder or to ``folder``; else that of ``folder``."""
    if given is None:
        return folder / FILE_NAME
    return folder / given if not Path(given).exists() and (folder / given).exists() else Path(given)


def read(path: Path) -> str:
    """Returns the command of a file. Raises ConfigError if the file cannot be used."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"the command file {path.absolute()} cannot be read: {error.strerror}; --configs names another"
        ) from None
    if len(content) > MAX_BYTES:
        raise ConfigError(f"the command file {path} has more than {MAX_BYTES >> 20} MiB; it holds one command")
    if b"\0" in content:
        raise ConfigError(f"the command file {path} is not text; it holds one command")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"the command file {path} is not UTF-8 text: byte {error.start}") from None
    command = join(text)
    if not command:
        raise ConfigError(f"the command file {path} has no command, only blank lines and comments; write one into it")
    return command


def join(text: str) -> str:
    """Returns the lines as one command: comments and blank lines are dropped, the others joined by a space.

    >>> join("# a comment\\n\\npython main.py \\\\\\n--train\\n--note 'a # b'")
    "python main.py --train --note 'a # b'"
    """
    lines = []
    for line in text.splitlines():
        words = line.strip()
        if not words or words.startswith("#"):
            continue
        # A backslash that is itself escaped does not continue the line.
        ending = len(words) - len(words.rstrip("\\"))
        lines.append(words[:-1].rstrip() if ending % 2 else words)
    return re.sub(r"\s+\Z", "", " ".join(line for line in lines if line))
