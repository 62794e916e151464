"""Decides whether a task or a user may write to a trial or to one of its allocations."""

from determined.errors import Forbidden, NotFound
from determined.states import TokenScope
from determined_master.allocations import repository as allocation_rows
from determined_master.auth.principal import Principal
from determined_master.db.models import AllocationRow
from determined_master.db.session import ReadSession
from determined_master.tasks import repository as tasks
from determined_master.trials import repository
from determined_master.users.authorization import Authorization


class TrialAccess:
    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    def trial_of(self, principal: Principal) -> int | None:
        """Returns the trial id of a task's token, or None for a user."""
        task_id = principal.task_id
        if task_id is None:
            return None
        if principal.scope is not TokenScope.TRIAL:
            raise Forbidden(f"the token of task {task_id} may not write to a trial")
        if principal.trial_id is None:
            raise NotFound(f"task {task_id} is not a trial")
        return principal.trial_id

    async def check_trial(self, session: ReadSession, principal: Principal, trial_id: int) -> None:
        """Raises Forbidden unless a task writes to its own trial, or a user to a trial that they may change."""
        if not principal.is_task:
            owner_id = await repository.owner_of(session, trial_id)
            await self._authorization.check_change(session, principal, owner_id, f"trial {trial_id}")
        elif self.trial_of(principal) != trial_id:
            raise Forbidden(f"this task token may not write to trial {trial_id}")

    async def check_log(self, session: ReadSession, user: Principal, task_id: str) -> None:
        """Raises Forbidden unless the user may write to the task's log."""
        row = await tasks.get(session, task_id)
        await self._authorization.check_change(session, user, row.user_id, f"task {task_id}")

    async def checked_allocation(self, session: ReadSession, principal: Principal, allocation_id: str) -> AllocationRow:
        """Returns the allocation. Raises Forbidden unless it is the task's own, or one that the user may change."""
        self.check_task(principal, allocation_id)
        row = await allocation_rows.get(session, allocation_id)
        await self.check_user(session, principal, allocation_id, row.user_id)
        if row.state.is_terminal:
            await self.check_exists(session, row.task_id)
        return row

    async def check_exists(self, session: ReadSession, task_id: str) -> None:
        """Raises NotFound if the task's experiment is deleted, which only that of an ended attempt can be."""
        await tasks.get(session, task_id)

    def check_task(self, principal: Principal, allocation_id: str) -> None:
        """Raises Forbidden if a task acts for another allocation than its own."""
        if principal.is_task and principal.allocation_id != allocation_id:
            raise Forbidden(f"this task token may not act for allocation {allocation_id}")

    async def check_user(self, session: ReadSession, principal: Principal, allocation_id: str, owner_id: int) -> None:
        """Raises Forbidden if a user may not change the allocation of ``owner_id``."""
        if not principal.is_task:
            await self._authorization.check_change(session, principal, owner_id, f"allocation {allocation_id}")
