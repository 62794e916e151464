"""Live connections: which agent is connected now. In memory; rebuilt as agents come back."""

from dataclasses import dataclass, field

from starlette.websockets import WebSocket


@dataclass
class Link:
    """One connection. A newer one of the same agent replaces it."""

    agent_id: str
    socket: WebSocket
    sequence: int = 0
    last_wish: str = ""
    master_seen_at: str = ""
    """The address at which this agent reaches the master."""


@dataclass
class Registry:
    links: dict[str, Link] = field(default_factory=dict)

    def add(self, link: Link) -> Link | None:
        """The link that it replaces, if any."""
        former = self.links.get(link.agent_id)
        self.links[link.agent_id] = link
        return former

    def remove(self, link: Link) -> bool:
        """False where a newer link has taken its place already."""
        if self.links.get(link.agent_id) is not link:
            return False
        del self.links[link.agent_id]
        return True

    @property
    def master_seen_at(self) -> dict[str, str]:
        """By agent."""
        return {name: link.master_seen_at for name, link in self.links.items() if link.master_seen_at}
