"""Explains that a file which a program misses was left out of the context, by ``.detignore`` or always.

``.detignore`` itself is not sent as a file. Its lines travel as the archive's comment, which other readers of tar
ignore, with those of each included folder that has one.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from determined.context.ignore import FILE_NAME, Ignore

MAX_COMMENT = 16 << 10
"""Maximum bytes of all ``.detignore`` in the comment. Of one that does not fit, only its existence is known."""
_PART, _NAME, _TOO_LONG = "\x1e", "\x1f", "\x1d"
"""Control characters of the comment: before the name of an included folder, after it, and in place of long lines."""
_MISSING = (
    re.compile(r"FileNotFoundError: \[Errno 2\] No such file or directory: '([^'\n]{1,1000})'"),
    re.compile(r"can't open file '([^'\n]{1,1000})'"),
    # Libraries that name the file in another way, and programs of a shell.
    re.compile(r"No such file or directory: \"?'?([^'\"\s]{1,1000})"),
    re.compile(r"(?:^|: |')([^\s:'\"]{1,1000})'?: No such file or directory"),
)
_MODULE = re.compile(r"ModuleNotFoundError: No module named '([A-Za-z_][\w.]{0,200})'")


def comment_of(folder: Path, included: Mapping[str, Path] = MappingProxyType({})) -> str:
    """Returns the lines of each ``.detignore`` as the comment of an archive; empty without any.

    ``included`` are further folders by their names in the context.
    """
    left = MAX_COMMENT
    comment = ""
    for name, part in {"": folder, **included}.items():
        text = _lines(part)
        if len(text.encode()) > left:
            text = _TOO_LONG
        left -= len(text.encode())
        if text:
            comment += f"\n{_PART}{name}{_NAME}{text}" if name else text
    return comment if len(comment) <= 2 * MAX_COMMENT else _TOO_LONG


def _lines(folder: Path) -> str:
    try:
        text = (folder / FILE_NAME).read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
    return "" if any(sign in text for sign in ("\0", _PART, _NAME, _TOO_LONG)) else text


def explain(output: Iterable[str], workdir: Path, comment: str) -> str:
    """Returns why the file that the last of these lines misses is not in the working folder, or an empty text.

    >>> explain(["FileNotFoundError: [Errno 2] No such file or directory: 'a/x.csv'"], Path("/none"), "*.csv")
    '.detignore leaves a/x.csv out of the context (line 1: *.csv)'
    """
    own, *others = comment.split(f"\n{_PART}")
    parts = {"": own, **{name: text for name, _, text in (other.partition(_NAME) for other in others)}}
    compiled: dict[str, Ignore] = {}
    unknown = ""
    for line in reversed(list(output)):
        for missing in _missing(line[:4096]):
            path = _inside(missing, workdir)
            if not path or os.path.lexists(workdir / path):
                continue
            top, _, below = path.partition("/")
            name = top if below and top in parts else ""
            lines = parts[name].split("\n")
            if name not in compiled:
                compiled[name] = Ignore(lines)
            if found := _rule(compiled[name], below if name else path):
                return _sentence(name, *found, lines)
            if parts[name] == _TOO_LONG and not unknown:
                unknown = _too_long(name, path)
    return unknown


def _too_long(name: str, path: str) -> str:
    file = f"{name}/{FILE_NAME}" if name else FILE_NAME
    return (
        f"{path} is not in the context; {file} may leave it out: its lines are not known here, because more than "
        f"{MAX_COMMENT >> 10} KiB of them are not sent"
    )


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


def _sentence(name: str, path: str, pattern: str, lines: Sequence[str]) -> str:
    path, file = (f"{name}/{path}", f"{name}/{FILE_NAME}") if name else (path, FILE_NAME)
    number = next((at for at, line in enumerate(lines, start=1) if line.removesuffix("\r") == pattern), None)
    if number is None:
        return f"{path} is never sent with a context ({pattern})"
    return f"{file} leaves {path} out of the context (line {number}: {pattern})"
