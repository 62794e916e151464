"""Calls about agents and their slots."""

from typing import Any
from urllib.parse import quote

from determined.client.session import Session

PREFIX = "/api/v1/agents"


def list_all(session: Session) -> list[dict[str, Any]]:
    """Returns every agent with its slots and containers."""
    return list(session.get(PREFIX)["agents"])


def enable(session: Session, agent_id: str) -> None:
    """Allows an agent to take work again."""
    session.post(f"{PREFIX}/{quote(agent_id, safe='')}/enable")


def disable(session: Session, agent_id: str, *, drain: bool) -> None:
    """Keeps an agent from taking new work; ``drain`` lets its running containers continue."""
    session.post(f"{PREFIX}/{quote(agent_id, safe='')}/disable", {"drain": drain})


def set_slot(session: Session, agent_id: str, slot_id: str, *, enabled: bool) -> None:
    """Enables or disables one slot."""
    word = "enable" if enabled else "disable"
    session.post(f"{PREFIX}/{quote(agent_id, safe='')}/slots/{quote(slot_id, safe='')}/{word}")
