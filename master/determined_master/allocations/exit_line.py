"""The last line of an attempt in the log of its task: tools made for Determined search for its sentences."""

from collections.abc import Sequence

from determined.link.messages import ContainerExit
from determined.states import ExitReason
from determined_master.allocations import environment_wait_repository, repository
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ContainerRow
from determined_master.db.session import WriteSession
from determined_master.logs import repository as logs

ENDED_WELL = "resources exited successfully with a zero exit code"
FAILED = "resources failed with non-zero exit code"
CANNOT_START = "request unfulfillable"
"""Begins or ends a sentence about a request for more slots than there are."""
NOT_RETRIED = "trial failed and matched logs to a don't retry policy"


def exit_line(reason: ExitReason, code: int | None, exits: Sequence[ContainerExit]) -> str | None:
    """Returns how the containers of an attempt exited; None if no exit code is known, as of a lost agent.

    >>> exit_line(ExitReason.ERRORED, 3, [ContainerExit(kind="exited", code=3)])
    'resources failed with non-zero exit code: 3'
    >>> exit_line(ExitReason.KILLED, None, [ContainerExit(kind="killed")])
    'resources failed with non-zero exit code: killed'
    """
    if code is not None:
        return f"{FAILED}: {code}" if code else ENDED_WELL
    if reason is ExitReason.KILLED and any(each.kind == "killed" for each in exits):
        codes = (128 + each.signal if each.signal else each.code for each in exits)
        return f"{FAILED}: {next((each for each in codes if each), 'killed')}"
    return None


async def write(session: WriteSession, clock: Clock, ended: AllocationRow, containers: Sequence[ContainerRow]) -> None:
    """Writes the line once all output of the attempt is stored, so that nothing follows it. The attempt is settled."""
    if not all(each.output_done for each in containers):
        return
    reason = ended.exit_reason or ExitReason.SYSTEM
    exits = [ContainerExit.model_validate(each.exit) for each in containers if each.exit]
    text = exit_line(reason, ended.exit_code, exits)
    if reason is ExitReason.KILLED and await environment_wait_repository.is_released(session, ended.id):
        return  # no end for its user, who reads what it waits for
    if text is not None:
        # No error line: the line about the attempt before it names the cause, and the page shows the last error.
        await logs.say(session, ended.task_id, ended.id, text, clock.now(), "INFO")


async def write_after_output(session: WriteSession, clock: Clock, row: AllocationRow) -> None:
    """Writes the line where the last output has come after the attempt was settled."""
    if row.settled:
        await write(session, clock, row, await repository.containers_of(session, row.id))
