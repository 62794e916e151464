"""Registry of connected agents. In memory; rebuilt as agents reconnect."""

from dataclasses import dataclass, field

from starlette.websockets import WebSocket


@dataclass
class Link:
    """One connection. A newer connection of the same agent replaces it."""

    agent_id: str
    socket: WebSocket
    folder_id: str = ""
    """Id of the agent's data folder; empty from earlier versions."""
    hostname: str = ""
    sequence: int = 0
    last_wish: str = ""
    master_seen_at: str = ""
    """The address at which this agent reaches the master."""


@dataclass
class Registry:
    links: dict[str, Link] = field(default_factory=dict)

    def namesake(self, agent_id: str, folder_id: str) -> Link | None:
        """Returns the link of another agent with the same id; None if it is the same one, as far as is known."""
        link = self.links.get(agent_id)
        is_other = link is not None and link.folder_id and folder_id and link.folder_id != folder_id
        return link if is_other else None

    def add(self, link: Link) -> Link | None:
        """Registers a link and returns the link that it replaces, or None."""
        former = self.links.get(link.agent_id)
        self.links[link.agent_id] = link
        return former

    def remove(self, link: Link) -> bool:
        """Removes a link. Returns False if a newer link has replaced it."""
        if self.links.get(link.agent_id) is not link:
            return False
        del self.links[link.agent_id]
        return True

    @property
    def master_seen_at(self) -> dict[str, str]:
        """Returns the addresses at which agents reach the master, by agent."""
        return {name: link.master_seen_at for name, link in self.links.items() if link.master_seen_at}
