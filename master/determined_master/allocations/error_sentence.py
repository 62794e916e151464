"""Finds the sentence about the cause in the last lines of a task's output. Pure; each shown cause comes from it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from determined_master.logs.error_lines import is_error, plain, without_prefix

_TRACEBACK = "Traceback (most recent call last)"
_GROUP = re.compile(r"\s*\+ Exception Group Traceback \(most recent call last\)")
_GROUP_LINE = re.compile(r"^\s*(?:\||\+-\+?-*|\+) ?")
_DIVIDER = re.compile(r"^\s*\+-")
_FRAME = re.compile(r'^\s*File "(.+?)", line (\d+)')
_EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?")
_LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages|lib/python3[^/]*|determined|determined_launch)/|^<")
_WORKDIR = "/workdir/"
_SHELL = re.compile(
    r"(?:\S+: )?(?:\S+: line \d+: |\S*sh: (?:\d+: |line \d+: )?)"
    r".*(?:not found|No such file or directory|Permission denied|cannot execute.*|unbound variable|[Ss]yntax error.*"
    r"|parameter (?:not set|null or not set)|Exec format error|Is a directory|bad substitution|Argument list too long)"
)
_SENTENCES = re.compile(
    # argparse, and each tool that reports as it does
    r"[^\s:]+(?: [^\s:]+){0,3}: (?:error|fatal error): .+"
    r"|(?:fatal|Fatal error|Error): .+"
    # Python itself
    r"|\S*python[\d.]*: (?:can't open file|No module named|No code object|Error while finding) ?.*"
    # our own programs
    r"|determined: (?!entrypoint |legacy_launcher: ).+"
    r"|determined\.launch\.\w+: .+"
    r"|cannot start '.+': .+"
    r"|ERROR: .+"
    r"|Fatal Python error: .+|terminate called after throwing .+"
)
_COMMAND_STARTS = re.compile(r"START   \S")
_COMMAND_FAILED = re.compile(r"FAIL {4}(?P<name>\S.*?): exit code (?P<code>-?\d+)")
_HOOK_FAILED = re.compile(r"ERROR: (\S+), line (\d+): exit code \d+")
"""What the agent prints below the output of a start-up hook that failed."""
_NO_CAUSE = re.compile(
    r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING)\b|Warning\b|\d%\||it/s|s/it|^\[?[IWD]\d{4} |^wandb: "
    r"|^\w+ metrics after \d+ steps: |HYDRA_FULL_ERROR|^(?:For further information|See |Try |Use )"
)
"""Marks lines on standard error that report progress or give advice."""


@dataclass(frozen=True)
class ErrorSentence:
    """``place``: file and line of the user's code, or empty. ``code``: exit code of the command that failed, if it is
    not that of the process."""

    text: str = ""
    place: str = ""
    code: int | None = None


def find(lines: Sequence[str], last_stderr: str = "") -> ErrorSentence:
    """Returns the cause that the last lines of a failed process name; without text if they name none.

    The last traceback comes first, then the last line in the form of an error (argparse, a shell, Python, our own
    programs), then ``last_stderr``, its last line on standard error, which ``sys.exit("text")`` writes.

    >>> find(["usage: train.py [-h] --lr LR", "train.py: error: the following arguments are required: --lr"]).text
    'train.py: error: the following arguments are required: --lr'
    >>> find(["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "KeyError: 'x'"])
    ErrorSentence(text="KeyError: 'x'", place='train.py:3', code=None)
    """
    texts = [plain(line) for line in lines]
    failed = next((at for at in reversed(range(len(texts))) if _COMMAND_FAILED.fullmatch(texts[at])), None)
    if failed is not None:
        # Its own last lines may arrive later: they take another stream.
        return _of_command([*texts[:failed], *texts[failed + 1 :]], texts[failed])
    return _of_traceback(texts) or _of_sentence(texts) or _of_stderr(plain(last_stderr)) or _of_error_line(texts)


def _of_command(others: Sequence[str], line: str) -> ErrorSentence:
    """Returns the cause of a failed command of a grid: its own output names it."""
    match = _COMMAND_FAILED.fullmatch(line)
    assert match is not None
    start = next((at for at in reversed(range(len(others))) if _COMMAND_STARTS.match(others[at])), -1)
    own = others[start + 1 :]
    last = next((each for each in reversed(own) if each and not _NO_CAUSE.search(each[:200])), "")
    inner = find(own, last)
    text = f"command {match['name']}: {inner.text}" if inner.text else f"command {match['name']} failed"
    return replace(inner, text=text, code=int(match["code"]))


def _of_traceback(lines: Sequence[str]) -> ErrorSentence | None:
    starts = [at for at, line in enumerate(lines) if line.startswith(_TRACEBACK) or _GROUP.match(line)]
    if not starts:
        return None
    after = lines[starts[-1] + 1 :]
    if _GROUP.match(lines[starts[-1]]):
        return _of_group(after)
    at = next((at for at, line in enumerate(after) if line and not line[0].isspace()), None)
    if at is None:
        return None
    return ErrorSentence(after[at], _place(after[:at]))


def _of_group(after: Sequence[str]) -> ErrorSentence | None:
    """Returns the message of an exception group, and those of its exceptions, which say what happened."""
    end = next((at for at, line in enumerate(after) if _DIVIDER.match(line)), len(after))
    frames = [_GROUP_LINE.sub("", line, count=1) for line in after[:end]]
    top = next((line for line in frames if line and not line[0].isspace()), "")
    if not top:
        return None
    inner = [_GROUP_LINE.sub("", line, count=1) for line in after[end:] if "|" in line and not _DIVIDER.match(line)]
    causes = [line for line in inner if _EXCEPTION.fullmatch(line) and "sub-exception" not in line]
    return ErrorSentence(": ".join(filter(None, (top, "; ".join(causes)))), _place([*frames, *inner]))


def _place(frames: Sequence[str]) -> str:
    """Returns the last place in the user's own code, relative to the working folder."""
    for line in reversed(frames):
        match = _FRAME.match(line)
        if match is None:
            continue
        path = match[1].rpartition(_WORKDIR)[2]
        if _WORKDIR in match[1] or not _LIBRARY.search(path):
            return f"{path}:{match[2]}"
    return ""


def _of_sentence(lines: Sequence[str]) -> ErrorSentence | None:
    for at in reversed(range(len(lines))):
        line = lines[at]
        if _EXCEPTION.fullmatch(line):
            return ErrorSentence(line, _place(_indented_before(lines, at)))
        if hook := _HOOK_FAILED.fullmatch(line):
            before = _of_sentence(lines[:at])
            return replace(before, place="" if "line" in before.text else f"{hook[1]}:{hook[2]}") if before else None
        if _SENTENCES.fullmatch(line) or _SHELL.fullmatch(line):
            return ErrorSentence(without_prefix(line))
    return None


def _indented_before(lines: Sequence[str], end: int) -> Sequence[str]:
    start = end
    while start and lines[start - 1][:1].isspace():
        start -= 1
    return lines[start:end]


def _of_stderr(line: str) -> ErrorSentence | None:
    text = line.strip()
    return ErrorSentence(without_prefix(text)) if text and not _NO_CAUSE.search(text[:200]) else None


def _of_error_line(lines: Sequence[str]) -> ErrorSentence:
    errors = [line.strip() for line in lines if is_error("", line)]
    return ErrorSentence(without_prefix(errors[-1]) if errors else "")
