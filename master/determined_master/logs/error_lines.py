"""Recognizes lines that report an error, by level or beginning, or because a cause quotes them. Pure."""

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


_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_RANK_PREFIX = re.compile(r"^(?:\[rank[= ]?\d+\]:? ?)?(?:\[default\d+\]:)?")
_LOGGED = re.compile(r"^(?:ERROR|CRITICAL|FATAL):? ?(?:\[\d+\] )?(?:[\w.]+: )?(?=\S)")
"""Prefix of the library's own log lines and of those of Python's default format."""
_SENTENCE_HEAD = 1000
_QUOTED_HEAD = 300
"""Number of characters of a long line that are compared: the cause, which quotes it, is cut."""


def is_error(level: str, text: str) -> bool:
    """Runs for every line."""
    if level in _LEVELS:
        return True
    head = text[:_HEAD]
    # Substring searches cost a tenth of one match, and almost every line ends here.
    return any(word in head for word in _WORDS) and _BEGINS.match(head.rstrip("\r\n")) is not None


def plain(line: str) -> str:
    """Returns a line without colours, the launcher's prefix, and what a progress bar wrote before it."""
    text = _ANSI.sub("", line).rstrip().rpartition("\r")[2]
    return _RANK_PREFIX.sub("", text[:_SENTENCE_HEAD])


def without_prefix(line: str) -> str:
    """Returns the sentence of a plain line: without the names and levels that loggers write before it."""
    return line.removeprefix("determined: ") if line.startswith("determined: ") else _LOGGED.sub("", line)


def quoted_length(cause: str, line: str) -> int:
    """Returns how many characters of a line a sentence about a cause quotes; 0 if it does not quote the line.

    A program that ends by ``sys.exit("text")`` writes a line that does not look like an error: only the cause marks it.

    >>> cause = "attempt 1 of 6 failed: rank 0 on node-a: no data in /data (exit code 1); attempt 2 of 6 follows"
    >>> [quoted_length(cause, line) for line in ("[rank=0] no data in /data", "data", "exit code 1")]
    [16, 0, 0]
    """
    text = without_prefix(plain(line).strip())
    head = text[:_QUOTED_HEAD]
    if not head:
        return 0
    at = cause.find(head)
    while at >= 0:
        after = cause[at + len(head) :]
        begins = at == 0 or cause[:at].endswith(": ")
        if begins and (len(head) < len(text) or after.startswith((" (", "; ", ": ")) or not after):
            return len(head)
        at = cause.find(head, at + 1)
    return 0
