"""Continues an experiment that has ended: the same experiment, its unfinished trials from their newest checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from determined.config.findings import Finding
from determined.config.search_plan import IN_TASK
from determined.errors import BadRequest, Conflict, PreconditionFailed
from determined.searcher.sampling import sample
from determined.states import ExperimentState, TrialState
from determined_master import notifications
from determined_master.auth.principal import Principal
from determined_master.clock import Clock
from determined_master.db.models import ExperimentRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.errors import InvalidConfig
from determined_master.events.state_machine import Event
from determined_master.experiments import repository
from determined_master.experiments.commands.config_check import with_findings
from determined_master.experiments.commands.create import Creator, Submission, fill_in
from determined_master.experiments.commands.lifecycle import Lifecycle, check_allowed
from determined_master.experiments.hp_search import continued
from determined_master.jobs import repository as jobs
from determined_master.jobs.queue_order import check_priority
from determined_master.searcher.actions import Create, Resume, SearchContinued
from determined_master.searcher.method import Randomness
from determined_master.settings.settings import Settings
from determined_master.trials import repository as trial_rows
from determined_master.trials import search_event_repository
from determined_master.trials.repository import EndedTrial
from determined_master.trials.service import Trials
from determined_master.users import pool_account
from determined_master.users.authorization import Authorization

FIXED_CODE = "E211"
_FIXED = (
    ("searcher", "name"),
    ("searcher", "metric"),
    ("searcher", "smaller_is_better"),
    ("searcher", "source_trial_id"),
    ("searcher", "source_checkpoint_uuid"),
    ("reproducibility", "experiment_seed"),
    ("workspace",),
    ("project",),
)
"""Settings by which the experiment's earlier results were made or are found."""
_POLICY = ("save_experiment_best", "save_trial_best", "save_trial_latest")


MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class _Continuation:
    """What an experiment that ended at ``end_time`` goes on with. ``known``: all its trials."""

    end_time: datetime | None
    known: Sequence[EndedTrial]
    resumed: Sequence[EndedTrial]

    @cached_property
    def event(self) -> SearchContinued:
        return SearchContinued(tuple(t.request_id for t in self.resumed), tuple(t.request_id for t in self.known))


@dataclass(frozen=True)
class _Overridden:
    """A configuration with an override over it. ``before``: the one that was stored when this was checked."""

    before: dict[str, Any]
    config: dict[str, Any]


class Continuer:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        settings: Settings,
        authorization: Authorization,
        trials: Trials,
        creator: Creator,
        lifecycle: Lifecycle,
    ) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._authorization = authorization
        self._trials = trials
        self._creator = creator
        self._lifecycle = lifecycle

    async def resume(self, experiment_id: int, override: str, principal: Principal) -> ExperimentRow:
        """Continues an experiment, with the settings of ``override`` over its configuration.

        Raises InvalidConfig for settings that are wrong or cannot change, PreconditionFailed for an experiment that has
        not ended or has nothing left to do, and Forbidden for one of somebody else.
        """
        for _ in range(MAX_ATTEMPTS):
            overridden = await self._config(experiment_id, override, principal)
            async with self._database.read() as session:
                plan = await self._plan(session, await self._continuable(session, experiment_id, principal))
            async with self._database.write() as session:
                row = await self._continuable(session, experiment_id, principal)
                if row.end_time != plan.end_time:
                    continue  # somebody else has continued it meanwhile, and it has ended again
                before = row.config
                if overridden is not None and overridden.before != before:
                    continue  # somebody has changed it since the check
                if overridden is not None:
                    await self._change(session, row, overridden.config, plan.resumed, principal)
                await self._start(session, row, plan, changed_settings(before, row.config), principal)
                await session.refresh(row)
            return row
        raise Conflict(f"experiment {experiment_id} changes faster than it can be continued; try again")

    async def _config(self, experiment_id: int, override: str, principal: Principal) -> _Overridden | None:
        """Returns the changed configuration, or None if nothing is overridden."""
        async with self._database.read() as session:
            row = await self._continuable(session, experiment_id, principal)
        if not override.strip() or override.strip() in ("{}", "null"):
            return None
        name = row.config["searcher"]["name"]
        if name != "single":
            raise BadRequest(
                f"experiment {row.id} is a search ({name}); its configuration cannot change when it continues. Fork it"
            )
        submission = Submission(override, f"override of experiment {row.id}", parent_id=row.id)
        submission = await self._creator.unmasked(submission, principal)
        result = await self._creator.check(submission.config, submission.config_name, [row.config])
        if result.config is not None:
            fixed = list(_fixed_findings(row.config, result.config))
            result = with_findings(result, submission.config, fixed) if fixed else result
        if result.config is None:
            raise InvalidConfig(result.checked)
        fill_in(result.config, self._settings)
        await self._creator.check_environment(submission, result, result.config)
        return _Overridden(row.config, result.config)

    async def _continuable(self, session: ReadSession, experiment_id: int, principal: Principal) -> ExperimentRow:
        row = await repository.get(session, experiment_id)
        await self._authorization.check_change(session, principal, row.user_id, f"experiment {row.id}")
        await pool_account.check(session, principal, self._settings.pools.get(row.pool))
        check_allowed("continue", row)
        if row.searcher_type in IN_TASK:
            raise PreconditionFailed(
                f"experiment {row.id} cannot be continued: the method of its search ({row.searcher_type}) runs in a "
                "task and does not take back trials that have ended. Fork it"
            )
        return row

    async def _plan(self, session: ReadSession, row: ExperimentRow) -> _Continuation:
        """Returns what a continued experiment goes on with: before the transaction, because its trials may be very
        many. Raises PreconditionFailed if the search would do nothing more."""
        known = await trial_rows.ended_trials(session, row.id)
        if row.config["searcher"]["name"] == "single":
            return _Continuation(row.end_time, known, known)
        plan = _Continuation(row.end_time, known, [trial for trial in known if trial.state is not TrialState.COMPLETED])
        if not plan.resumed:
            actions = await continued(session, row, plan.event)
            if not any(isinstance(action, Create) for action in actions):
                raise PreconditionFailed(
                    f"experiment {row.id} has nothing to continue: its search is over and all its trials "
                    f"({len(known)}) have completed. Fork it for another search"
                )
        return plan

    async def _change(
        self,
        session: WriteSession,
        row: ExperimentRow,
        config: dict[str, Any],
        trials: Sequence[EndedTrial],
        principal: Principal,
    ) -> None:
        """Stores a changed configuration, and what else is stored of it."""
        if config["hyperparameters"] != row.config["hyperparameters"]:
            seed = config["reproducibility"]["experiment_seed"]
            hparams = sample(config["hyperparameters"], Randomness.seeded(seed).rng)
            for trial in await trial_rows.by_ids(session, [trial.trial_id for trial in trials]):
                await trial_rows.change(session, trial, hparams=hparams)
        resources = config["resources"]
        await pool_account.check(session, principal, self._settings.pools.get(resources["resource_pool"]))
        job = await jobs.get(session, row.job_id)
        default = self._settings.priority_in(resources["resource_pool"])
        is_admin = self._authorization.may_improve(principal)
        check_priority(new=resources["priority"], old=job.priority, default=default, is_admin=is_admin)
        await jobs.change(
            session,
            row.job_id,
            pool=resources["resource_pool"],
            priority=resources["priority"],
            weight=resources["weight"],
            max_slots=resources["max_slots"],
        )
        await repository.change(
            session,
            row,
            config=config,
            name=config["name"],
            description=config.get("description") or "",
            labels=list(config.get("labels") or []),
            pool=resources["resource_pool"],
            values_stale=True,
        )

    async def _start(
        self,
        session: WriteSession,
        row: ExperimentRow,
        plan: _Continuation,
        changed: Sequence[str],
        principal: Principal,
    ) -> None:
        actor = principal.username
        event = Event(actor, "continued", {"changed": list(changed)})
        values: dict[str, Any] = {"progress": 0.0, "end_time": None, "retention_due": False, "values_stale": True}
        await repository.move(session, self._clock, row, ExperimentState.PAUSED, event=event, **values)
        # It is queued like one that is submitted now.
        await jobs.change(session, row.job_id, position=self._clock.now())
        payload = {"resumed": list(plan.event.resumed), "known": list(plan.event.known)}
        await search_event_repository.add_event(session, row.id, 0, "continued", payload)
        await self._lifecycle.activate_row(session, row, actor)
        if plan.resumed:
            await self._trials.resume_lot(session, row, Resume(0, plan.resumed[-1].trial_id, actor))
        notify(session, notifications.SEARCH, notifications.COLUMNS, notifications.experiment(row.id))


def _fixed_findings(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Finding]:
    """Returns an error for each setting that must stay when an experiment is continued."""
    hint = "fork the experiment"
    problems = [
        Finding(FIXED_CODE, path, f'"{".".join(path)}" cannot change when an experiment is continued', hint, "key")
        for path in _FIXED
        if _value(old, path) != _value(new, path)
    ]
    if _place(old) != _place(new):
        message = "the checkpoint storage cannot change when an experiment is continued: its checkpoints are there"
        problems.append(Finding(FIXED_CODE, ("checkpoint_storage",), message, hint, "key"))
    return problems


def _value(config: Mapping[str, Any], path: Sequence[str]) -> object:
    value: Any = config
    for step in path:
        value = (value or {}).get(step)
    return value


def _place(config: Mapping[str, Any]) -> dict[str, Any]:
    storage = config["checkpoint_storage"]
    return {key: value for key, value in storage.items() if key not in _POLICY and value is not None}


def changed_settings(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Returns the dotted names of the settings that differ.

    >>> changed_settings({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1, "c": 4}, "d": 3})
    ['a.c']
    """
    names: list[str] = []
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            names += changed_settings(before, after, f"{prefix}{key}.")
        else:
            names.append(f"{prefix}{key}")
    return names
