"""Checks the launch layers that an entrypoint names, with the parser that the layers themselves use."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from determined.config.findings import Finding, nearest
from determined_launch import arguments, tensorflow
from determined_launch.errors import UsageError

LAYERS = ("torch_distributed", "horovod", "deepspeed", "autohorovod", "roles")
_MODULE = re.compile(r"determined\.launch\.(\w+)\Z")
_PUNCTUATION = frozenset("();<>|&\n")
"""Words of these alone end a command, or redirect its output."""
_DROPPED = re.compile(
    r"""('[^']*'|"(?:\\.|[^"\\])*"|\\[^\n])"""  # kept: quoted texts and escapes
    r"""|\\\n|(?<![^\s;&|()<>])\#[^\n]*""",  # a line that goes on, a comment
    re.DOTALL,
)
_INTERNAL = ("wrap_rank",)


def check(merged: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields what is wrong with each ``python3 -m determined.launch.LAYER …`` of the entrypoint.

    Words that only a shell can expand (``$NAME``) are left alone.
    """
    words = _words(merged.get("entrypoint"))
    for index, word in enumerate(words):
        match = _MODULE.match(word)
        if match is None or words[index - 1 : index] != ["-m"] or match[1] in _INTERNAL:
            continue
        if match[1] == "tensorflow":
            yield Finding("E207", ("entrypoint",), f"{word} is not supported", tensorflow.ADVICE)
            continue
        if match[1] not in LAYERS:
            near = nearest(match[1], LAYERS)
            hint = f'did you mean "determined.launch.{near}"?' if near else f"the launch layers are {', '.join(LAYERS)}"
            yield Finding("E207", ("entrypoint",), f'unknown launch layer "{match[1]}"', hint)
            continue
        rest = _to_the_end(words[index + 1 :])
        if not any("$" in each or "`" in each for each in rest):
            yield from _line(rest, word)


def _line(words: Sequence[str], module: str) -> Iterator[Finding]:
    try:
        arguments.parse(words, module=module, python="python3")
    except UsageError as error:
        message, _, hint = str(error).partition("\n")
        message = message.removesuffix(" Write:").rstrip(".")
        yield Finding("E207", ("entrypoint",), message, f"write {hint.strip()}" if hint else None)


def _words(entrypoint: object) -> list[str]:
    if isinstance(entrypoint, list):
        return [str(word) for word in entrypoint]
    if not isinstance(entrypoint, str):
        return []
    text = _DROPPED.sub(lambda match: match[1] or "", entrypoint)
    lexer = shlex.shlex(text, posix=True, punctuation_chars="".join(_PUNCTUATION))
    lexer.whitespace_split = True
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return []  # only the shell knows what such a text means, a here-document for example


def _to_the_end(words: Sequence[str]) -> list[str]:
    end = next((index for index, word in enumerate(words) if word and set(word) <= _PUNCTUATION), len(words))
    if end and words[end : end + 1] and words[end][0] in "<>" and words[end - 1].isdigit():
        end -= 1  # the stream of a redirection: 2>&1
    return list(words[:end])
