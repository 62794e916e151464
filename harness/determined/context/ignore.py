"""``.detignore``: which entries of a folder stay out, as git decides it for a top ``.gitignore``."""

import re
from collections.abc import Iterable
from pathlib import Path

from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from determined.errors import ContextError

FILE_NAME = ".detignore"

ALWAYS = (
    "__pycache__/",
    "*.py[co]",
    "*$py.class",
    "terraform",
    "terraform_data",
    "terraform.tfstate*",
    "terraform.tfvars*",
    ".terraform*",
    ".git/",
    ".vscode/",
    ".idea/",
    ".mypy_cache/",
    "/shared_fs",
    f"/{FILE_NAME}",
)
"""Stays out whatever the user's patterns say."""

_DIRECTORY_MARK = "ps_d"  # pathspec's name for the slash at which a match turns from an entry to what lies below it


class _Pattern:
    """One line of the file, asked about one entry at a time."""

    def __init__(self, line: str) -> None:
        compiled = GitIgnoreSpecPattern(line)
        self.excludes: bool | None = compiled.include
        self._regex: re.Pattern[str] | None = compiled.regex

    def matches(self, path: str) -> bool:
        """Whether it names this very entry, and not merely a folder above it."""
        found = self._regex.match(path) if self._regex is not None else None
        if found is None:
            return False
        mark = found.start(_DIRECTORY_MARK) if _DIRECTORY_MARK in found.re.groupindex else -1
        return mark in (-1, len(path) - 1)


class Ignore:
    """Asked for each entry from the top down: git never looks below an excluded folder, nor may the caller.

    >>> Ignore(["*.log", "!keep.log"]).excludes("keep.log", is_folder=False)
    False
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._patterns = [each for each in map(_compiled, lines) if each.excludes is not None]
        self._always = [_Pattern(line) for line in ALWAYS]

    @classmethod
    def of_folder(cls, folder: Path) -> "Ignore":
        """Reads ``.detignore`` at the top of ``folder``; there need not be one."""
        try:
            text = (folder / FILE_NAME).read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return cls()
        except (OSError, UnicodeDecodeError) as error:
            raise ContextError(f"{folder / FILE_NAME} cannot be read: {error}") from None
        return cls(text.split("\n"))

    def excludes(self, path: str, *, is_folder: bool) -> bool:
        """``path`` is relative with forward slashes, and no folder above it is excluded."""
        asked = f"{path}/" if is_folder else path
        if any(pattern.matches(asked) for pattern in self._always):
            return True
        for pattern in reversed(self._patterns):
            if pattern.matches(asked):
                return bool(pattern.excludes)
        return False


def _compiled(line: str) -> _Pattern:
    try:
        return _Pattern(line.removesuffix("\r"))
    except ValueError:
        return _Pattern("")  # git, too, passes over a line that it cannot read


def line_for(path: str) -> str:
    """The ignore line that drops exactly this file.

    >>> line_for("data/big [1].bin")
    '/data/big \\\\[1].bin'
    """
    escaped = re.sub(r"([\\*?\[])", r"\\\1", path)
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return f"/{escaped}"
