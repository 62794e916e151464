"""Counts the lines of a log: once, then only new ones, because lines are never changed."""

from determined_master.db.session import ReadSession
from determined_master.logs import log_queries
from determined_master.logs.log_queries import Extent

MAX_TASKS = 1000


class LineCounts:
    """Cache of one master, in memory: counting a million lines takes longer than loading a page."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}
        """Task → number of lines up to an id."""

    async def of(self, session: ReadSession, task_id: str, last_id: int | None) -> int:
        """Returns the number of lines. ``last_id``: newest line in this session's view; None without lines."""
        if last_id is None:
            self._known.pop(task_id, None)
            return 0
        count, until = self._known.get(task_id, (0, 0))
        if until != last_id:
            count += await log_queries.count(session, task_id, until, last_id)
            if len(self._known) >= MAX_TASKS:
                self._known.clear()
            self._known[task_id] = count, last_id
        return count

    async def number(self, session: ReadSession, task_id: str, extent: Extent, line_id: int) -> int:
        """Returns how many lines the log has up to this one. Counts from the nearer end."""
        if extent.first_id is None or extent.last_id is None:
            return 0
        if line_id - extent.first_id < extent.last_id - line_id:
            return await log_queries.count(session, task_id, extent.first_id - 1, line_id)
        after = await log_queries.count(session, task_id, line_id, extent.last_id)
        return await self.of(session, task_id, extent.last_id) - after
