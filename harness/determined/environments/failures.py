"""Says in one sentence why an installer failed: which requirement, in which line, and the installer's own reason."""

import re
from collections.abc import Sequence

from determined.environments.inputs import Requirement, canonical

_COLOR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FULL = re.compile(r"No space left on device|Disk quota exceeded|os error 28|os error 122", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"connection broken by|error sending request|failed to fetch|dns error|Temporary failure in name resolution"
    r"|Connection refused|Read timed out|Max retries exceeded|ConnectTimeout|ConnectionError",
    re.IGNORECASE,
)
_REASONS = tuple(
    re.compile(pattern)
    for pattern in (
        r"No matching distribution found for",
        r"Could not find a version that satisfies",
        r"Cannot install .* because",
        r"Invalid requirement",
        r"Couldn't parse requirement|Failed to parse",
        r"requires a different Python|requires-python",
        r"DO NOT MATCH THE HASHES",
        r"we can conclude|are incompatible|unsatisfiable",
        r"Failed (?:building|to build)|metadata-generation-failed|build_wheel",
    )
)
_ERROR = re.compile(r"^(?:ERROR|error|×|✘)")
_COLLECTING = re.compile(r"^\s*(?:Collecting|Building wheel for|Downloading)\s+([A-Za-z0-9][A-Za-z0-9._-]*)")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MAX_LENGTH = 400


def explain(lines: Sequence[str], wanted: Sequence[Requirement]) -> str:
    """Returns the sentence for the output of an installer that failed.

    Parameters:
        lines: its output.
        wanted: the requirements that it was to install.

    Example:
        >>> numpy = Requirement("numpy", "numpy==99", "requirements.txt", 3)
        >>> explain(["ERROR: No matching distribution found for numpy==99"], [numpy])
        'requirements.txt:3: "numpy==99": No matching distribution found for numpy==99'
    """
    shown = _unwrapped([_COLOR.sub("", line) for line in lines])
    full = next((line for line in shown if _FULL.search(line)), None)
    if full is not None:
        return f"the disk is full: {_short(full)}"
    silent = next((line for line in shown if _NO_ANSWER.search(line)), None)
    if silent is not None:
        return f"the package index did not answer: {_address(silent, shown)}"
    reason = _reason(shown)
    culprit = _named(reason, wanted) or _last_collected(shown, wanted)
    return f"{culprit}: {_short(reason)}" if culprit else _short(reason)


def _address(line: str, lines: Sequence[str]) -> str:
    """Returns address and reason from the words of pip and urllib3, else the line itself."""
    reason = re.search(r"[A-Z][a-z]+ (?:timed out|refused|aborted|reset)|[A-Z][a-z ]+ in name resolution", line)
    place = re.search(r"host='([^']+)', port=([0-9]+)", line)
    index = re.search(r"^Looking in indexes: https?://(?:[^@/\s]*@)?([^/,\s]+)", "\n".join(lines), re.MULTILINE)
    where = f"{place[1]}:{place[2]}" if place else index and index[1]
    return f"{where}: {reason[0]}" if where and reason else _short(line)


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Joins the lines that uv wraps below its arrow."""
    messages: list[str] = []
    is_open = False
    for line in lines:
        if is_open and line.startswith("      ") and line.strip():
            messages[-1] += f" {line.strip()}"
            continue
        is_open = "╰─▶" in line
        messages.append(line)
    return messages


def _reason(lines: Sequence[str]) -> str:
    for pattern in _REASONS:
        found = next((line for line in lines if pattern.search(line)), None)
        if found is not None:
            return found
    errors = [line for line in lines if _ERROR.match(line.strip())]
    rest = [line for line in lines if line.strip()]
    return (errors or rest or ["the installer failed without a word"])[-1]


def _named(text: str, wanted: Sequence[Requirement]) -> Requirement | None:
    by_name = {each.name: each for each in reversed(wanted)}
    words = (canonical(word.rstrip(".-_")) for word in _WORD.findall(text))
    return next((by_name[word] for word in words if word in by_name), None)


def _last_collected(lines: Sequence[str], wanted: Sequence[Requirement]) -> Requirement | None:
    for line in reversed(lines):
        found = _COLLECTING.match(line)
        if found is not None:
            return _named(re.split(r"[<>=!~\[; ]", found[1])[0], wanted)
    return None


def _short(line: str) -> str:
    text = re.sub(r"^\s*(?:ERROR:|error:|cause:|WARNING:|×|╰─▶|✘)\s*", "", line.strip()).strip()
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
