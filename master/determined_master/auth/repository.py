"""SQL that maps tokens to users and tasks."""

from typing import NamedTuple

from sqlalchemy import bindparam, select

from determined.states import AllocationState, TokenScope
from determined_master.db.models import AllocationRow, SessionRow, TaskRow, TrialRow, UserRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.named_columns import columns_of
from determined_master.db.statements.prepared import Prepared


class TokenHolder(NamedTuple):
    """The allocation of a task's token, and for whom it acts."""

    state: AllocationState
    task_id: str
    scope: TokenScope
    user_id: int
    username: str
    is_admin: bool
    trial_id: int | None


async def find_session(session: ReadSession, token_hash: str) -> tuple[SessionRow, UserRow] | None:
    query = (
        select(SessionRow, UserRow)
        .join(UserRow, UserRow.id == SessionRow.user_id)
        .where(SessionRow.token_hash == token_hash)
    )
    row = (await session.execute(query)).one_or_none()
    return (row[0], row[1]) if row else None


async def token_holder(session: ReadSession, allocation_id: str) -> TokenHolder | None:
    rows = await _TOKEN_HOLDER.rows(session, allocation_id=allocation_id)
    return TokenHolder._make(rows[0]) if rows else None


_TOKEN_HOLDER = Prepared(
    select(
        *columns_of(
            TokenHolder,
            state=AllocationRow.state,
            task_id=AllocationRow.task_id,
            scope=TaskRow.token_scope,
            user_id=UserRow.id,
            username=UserRow.username,
            is_admin=UserRow.admin,
            trial_id=TrialRow.id,
        )
    )
    .join(TaskRow, TaskRow.id == AllocationRow.task_id)
    .join(UserRow, UserRow.id == AllocationRow.user_id)
    .outerjoin(TrialRow, TrialRow.task_id == TaskRow.id)
    .where(AllocationRow.id == bindparam("allocation_id"))
)
