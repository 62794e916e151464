"""SQL of the log store, synchronous: it runs in the group-commit writer's thread."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, update

from determined_master.db.models import ContainerRow, LogRow


def committed(connection: Connection, container_id: str, agent_id: str | None) -> int | None:
    """How many bytes of its output are stored; None where it is not of this agent."""
    query = select(ContainerRow.output_offset).where(ContainerRow.id == container_id, ContainerRow.agent_id == agent_id)
    return connection.execute(query).scalar_one_or_none()


def advance(connection: Connection, container_id: str, end: int) -> None:
    connection.execute(update(ContainerRow).where(ContainerRow.id == container_id).values(output_offset=end))


def insert_many(connection: Connection, values: Sequence[dict[str, Any]]) -> None:
    if values:
        connection.execute(insert(LogRow), list(values))
