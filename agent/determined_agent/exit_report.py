"""How a container ended, in the words that the master and the user get."""

import json
import signal

from determined.link.messages import ContainerExit, RankExit
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import Ended

_CAUSES = {"out_of_memory": "out of memory", "hang": "no rank had made a step for too long"}


def exit_of(ended: Ended, folder: RunFolder) -> ContainerExit:
    """The exit for the master. The first rank that failed, if one wrote it down, is named in the message."""
    if ended.kind == "stopped":
        return ContainerExit(kind="killed", signal=ended.signal, ranks=_ranks(folder))
    if ended.kind != "exited":
        return ContainerExit(kind=ended.kind, message=ended.message, ranks=_ranks(folder))
    ranks = _ranks(folder)
    return ContainerExit(
        kind="exited", code=ended.code, signal=ended.signal, ranks=ranks, message=_message(ended, ranks)
    )


def _message(ended: Ended, ranks: list[RankExit]) -> str:
    if ended.code == 0:
        return ""
    # The first is the cause: its peers fail for want of it, or are ended for it.
    cause = next((rank for rank in ranks if rank.signal is not None or rank.code not in (0, None)), None)
    if cause is None:
        return f"the container {_how(ended.code, ended.signal)}"
    where = f" on {cause.host}" if cause.host else ""
    why = f", {_CAUSES.get(cause.cause, cause.cause)}" if cause.cause else ""
    text = f"rank {cause.rank}{where} {_how(cause.code, cause.signal)}{why}"
    return "\n".join([text + (":" if cause.last_lines else ""), *cause.last_lines])


def _how(code: int | None, number: int | None) -> str:
    if number is None:
        return f"exited with code {code}"
    try:
        return f"was killed by signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"was killed by signal {number}"


def _ranks(folder: RunFolder) -> list[RankExit]:
    found = []
    for path in folder.exits.glob("rank-*.json"):
        try:
            rank = RankExit.model_validate(json.loads(path.read_text()))
            found.append((rank.time or path.stat().st_mtime, rank))
        except (OSError, ValueError):
            continue  # cut off by the very end that it tells of
    # In the order in which they ended, so that the first failure comes first.
    return [rank for _, rank in sorted(found, key=lambda item: item[0])]
