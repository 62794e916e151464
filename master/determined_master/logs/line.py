"""A log line as it arrives."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class LogLine:
    task_id: str
    log: str
    timestamp: datetime
    level: str = ""
    allocation_id: str | None = None
    agent_id: str | None = None
    container_id: str | None = None
    rank_id: int | None = None
    stdtype: str = "stdout"
    source: str = "task"

    def values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}
