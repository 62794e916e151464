"""Composes one sentence about the cause of an attempt's failure. Pure."""

import re
import signal
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from determined.config.masking import MASK
from determined.link.messages import ContainerExit, RankExit
from determined.states import ExitReason
from determined_master.allocations import error_sentence
from determined_master.allocations.observe import first_failed, has_failed

MAX_CHARACTERS = 500
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
"""Would act in a terminal or a page, and not show: control characters and turns of writing direction."""
_CAUSES = {"out_of_memory": "out of memory", "hang": "no rank completed a step in time"}
_SIGNALS: dict[int, tuple[str, str]] = {
    signal.SIGABRT: ("aborted", "aborted itself"),
    signal.SIGKILL: ("", "was killed by"),
    signal.SIGSEGV: ("segmentation fault", "had a segmentation fault"),
    signal.SIGTERM: ("", "was terminated by"),
}
"""Signals of which exit codes 134, 137, 139 and 143 tell, in parentheses and as a verb."""
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


def _of_worker(ends: Sequence[ContainerEnd]) -> str:
    failed = first_failed([end.exit for end in ends])
    if failed is None:
        return ""
    if failed.kind == "failed_to_start":
        return failed.message.split("\n")[0]
    agent_id = next(end.agent_id for end in ends if end.exit is failed)
    rank = next((each for each in failed.ranks if has_failed(each)), None)
    where = _where(rank, agent_id, is_alone=len(ends) == 1)
    lines = rank.last_lines if rank else failed.message.split("\n")[1:]
    error = error_sentence.find(lines, (rank or failed).last_stderr)
    cause = _CAUSES.get(rank.cause, rank.cause) if rank else ""
    what = ": ".join(part for part in (cause, error.text) if part)
    code = (rank or failed).code if error.code is None else error.code
    how, verb = _how(code, (rank or failed).signal if error.code is None else None)
    if not what:
        return f"{where or 'the process'} {verb}"
    behind = ", ".join(part for part in (error.place, how) if part)
    hint = f"; {failed.hint}" if failed.hint else ""
    return f"{where}: {what} ({behind}){hint}" if where else f"{what} ({behind}){hint}"


def _where(rank: RankExit | None, agent_id: str, *, is_alone: bool) -> str:
    if rank is not None:
        return f"rank {rank.rank} on {rank.host or agent_id}"
    return "" if is_alone else f"the process on {agent_id}"


def _how(code: int | None, number: int | None) -> tuple[str, str]:
    """The cause in parentheses, and as a verb. A shell's exit code of 128 + N stands for signal N."""
    if number is None and code is not None and code - 128 in _SIGNALS:
        number = code - 128
    if number is None and code is not None and code < 0:
        number = -code
    if number is None:
        return f"exit code {code}", f"exited with code {code}"
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"signal {number}", f"was killed by signal {number}"
    words, verb = _SIGNALS.get(number, ("", "was killed by"))
    named = f"signal {number}, {name}"
    if words:
        return f"{words}, {named}", f"{verb} ({named})"
    return named, f"{verb} signal {number} ({name})"


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
