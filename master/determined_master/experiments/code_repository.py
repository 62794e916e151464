"""SQL for the state of the code of experiments."""

from sqlalchemy import select

from determined_master.db.models import ExperimentCodeRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.statements.row_changes import delete_rows, insert_rows
from determined_master.experiments.code_state import CodeState, StoredCode


async def add(session: WriteSession, experiment_id: int, code: StoredCode) -> None:
    """Stores the state of the code of a new experiment."""
    state = code.state
    row = {
        "experiment_id": experiment_id,
        "commit_id": state.commit,
        "branch": state.branch,
        "remote": state.remote,
        "diff": code.diff,
        "is_cut": state.is_cut,
        "untracked": list(state.untracked),
    }
    await insert_rows(session, table_of(ExperimentCodeRow), [row])


async def find(session: ReadSession, experiment_id: int) -> StoredCode | None:
    """Returns the state of the code of an experiment; None if none is stored."""
    row = await session.get(ExperimentCodeRow, experiment_id)
    if row is None:
        return None
    state = CodeState(
        commit=row.commit_id,
        branch=row.branch,
        remote=row.remote,
        is_cut=row.is_cut,
        untracked=tuple(row.untracked),
    )
    return StoredCode(state, row.diff)


async def drop_some(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes the state of the code of an experiment, up to ``most`` rows, and returns their number: 0 or 1."""
    some = select(ExperimentCodeRow.experiment_id).where(ExperimentCodeRow.experiment_id == experiment_id).limit(most)
    return await delete_rows(session, ExperimentCodeRow, some)
