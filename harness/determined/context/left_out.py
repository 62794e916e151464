"""Explains that a file which a program misses was left out of the context, by ``.detignore`` or always.

``.detignore`` itself is not sent as a file. Its lines travel as the archive's comment, which other readers of tar
ignore.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from determined.context.ignore import FILE_NAME, Ignore

MAX_COMMENT = 16 << 10
"""Maximum length of the comment; a longer ``.detignore`` is not explained."""
_MISSING = (
    re.compile(r"FileNotFoundError: \[Errno 2\] No such file or directory: '([^'\n]{1,1000})'"),
    re.compile(r"can't open file '([^'\n]{1,1000})'"),
    # Libraries that name the file in another way, and programs of a shell.
    re.compile(r"No such file or directory: \"?'?([^'\"\s]{1,1000})"),
    re.compile(r"(?:^|: |')([^\s:'\"]{1,1000})'?: No such file or directory"),
)
_MODULE = re.compile(r"ModuleNotFoundError: No module named '([A-Za-z_][\w.]{0,200})'")


def comment_of(folder: Path) -> str:
    """Returns the lines of the folder's ``.detignore`` as the comment of an archive; empty without one."""
    try:
        text = (folder / FILE_NAME).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
    return text if len(text) <= MAX_COMMENT and "\0" not in text else ""


def explain(output: Iterable[str], workdir: Path, comment: str) -> str:
    """Returns why the file that the last of these lines misses is not in the working folder, or an empty text.

    >>> explain(["FileNotFoundError: [Errno 2] No such file or directory: 'a/x.csv'"], Path("/none"), "*.csv")
    '.detignore leaves a/x.csv out of the context (line 1: *.csv)'
    """
    lines = comment.split("\n")
    ignore = Ignore(lines)
    for line in reversed(list(output)):
        for missing in _missing(line[:4096]):
            path = _inside(missing, workdir)
            if path and not os.path.lexists(workdir / path) and (found := _rule(ignore, path)):
                return _sentence(*found, lines)
    return ""


def _missing(line: str) -> Iterator[str]:
    for pattern in _MISSING:
        if match := pattern.search(line):
            yield match[1]
    if match := _MODULE.search(line):
        path = match[1].replace(".", "/")
        yield f"{path}.py"
        yield path
        yield f"{path}/__init__.py"


def _inside(missing: str, workdir: Path) -> str:
    """Returns the path below the working folder, or an empty text."""
    path = os.path.relpath(os.path.join(workdir, missing), workdir)
    return "" if path == "." or path.startswith("..") else path


def _rule(ignore: Ignore, path: str) -> "tuple[str, str] | None":
    """Returns the entry that is left out, the path itself or a folder above it, and the pattern that says so."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        above, is_last = "/".join(parts[:count]), count == len(parts)
        # A missing file could have been a folder.
        for is_folder in (False, True) if is_last else (True,):
            pattern = ignore.pattern_for(above, is_folder=is_folder)
            if pattern is not None:
                return above, pattern
    return None


def _sentence(path: str, pattern: str, lines: Sequence[str]) -> str:
    number = next((at for at, line in enumerate(lines, start=1) if line.removesuffix("\r") == pattern), None)
    if number is None:
        return f"{path} is never sent with a context ({pattern})"
    return f"{FILE_NAME} leaves {path} out of the context (line {number}: {pattern})"
