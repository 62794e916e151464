"""Composes one sentence about the cause of an attempt's failure. Pure."""

import re
import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from determined.config.masking import MASK
from determined.link.messages import ContainerExit, RankExit
from determined.states import ExitReason
from determined_master.allocations.observe import first_failed, has_failed
from determined_master.logs.error_lines import is_error

MAX_CHARACTERS = 500
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Would act in a terminal or a page, and not show: control characters and turns of writing direction."""
_TRACEBACK = "Traceback (most recent call last)"
_RANK_PREFIX = re.compile(r"^\[rank[= ]?\d+\]:? ?")
_EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?")
_CAUSES = {"out_of_memory": "out of memory", "hang": "no rank completed a step in time"}
_NO_FAILURES = frozenset(
    {
        ExitReason.COMPLETED,
        ExitReason.PREEMPTED,
        ExitReason.KILLED,
        ExitReason.USER_CANCELED,
        ExitReason.SEARCHER_STOPPED,
    }
)


@dataclass(frozen=True)
class ContainerEnd:
    """How the container on one agent ended."""

    agent_id: str
    exit: ContainerExit


def is_failure(reason: ExitReason) -> bool:
    """Returns False for an end that was requested, or that completed the work."""
    return reason not in _NO_FAILURES


def cause_of(
    reason: ExitReason, message: str, ends: Sequence[ContainerEnd], secrets: Collection[str] = ()
) -> str | None:
    """Returns why an attempt failed, in one line of at most MAX_CHARACTERS; None if it did not fail.

    ``message`` is the allocation's: the scheduler's sentence, or the agent's. ``secrets`` are masked.

    >>> failed = ContainerExit(kind="exited", code=1, ranks=[RankExit(rank=3, code=1, host="node-2",
    ...     last_lines=["ValueError: bad shape"])])
    >>> cause_of(ExitReason.ERRORED, "", [ContainerEnd("node-2", failed)])
    'rank 3 on node-2: ValueError: bad shape (exit code 1)'
    """
    if not is_failure(reason):
        return None
    if reason is ExitReason.INVALID_HP:
        return "the trial reported invalid hyperparameters"
    found = (_of_worker(ends) if reason is ExitReason.ERRORED else "") or message.split("\n")[0].rstrip(":")
    return _shown(found or reason.phrase, secrets)


def last_error(lines: Sequence[str]) -> str:
    """Returns the line that names the error: of the last traceback, else the last exception, else the last error.

    >>> last_error(["[rank0]: Traceback (most recent call last):", "[rank0]:   File ...", "[rank0]: KeyError: 'x'"])
    "KeyError: 'x'"
    """
    plain = [_RANK_PREFIX.sub("", line).rstrip() for line in lines]
    starts = [index for index, line in enumerate(plain) if line.startswith(_TRACEBACK)]
    after = plain[starts[-1] + 1 :] if starts else []
    raised = next((line for line in after if line and not line[0].isspace()), "")
    if raised:
        return raised
    exceptions = [line for line in plain if _EXCEPTION.fullmatch(line)]
    errors = [line.strip() for line in plain if is_error("", line)]
    return (exceptions or errors or [""])[-1]


def _of_worker(ends: Sequence[ContainerEnd]) -> str:
    failed = first_failed([end.exit for end in ends])
    if failed is None:
        return ""
    if failed.kind == "failed_to_start":
        return failed.message.split("\n")[0]
    agent_id = next(end.agent_id for end in ends if end.exit is failed)
    rank = next((each for each in failed.ranks if has_failed(each)), None)
    where = _where(rank, agent_id, is_alone=len(ends) == 1)
    error = last_error(rank.last_lines if rank else failed.message.split("\n")[1:])
    cause = _CAUSES.get(rank.cause, rank.cause) if rank else ""
    what = ": ".join(part for part in (cause, error) if part)
    how, verb = _how(rank or failed)
    if not what:
        return f"{where or 'the container'} {verb}"
    return f"{where}: {what} ({how})" if where else f"{what} ({how})"


def _where(rank: RankExit | None, agent_id: str, *, is_alone: bool) -> str:
    if rank is not None:
        return f"rank {rank.rank} on {rank.host or agent_id}"
    return "" if is_alone else f"the container on {agent_id}"


def _how(end: RankExit | ContainerExit) -> tuple[str, str]:
    """The cause in parentheses, and as a verb."""
    if end.signal is None:
        return f"exit code {end.code}", f"exited with code {end.code}"
    try:
        name = signal.Signals(end.signal).name
    except ValueError:
        return f"signal {end.signal}", f"was killed by signal {end.signal}"
    return f"signal {end.signal}, {name}", f"was killed by signal {end.signal} ({name})"


def _sign(found: re.Match[str]) -> str:
    """U+2400 for NUL, U+2401 for the next, and so on; U+FFFD for what has no sign."""
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\ufffd"


def masked(text: str, secrets: Collection[str]) -> str:
    """Returns a text in one line, without secrets and without what would act in a terminal."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return _CONTROL.sub(_sign, " ".join(text.splitlines()).strip())


def _shown(text: str, secrets: Collection[str]) -> str:
    text = masked(text, secrets)
    return text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…"
