"""Splits a command for bash into its words as they are written: quotes, variables and escapes stay in them."""

from collections.abc import Iterator

from determined.errors import ConfigError

CONTROL = ("&&", "||", "|&", "|", ";", "&")
"""Operators that end a simple command."""
_REDIRECTIONS = ("&>", ">|")
"""Redirections that contain such an operator."""


def split(command: str) -> list[str]:
    """Returns the words of a command; a comment is one word. Raises ConfigError for a quote without its end.

    >>> split('python a.py "a b" ${X} && echo done')
    ['python', 'a.py', '"a b"', '${X}', '&&', 'echo', 'done']
    """
    return list(_words(command))


def _words(command: str) -> Iterator[str]:
    word, index = "", 0
    while index < len(command):
        is_comment = not word and command[index] == "#"
        piece = command[index:].partition("\n")[0] if is_comment else _piece(command, index)
        index += len(piece)
        if piece.isspace():
            if word:
                yield word
            word = ""
        elif piece in CONTROL and not (piece == "&" and word.endswith((">", "<"))):
            if word:
                yield word
            yield piece
            word = ""
        else:
            word += piece
    if word:
        yield word


def _piece(command: str, index: int) -> str:
    """Returns the next character, or what belongs together: a quoted text, an escape, a substitution, an operator."""
    first = command[index]
    if first == "\\":
        return command[index : index + 2]
    if first == "'":
        return command[index : _end(command, command.find("'", index + 1), first)]
    if first == '"':
        return command[index : _end(command, _double_quote(command, index + 1), first)]
    if first == "`":
        return command[index : _end(command, _unescaped(command, index + 1, first), first)]
    if command.startswith("$'", index):
        return command[index : _end(command, _unescaped(command, index + 2, "'"), "'")]
    if command.startswith(("$(", "${", "<(", ">("), index):
        return command[index : _closed(command, index + 1)]
    if command.startswith(_REDIRECTIONS, index):
        return command[index : index + 2]
    return next((operator for operator in CONTROL if command.startswith(operator, index)), first)


def _double_quote(command: str, start: int) -> int:
    """Returns the index of the next double quote that is not in a substitution, -1 if there is none."""
    index = start
    while index < len(command):
        if command[index] == '"':
            return index
        if command[index] == "\\":
            index += 2
        elif command.startswith(("$(", "${"), index):
            index = _closed(command, index + 1)
        elif command[index] == "`":
            index = _end(command, _unescaped(command, index + 1, "`"), "`")
        else:
            index += 1
    return -1


def _unescaped(command: str, start: int, quote: str) -> int:
    index = start
    while index < len(command):
        if command[index] == "\\":
            index += 1
        elif command[index] == quote:
            return index
        index += 1
    return -1


def _closed(command: str, start: int) -> int:
    """Returns the index behind the bracket that closes the one at ``start``."""
    opening, closing = command[start], {"(": ")", "{": "}"}[command[start]]
    depth, index = 0, start
    while index < len(command):
        piece = command[index] if command[index] in (opening, closing) else _piece(command, index)
        depth += (piece == opening) - (piece == closing)
        index += len(piece)
        if depth == 0:
            return index
    raise ConfigError(f"the command has a {opening} without {closing}: {command[start - 1 :][:60]}")


def _end(command: str, index: int, quote: str) -> int:
    if index < 0:
        raise ConfigError(f"the command has a quote {quote} without its end: {command[:60]}")
    return index + 1
