"""Describes how a container ended, from the exit records of the shim and the ranks.

A task can write anything into the ranks' exit records, so all data read from them is bounded.
"""

import itertools
import logging
import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from determined.context import left_out
from determined.link.messages import ContainerExit, RankExit
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import RunEnd
from determined_agent.environments import installed_library, missing_module
from determined_agent.environments.missing_module import LastOutput
from determined_launch.environment import DEFAULT_RUN_DIR
from determined_launch.regular_files import read_regular

logger = logging.getLogger(__name__)

MAX_ENTRIES = 10_000
MAX_RECORDS = 1024
MAX_RECORD_BYTES = 1 << 20
MAX_NAME_CHARACTERS = 255
MAX_LINES = 50
MAX_LINE_CHARACTERS = 4096
MAX_TEXT_CHARACTERS = 256 << 10
"""Maximum size of the last lines of all ranks, which every report to the master contains."""
MAX_NUMBER = 2**31 - 1

_CAUSES = {"out_of_memory": "out of memory", "hang": "no rank completed a step in time"}


def exit_of(ended: RunEnd, folder: RunFolder) -> ContainerExit:
    """Returns the exit for the master. Its message names the first failed rank if that rank has a record. Blocking."""
    try:
        ranks = _ranks(folder)
    except Exception:
        logger.exception("cannot read the exit records of container %s", folder.path.name)
        ranks = []
    if ended.kind == "stopped":
        return bounded(ContainerExit(kind="killed", signal=ended.signal, ranks=ranks))
    if ended.kind != "exited":
        return bounded(ContainerExit(kind=ended.kind, message=ended.message, ranks=ranks))
    lines = [line for rank in ranks if rank.code for line in rank.last_lines]
    stderr = ""
    if not lines and ended.code != 0:
        lines, stderr = _last_output(folder)
    hint = _hint(ended, lines, folder)
    message = "\n".join(filter(None, (_message(ended, ranks, lines), hint or _advice(ended, lines, folder))))
    return bounded(
        ContainerExit(
            kind="exited",
            code=ended.code,
            signal=ended.signal,
            ranks=ranks,
            message=message,
            last_stderr=stderr,
            hint=hint,
        )
    )


def masked(exit_: ContainerExit, mask: Callable[[str], str]) -> ContainerExit:
    """Returns the exit with each line of the task as ``mask`` shows it."""
    ranks = [
        rank.model_copy(update={"last_lines": list(map(mask, rank.last_lines)), "last_stderr": mask(rank.last_stderr)})
        for rank in exit_.ranks
    ]
    texts = {name: mask(getattr(exit_, name)) for name in ("message", "last_stderr", "hint")}
    return exit_.model_copy(update={**texts, "ranks": ranks})


def log_text(exit_: ContainerExit) -> str:
    """Returns the message for the container's log, without the last lines of output if they are in that log already."""
    first, *lines = exit_.message.split("\n")
    if any(rank.last_lines for rank in exit_.ranks) or exit_.kind != "exited":
        return exit_.message
    return "\n".join(
        [
            first.rstrip(":"),
            *(line for line in lines if line.startswith(missing_module.ADVICE_START) or line == exit_.hint),
        ]
    )


def bounded(exit_: ContainerExit) -> ContainerExit:
    """Returns the exit without anything that a message or a database column cannot hold."""
    return exit_.model_copy(
        update={
            "code": _number(exit_.code),
            "signal": _number(exit_.signal),
            "message": _text(exit_.message, MAX_TEXT_CHARACTERS),
            "ranks": _bounded_ranks(exit_.ranks),
            "last_stderr": _text(exit_.last_stderr, MAX_LINE_CHARACTERS),
            "hint": _text(exit_.hint, MAX_LINE_CHARACTERS),
        }
    )


def _bounded_ranks(ranks: Iterable[RankExit]) -> list[RankExit]:
    shortened = []
    left = MAX_TEXT_CHARACTERS
    for rank in itertools.islice(ranks, MAX_RECORDS):
        lines = [_text(line, MAX_LINE_CHARACTERS) for line in rank.last_lines[-MAX_LINES:]]
        stderr = _text(rank.last_stderr, MAX_LINE_CHARACTERS)
        left -= sum(map(len, lines)) + len(stderr)
        values = {
            "rank": _number(rank.rank) or 0,
            "code": _number(rank.code),
            "signal": _number(rank.signal),
            "host": _text(rank.host, MAX_NAME_CHARACTERS),
            "cause": _text(rank.cause, MAX_NAME_CHARACTERS),
            "last_lines": lines if left >= 0 else [],
            "last_stderr": stderr if left >= 0 else "",
            "time": rank.time if math.isfinite(rank.time) else 0.0,
        }
        shortened.append(rank.model_copy(update=values))
    return shortened


def _number(value: int | None) -> int | None:
    return value if value is not None and abs(value) <= MAX_NUMBER else None


def _text(text: str, limit: int) -> str:
    # JSON cannot contain a lone surrogate.
    return text[:limit].encode("utf-8", "replace").decode("utf-8")


def _last_output(folder: RunFolder) -> LastOutput:
    try:
        return missing_module.last_output(folder)
    except OSError as problem:
        logger.info("cannot read the last log lines of container %s: %s", folder.path.name, problem)
        return LastOutput([])


def _message(ended: RunEnd, ranks: list[RankExit], output: list[str]) -> str:
    if ended.code == 0:
        return ""
    # The first failure is the cause: the other ranks fail without it or are ended.
    cause = next((rank for rank in ranks if rank.signal is not None or rank.code not in (0, None)), None)
    if cause is None:
        why = f", {_CAUSES.get(ended.cause, ended.cause)}" if ended.cause else ""
        text = f"the process {_how(ended.code, ended.signal)}{why}"
        lines = [_text(line, MAX_LINE_CHARACTERS) for line in output[-MAX_LINES:]]
        return "\n".join([text + (":" if lines else ""), *lines])
    where = f" on {cause.host}" if cause.host else ""
    known = cause.cause or ended.cause
    why = f", {_CAUSES.get(known, known)}" if known else ""
    text = f"rank {cause.rank}{where} {_how(cause.code, cause.signal)}{why}"
    return "\n".join([text + (":" if cause.last_lines else ""), *cause.last_lines])


def _advice(ended: RunEnd, lines: list[str], folder: RunFolder) -> str:
    if ended.code in (0, None):
        return ""
    try:
        return missing_module.advice(lines, folder.workdir)
    except OSError as problem:
        logger.info("cannot read the work folder of container %s: %s", folder.path.name, problem)
        return ""


def _hint(ended: RunEnd, lines: list[str], folder: RunFolder) -> str:
    """Returns why a file that the task missed is not there, or a checkpoint unreadable; empty if that is not known."""
    if ended.code in (0, None):
        return ""
    try:
        ignored = read_regular(folder.ignored, MAX_RECORD_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        ignored = ""
    except OSError as problem:
        logger.info("cannot read the ignored paths of container %s: %s", folder.path.name, problem)
        return ""
    workdir = folder.workdir
    # A task that sees its run folder elsewhere names its files there.
    own = [line.replace(f"{DEFAULT_RUN_DIR}/workdir/", f"{workdir}/") for line in lines]
    return left_out.explain(own, workdir, ignored) or installed_library.explain_failure(lines)


def _how(code: int | None, number: int | None) -> str:
    if number is None:
        return f"exited with code {code}"
    try:
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"was killed by signal {number}"


def _ranks(folder: RunFolder) -> list[RankExit]:
    """Returns the ranks in the order in which they ended, so that the first failure comes first."""
    ranks = []
    for path in itertools.islice(_records(folder.exits), MAX_RECORDS):
        try:
            rank = RankExit.model_validate_json(read_regular(path, MAX_RECORD_BYTES, owner=folder.owner))
            time = rank.time if rank.time and math.isfinite(rank.time) else path.stat().st_mtime
        except (OSError, ValueError) as problem:
            # A record may be cut off by the end of the rank, or be no record at all.
            logger.info("skipped an exit record: %s: %s", path.name, str(problem)[:200])
            continue
        ranks.append((time, rank))
    return _bounded_ranks(rank for _, rank in sorted(ranks, key=lambda item: item[0]))


def _records(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, MAX_ENTRIES)]
    except OSError:
        return
    yield from (folder / name for name in sorted(names) if fnmatch(name, "rank-*.json"))
