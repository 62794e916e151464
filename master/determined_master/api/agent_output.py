"""The output of containers as agents send it."""

import math
from datetime import UTC, datetime

from determined.link.messages import OutputBatch
from determined_master.api.schemas.enums import plain_level
from determined_master.db.models.base import EARLIEST, LATEST
from determined_master.db.statements.nul import NUL, SYMBOL
from determined_master.logs.line import LogLine
from determined_master.logs.store import Lines

_EARLIEST_SECONDS, _LATEST_SECONDS = EARLIEST.timestamp(), LATEST.timestamp()


def lines_of(agent_id: str, batch: OutputBatch) -> Lines:
    """Returns the lines of a batch that the agent sent."""
    lines = [
        LogLine(
            task_id=batch.task_id,
            log=line.log.replace(NUL, SYMBOL),
            timestamp=_agents_time(line.timestamp),
            level=plain_level(line.level),
            allocation_id=batch.allocation_id,
            agent_id=agent_id,
            container_id=batch.container_id,
            rank_id=line.rank_id,
            stdtype=line.stdtype,
            source=line.source,
        )
        for line in batch.lines
    ]
    return Lines(batch.task_id, lines, agent_id, batch.container_id, batch.start, batch.end)


def _agents_time(seconds: float) -> datetime:
    """Converts an agent's time, moved into the bounds: an agent would repeat a refused line for ever."""
    if math.isnan(seconds):
        return EARLIEST
    return datetime.fromtimestamp(min(_LATEST_SECONDS, max(_EARLIEST_SECONDS, seconds)), UTC)
