"""Registry of connected agents. In memory; rebuilt as agents reconnect."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from starlette.websockets import WebSocket

from determined.link.messages import DesiredContainer
from determined_master.agents.service import StoredReport

COMPARED_AGAIN_SECONDS = 30.0
"""A repeated report is compared with the database only this often, so that agents in a steady state cost little."""


@dataclass
class Link:
    """One connection. A newer connection of the same agent replaces it."""

    agent_id: str
    socket: WebSocket
    folder_id: str = ""
    """Id of the agent's data folder; empty from earlier versions."""
    hostname: str = ""
    sequence: int = 0
    last_wish: Sequence[DesiredContainer] = ()
    master_seen_at: str = ""
    """The address at which this agent reaches the master."""
    takes_streams: bool = False
    takes_ssh: bool = False
    stored: StoredReport = field(default_factory=StoredReport)
    _compared: str | None = None
    _compared_at: float = 0.0

    def is_repeated(self, report: str, now: float) -> bool:
        """Returns True if a report equals one that was compared with the database and changed nothing there.

        ``report``: the message as it came. ``now``: monotonic seconds. What else changes the database's view of an
        agent's containers also changes its desired state, after which the next report is compared again.
        """
        is_recent = now - self._compared_at < COMPARED_AGAIN_SECONDS
        return is_recent and self._compared is not None and _without_time(report) == self._compared

    def compared(self, report: str, now: float, *, changed: bool) -> None:
        """Records that a report was compared; ``changed``: it changed something."""
        self._compared, self._compared_at = None if changed else _without_time(report), now

    def forget_report(self) -> None:
        """Makes the next report be compared whatever it says."""
        self._compared = None


@dataclass
class Registry:
    links: dict[str, Link] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """Agents without a link whose disconnect could not be stored yet."""

    def namesake(self, agent_id: str, folder_id: str) -> Link | None:
        """Returns the link of another agent with the same id; None if it is the same one, as far as is known."""
        link = self.links.get(agent_id)
        is_other = link is not None and link.folder_id and folder_id and link.folder_id != folder_id
        return link if is_other else None

    def add(self, link: Link) -> Link | None:
        """Registers a link and returns the link that it replaces, or None."""
        former = self.links.get(link.agent_id)
        self.links[link.agent_id] = link
        self.left.discard(link.agent_id)
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


def _without_time(report: str) -> str:
    """Returns a report up to the agent's time, which is its last field and differs in each."""
    return report.rpartition(',"sent_at":')[0] or report
