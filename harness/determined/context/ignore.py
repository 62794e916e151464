"""``.detignore``: the entries of a folder to leave out, decided as git does for a ``.gitignore`` at the top."""

import re
import warnings
from collections.abc import Iterable, Sequence
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
"""Left out whatever the user's patterns say."""

_BELOW = "ps_d"  # pathspec's name for the slash after which a match is below the entry itself
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \t",
    "digit": "0-9",
    "lower": "a-z",
    "space": " \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}


class _Pattern:
    """One line of the file, matched against one entry at a time.

    pathspec translates the wildcards. Its answer for a tree (everything below a match matches too) differs from git's
    answer for an entry when a negation follows. Its regex is therefore read as "exactly this entry"; for the same
    reason the trailing slash is handled here.
    """

    def __init__(self, line: str) -> None:
        self.line = line
        self.excludes = not line.startswith("!")
        body = _trimmed(line.removeprefix("!"))
        self._folders_only = body.endswith("/")
        body = body.removesuffix("/")
        for name, characters in _CLASSES.items():
            body = body.replace(f"[:{name}:]", characters)
        if body[:1] in ("#", "!", " "):
            body = f"\\{body}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # "[[a]" means the same to re as to git
            compiled = GitIgnoreSpecPattern(body)
        self.regex: re.Pattern[str] | None = compiled.regex

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Returns True if the pattern names exactly this entry, not only a parent folder."""
        if self._folders_only and not is_folder:
            return False
        found = self.regex.search(path) if self.regex is not None else None
        return found is not None and found.groupdict().get(_BELOW) is None


class Ignore:
    """Decides about each entry from the top down.

    Git never looks below an excluded folder, and callers must not either.

    >>> Ignore(["*.log", "!keep.log"]).excludes("keep.log", is_folder=False)
    False
    """

    def __init__(self, lines: Iterable[str] = ()) -> None:
        self._patterns = [each for each in map(_compiled, lines) if each is not None]
        self._always = [_Pattern(line) for line in ALWAYS]

    @classmethod
    def of_folder(cls, folder: Path, more: Sequence[str] = ()) -> "Ignore":
        """Reads ``.detignore`` at the top of ``folder``, if it exists; the patterns ``more`` follow its lines."""
        try:
            text = (folder / FILE_NAME).read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            return cls(more)
        except (OSError, UnicodeDecodeError) as error:
            raise ContextError(f"cannot read {folder / FILE_NAME}: {error}") from None
        return cls([*text.split("\n"), *more])

    def excludes(self, path: str, *, is_folder: bool) -> bool:
        """Returns True if the entry is left out.

        ``path`` is relative, with forward slashes and without an excluded parent.
        """
        return self.pattern_for(path, is_folder=is_folder) is not None

    def pattern_for(self, path: str, *, is_folder: bool) -> "str | None":
        """Returns the line because of which the entry is left out; None if it is sent."""
        for pattern in self._always:
            if pattern.matches(path, is_folder=is_folder):
                return pattern.line
        for pattern in reversed(self._patterns):
            if pattern.matches(path, is_folder=is_folder):
                return pattern.line if pattern.excludes else None
        return None


def _compiled(line: str) -> _Pattern | None:
    """Returns None for comments, blank lines, and lines that git ignores because they are invalid."""
    line = line.removesuffix("\r")
    if line.startswith("#"):
        return None
    try:
        pattern = _Pattern(line)
    except (ValueError, re.error):
        return None
    return pattern if pattern.regex is not None else None


def _trimmed(line: str) -> str:
    """Removes trailing blanks except one after a backslash."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return f"{bare} " if slashes % 2 and bare != line else bare


def line_for(path: str) -> str:
    r"""Returns the ignore line that excludes exactly this file.

    >>> line_for("data/big [1].bin")
    '/data/big \\[1].bin'
    """
    escaped = re.sub(r"([\\*?\[])", r"\\\1", path)
    if escaped.endswith(" "):
        escaped = escaped[:-1] + "\\ "
    return f"/{escaped}"
