"""Decides who may change an experiment and what belongs to it: trials, checkpoints, labels, notes."""

from determined.errors import Forbidden
from determined_master.auth.principal import Principal
from determined_master.db.session import ReadSession
from determined_master.users import repository


class Authorization:
    """The owner or an admin may change and delete. On an open cluster every user may change; deletion stays restricted.

    Checks run in the session that applies the change, so that the object checked is the object changed.
    """

    def __init__(self, *, is_open: bool) -> None:
        self._is_open = is_open

    def may_change(self, principal: Principal, owner_id: int) -> bool:
        return not principal.is_task and (self._is_open or _is_owner(principal, owner_id))

    def may_delete(self, principal: Principal, owner_id: int) -> bool:
        return not principal.is_task and _is_owner(principal, owner_id)

    def may_enter(self, principal: Principal, owner_id: int) -> bool:
        """Returns whether the principal may enter a task, and so may see what opens it; see ``check_enter``."""
        return not principal.is_task and _is_owner(principal, owner_id)

    def may_improve(self, principal: Principal) -> bool:
        """Returns whether the principal may make a job more urgent than its pool's default, or move it past others'."""
        return not principal.is_task and (self._is_open or principal.admin)

    async def check_change(self, session: ReadSession, principal: Principal, owner_id: int, what: str) -> None:
        """Raises Forbidden, which names who may change it. ``what`` names the object, such as ``experiment 3``."""
        if not self.may_change(principal, owner_id):
            raise await _refusal(session, owner_id, what, "change")

    async def check_delete(self, session: ReadSession, principal: Principal, owner_id: int, what: str) -> None:
        """Raises Forbidden for anyone but the owner and admins, on an open cluster too."""
        if not self.may_delete(principal, owner_id):
            raise await _refusal(session, owner_id, what, "delete")

    async def check_enter(self, session: ReadSession, principal: Principal, owner_id: int, what: str) -> None:
        """Raises Forbidden for anyone but the owner and admins, on an open cluster too: who enters a task acts as its
        owner."""
        if not self.may_enter(principal, owner_id):
            raise await _refusal(session, owner_id, what, "enter")


def _is_owner(principal: Principal, owner_id: int) -> bool:
    return principal.admin or principal.user_id == owner_id


async def _refusal(session: ReadSession, owner_id: int, what: str, verb: str) -> Forbidden:
    owner = (await repository.get(session, owner_id)).username
    return Forbidden(f"{what} belongs to {owner}; only {owner} or an admin may {verb} it")
