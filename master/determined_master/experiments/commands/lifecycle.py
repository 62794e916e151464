"""Actions on an experiment: activate, pause, cancel, kill, archive, delete."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from determined.errors import PreconditionFailed
from determined.states import ExperimentState
from determined_master import notifications
from determined_master.auth.principal import Principal
from determined_master.checkpoints import retention_repository
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.events import repository as events
from determined_master.experiments import repository
from determined_master.experiments.actions import Action, refusal
from determined_master.trials import search_event_repository
from determined_master.trials.service import Trials
from determined_master.users import repository as users
from determined_master.users.authorization import Authorization


def check_allowed(action: Action, row: ExperimentRow) -> bool:
    """Returns False if nothing is left to do. Raises PreconditionFailed if the state does not allow the action."""
    refused = refusal(action, row.state, archived=row.archived)
    if refused is not None and not refused.is_noop:
        raise PreconditionFailed(f"experiment {row.id} {refused.text}")
    return refused is None


class Lifecycle:
    """Lifecycle commands. Each is one transaction, or part of the given session. All are idempotent."""

    def __init__(self, database: Database, clock: Clock, trials: Trials, authorization: Authorization) -> None:
        self._database = database
        self._clock = clock
        self._trials = trials
        self._authorization = authorization

    @asynccontextmanager
    async def _within(self, session: WriteSession | None) -> AsyncIterator[WriteSession]:
        """Uses the given session, or a transaction of its own."""
        if session is not None:
            yield session
            return
        async with self._database.write() as own:
            yield own

    async def activate(self, experiment_id: int, principal: Principal, session: WriteSession | None = None) -> None:
        async with self._within(session) as session:
            row = await self._changeable(session, experiment_id, principal)
            await self.activate_row(session, row, principal.username)

    async def activate_row(self, session: WriteSession, row: ExperimentRow, actor: str) -> None:
        """Raises PreconditionFailed if the experiment is stopping or terminal."""
        check_allowed("activate", row)
        await repository.move(session, self._clock, row, ExperimentState.ACTIVE, actor=actor)
        await self._trials.follow_experiment(session, row, actor)
        notify(session, notifications.TRIALS, notifications.SEARCH)

    async def pause(self, experiment_id: int, principal: Principal, session: WriteSession | None = None) -> None:
        async with self._within(session) as session:
            row = await self._changeable(session, experiment_id, principal)
            check_allowed("pause", row)
            await repository.move(session, self._clock, row, ExperimentState.PAUSED, actor=principal.username)
            await self._trials.follow_experiment(session, row, principal.username)

    async def cancel(self, experiment_id: int, principal: Principal, session: WriteSession | None = None) -> None:
        await self._stop(experiment_id, principal, session, ExperimentState.STOPPING_CANCELED)

    async def kill(self, experiment_id: int, principal: Principal, session: WriteSession | None = None) -> None:
        await self._stop(experiment_id, principal, session, ExperimentState.STOPPING_KILLED)

    async def archive(
        self,
        experiment_id: int,
        principal: Principal,
        session: WriteSession | None = None,
        *,
        archived: bool,
        is_single: bool = False,
    ) -> None:
        """``is_single``: raises PreconditionFailed also if nothing is left to do, as Determined for one experiment."""
        action: Action = "archive" if archived else "unarchive"
        async with self._within(session) as session:
            row = await self._changeable(session, experiment_id, principal)
            if not check_allowed(action, row):
                refused = refusal(action, row.state, archived=row.archived)
                if is_single and refused is not None:
                    raise PreconditionFailed(f"experiment {row.id} {refused.text}")
                return
            await repository.change(session, row, archived=archived)
            await events.record(
                session,
                self._clock,
                actor=principal.username,
                kind="archived" if archived else "unarchived",
                target_type="experiment",
                target_id=row.id,
            )

    async def check_home(self, project_id: int) -> None:
        """Raises if nothing may be created in that project."""
        async with self._database.read() as session:
            await self._check_home(session, project_id)

    async def rehome(
        self, experiment_id: int, principal: Principal, project_id: int, session: WriteSession | None = None
    ) -> None:
        """Moves the experiment to another project, in any state."""
        async with self._within(session) as session:
            row = await self._changeable(session, experiment_id, principal)
            await self._check_home(session, project_id)
            if row.project_id == project_id:
                return
            start = row.project_id
            await repository.change(session, row, project_id=project_id, values_stale=True)
            await events.record(
                session,
                self._clock,
                actor=principal.username,
                kind="rehomed",
                target_type="experiment",
                target_id=row.id,
                payload={"from": start, "to": project_id},
            )
            notify(session, notifications.COLUMNS, notifications.experiment(row.id))

    async def _check_home(self, session: ReadSession, project_id: int) -> None:
        project = await users.get_project(session, project_id)
        if project.archived:
            raise PreconditionFailed(f"project {project.name!r} is archived")

    async def delete(self, experiment_id: int, principal: Principal, session: WriteSession | None = None) -> None:
        async with self._within(session) as session:
            row = await repository.get(session, experiment_id)
            await self._authorization.check_delete(session, principal, row.user_id, f"experiment {row.id}")
            check_allowed("delete", row)
            if await repository.move(session, self._clock, row, ExperimentState.DELETING, actor=principal.username):
                await retention_repository.forget_failures(session, row.id)
            notify(session, notifications.DELETE)

    async def _changeable(self, session: ReadSession, experiment_id: int, principal: Principal) -> ExperimentRow:
        row = await repository.get(session, experiment_id)
        await self._authorization.check_change(session, principal, row.user_id, f"experiment {row.id}")
        return row

    async def _stop(
        self,
        experiment_id: int,
        principal: Principal,
        session: WriteSession | None,
        to: ExperimentState,
    ) -> None:
        async with self._within(session) as session:
            row = await self._changeable(session, experiment_id, principal)
            if not check_allowed("kill" if to is ExperimentState.STOPPING_KILLED else "cancel", row):
                return
            await search_event_repository.drop_lots(session, row.id)
            await repository.move(session, self._clock, row, to, actor=principal.username)
            await self._trials.follow_experiment(session, row, principal.username)
            notify(session, notifications.SEARCH, notifications.TRIALS)
