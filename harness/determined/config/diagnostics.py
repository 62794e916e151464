"""Diagnostics of a configuration: message, position, and how they are displayed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
"""Path of a value in a document: keys and list indexes from the root."""

MAX_LINE_WIDTH = 160  # a minified document must not flood the terminal


@dataclass(frozen=True)
class Diagnostic:
    """One problem. ``severity`` is ``error`` or ``warning``; line and column count from 1."""

    severity: str
    code: str
    message: str
    path: str
    line: int
    column: int
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the diagnostic in the form of the API."""
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "hint": self.hint,
        }


def render_path(path: Path) -> str:
    """Returns ``("bind_mounts", 0, "host_path")`` as ``bind_mounts[0].host_path``.

    >>> render_path(("bind_mounts", 0, "host_path"))
    'bind_mounts[0].host_path'
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text


def render(name: str, lines: Sequence[str], diagnostics: Sequence[Diagnostic]) -> str:
    """Returns all problems as text: position, code and message, the source line, a caret, and the help."""
    return "\n".join(_render_one(name, lines, each) for each in diagnostics)


def without_place(name: str, problem: Diagnostic) -> str:
    """Returns a problem of something that has no lines, such as a flag of the command line."""
    text = f"{name}: {problem.severity}[{problem.code}]: {problem.message}"
    return f"{text}\nhelp: {problem.hint}" if problem.hint else text


def _render_one(name: str, lines: Sequence[str], problem: Diagnostic) -> str:
    head = f"{name}:{problem.line}:{problem.column}: {problem.severity}[{problem.code}]: {problem.message}"
    parts = [head]
    if 0 < problem.line <= len(lines) and lines[problem.line - 1].strip():
        line = lines[problem.line - 1]
        start = max(0, problem.column - 1 - MAX_LINE_WIDTH // 2) if len(line) > MAX_LINE_WIDTH else 0
        shown = _printable(line[start : start + MAX_LINE_WIDTH])
        before = shown[: max(0, problem.column - 1 - start)]
        # A tab stays a tab, so that the caret is below its character at any tab width.
        pad = "".join("\t" if character == "\t" else " " for character in before)
        parts += [f"  {shown}", f"  {pad}^"]
    if problem.hint:
        parts.append(f"help: {problem.hint}")
    return "\n".join(parts)


def _printable(text: str) -> str:
    """Escapes control characters, so that a file cannot send escape sequences to the terminal."""
    return "".join(
        character if character.isprintable() or character == "\t" else "\N{REPLACEMENT CHARACTER}" for character in text
    )
