"""Stores log lines in bulk: output of agents by offset, so that no line is lost or duplicated."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from determined.errors import ApiError, NotFound
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.session import ReadSession, WriteSession
from determined_master.logs import repository
from determined_master.logs.error_lines import is_error
from determined_master.logs.line import LogLine
from determined_master.logs.policy_scan import PolicyScan

QUICK_LINES, QUICK_CHARACTERS = 16, 4096


@dataclass(frozen=True, slots=True)
class Lines:
    """``container_id`` None: lines without offsets (a task's own shipper). Else bytes ``start`` to ``end`` of its
    output."""

    task_id: str
    lines: Sequence[LogLine]
    agent_id: str | None = None
    container_id: str | None = None
    start: int = 0
    end: int = 0


class LogStore:
    """Implements the group-commit writer's Store. Answers the committed offset. The lines that match a log policy are
    recorded in the same transaction."""

    def __init__(self, clock: Clock) -> None:
        self._scan = PolicyScan(clock)

    async def prepare(self, session: ReadSession, operations: Sequence[Lines]) -> Callable[[], None]:
        return await self._scan.searches(session, [o.lines for o in operations])

    def apply(self, connection: Connection, operations: Sequence[Lines]) -> list[int | ApiError]:
        return [self._take(connection, one) for one in operations]

    def is_quick(self, operations: Sequence[Lines]) -> bool:
        """Returns True for little text: the patterns of log policies are searched for in time linear in it."""
        lines = [line for one in operations for line in one.lines[: QUICK_LINES + 1]]
        return len(lines) <= QUICK_LINES and sum(len(line.log) for line in lines) <= QUICK_CHARACTERS

    def rolled_back(self) -> None:
        self._scan.forget()

    def topics(self, operations: Sequence[Lines]) -> set[str]:
        return {notifications.logs(one.task_id) for one in operations} | self._scan.take_topics()

    def _take(self, connection: Connection, batch: Lines) -> int | ApiError:
        if batch.container_id is not None:
            committed = repository.stored_bytes(connection, batch.container_id, batch.agent_id)
            if committed is None:
                return NotFound(f"container {batch.container_id} does not belong to agent {batch.agent_id}")
            if committed != batch.start:
                return committed
            repository.advance_offset(connection, batch.container_id, batch.end)
        added = self._scan.lines_after(connection, batch.lines)
        repository.insert_lines(connection, _rows((*batch.lines, *added)))
        return batch.end

    async def store_last(self, session: WriteSession, batch: Lines) -> bool:
        """Stores the last output of a container in the transaction of its end; its offset is the caller's to store.

        Returns False, and stores nothing, if there is much of it or a line may match a log policy: that is for
        ``apply``.
        """
        if not self.is_quick([batch]) or await self._scan.may_match(session, batch.lines):
            return False
        await repository.add_lines(session, _rows(batch.lines))
        return True


def _rows(lines: Sequence[LogLine]) -> list[dict[str, Any]]:
    return [line.values() | {"is_error": is_error(line.level, line.log)} for line in lines]
