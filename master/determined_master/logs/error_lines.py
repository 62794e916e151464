"""Recognizes lines that report an error, by level or beginning. Pure; runs for every line."""

import re

_LEVELS = ("ERROR", "CRITICAL")
_HEAD = 300
"""Number of characters that are examined: a line may have millions."""
_WORDS = (
    "Traceback (",
    "Error",
    "Exception",
    "Interrupt",
    "Segmentation fault",
    "terminate called",
    ": error: ",
    "not found",
    "cannot start '",
)
_COLOUR = r"(?:\x1b\[[0-9;]*m)*"
_BEGINS = re.compile(
    rf"{_COLOUR}(?:\[rank=?\d+\]:?\s{{0,4}})?(?:\[default\d+\]:)?{_COLOUR}(?:"
    r"(?:\s{0,9}\+ Exception Group )?Traceback \(most recent call last\)"
    r"|Fatal Python error: "
    r"|Segmentation fault"
    r"|terminate called after throwing"
    # The last line of a traceback: a dotted name of an exception, and its message.
    r"|(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt)(?::\s|$)"
    r"|(?:Error|Exception): "
    # argparse and compilers
    r"|[^\s:]{1,120}: error: "
    # shells
    r"|[^\s:]{1,120}: (?:line )?\d+: .{1,200}: (?:command )?not found$"
    r"|cannot start '.{1,200}': "
    r")"
)


def is_error(level: str, text: str) -> bool:
    if level in _LEVELS:
        return True
    head = text[:_HEAD]
    # Substring searches cost a tenth of one match, and almost every line ends here.
    return any(word in head for word in _WORDS) and _BEGINS.match(head.rstrip("\r\n")) is not None
