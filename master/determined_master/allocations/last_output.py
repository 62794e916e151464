"""Output that agents send together with the end of their containers."""

from collections.abc import Sequence
from typing import Any

from determined_master.db.models import ContainerRow
from determined_master.db.session import WriteSession
from determined_master.logs.store import Lines, LogStore


class LastOutput:
    """The last output of the containers of one report, which is stored in the transaction of their end."""

    def __init__(self, logs: LogStore, batches: Sequence[Lines]) -> None:
        self._logs = logs
        self._batches = {batch.container_id: batch for batch in batches}
        self.stored: dict[str, int] = {}
        """For each container that has ended: the offset up to which its output is stored, as the answer to its
        agent."""

    async def store(self, session: WriteSession, container: ContainerRow) -> dict[str, Any]:
        """Stores the last output of a container that ends. Returns the columns of its row that this changes: none if
        its agent is to send the output by itself."""
        batch = self._batches.get(container.id)
        if batch is None:
            return {}
        stored = container.output_offset
        if stored == batch.start and await self._logs.store_last(session, batch):
            stored = batch.end
        self.stored[container.id] = stored
        return {"output_offset": stored, "output_done": True} if stored == batch.end else {}
