"""Requests slots for new attempts of trials, in bulk."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from determined.config.experiment import MAX_PREEMPTION_TIMEOUT_SECONDS
from determined_master.allocations import environment_wait_repository
from determined_master.allocations.service import SlotRequest
from determined_master.checkpoints import outputs_repository
from determined_master.checkpoints import repository as checkpoints
from determined_master.clock import Clock
from determined_master.db.models import CheckpointRow, ExperimentRow, TrialRow
from determined_master.db.session import ReadSession, WriteSession, after_commit
from determined_master.jobs import repository as jobs
from determined_master.jobs.repository import Requester
from determined_master.logs import policy_match_repository
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.scheduling.view import Constraints, TaskGroup
from determined_master.trials import repository
from determined_master.trials.environment import container_spec
from determined_master.users.agent_user import run_as

DEFAULT_PREEMPTION_TIMEOUT_SECONDS = 3600


class SlotRequests:
    def __init__(
        self,
        clock: Clock,
        managers: ResourceManagers,
        new_run: Callable[[Sequence[int]], None],
        *,
        hook_in: Callable[[str], str],
        interface_in: Callable[[str], str],
        cluster_storage: str,
    ) -> None:
        """``new_run`` is called with the ids of trials whose run has changed, once that is committed.

        ``cluster_storage``: the checkpoint folder that the master itself chose.
        """
        self._clock = clock
        self._managers = managers
        self._new_run = new_run
        self._hook_in = hook_in
        self._interface_in = interface_in
        self._cluster_storage = cluster_storage

    async def add(self, session: WriteSession, rows: Sequence[TrialRow], experiment: ExperimentRow) -> None:
        """Creates a new attempt for each trial of ``rows``, from its newest complete checkpoint. All belong to one
        experiment."""
        requester = await jobs.requester(session, experiment.job_id, experiment.user_id)
        tasks = [row.task_id for row in rows if row.run_id]  # a trial that has never run has neither
        newest = await _newest_checkpoints(session, tasks) if tasks else {}
        steps = {task_id: checkpoint.steps_completed for task_id, checkpoint in newest.items()}
        outputs = await outputs_repository.newest(session, tasks) if tasks and experiment.config.get("outputs") else {}
        built = await environment_wait_repository.take_ended(session, tasks) if tasks else {}
        excluded = await policy_match_repository.excluded_agents(session, tasks) if tasks else {}
        requests = [
            self._request(
                row,
                experiment,
                requester,
                newest.get(row.task_id),
                outputs.get(row.task_id),
                excluded.get(row.task_id, frozenset()),
                built.get(row.task_id, []),
            )
            for row in rows
        ]
        values = [
            {
                "id": row.id,
                "run_id": request.run_id,
                "run_start_steps": steps.get(row.task_id, 0),
                "retry_at": None,
                "runner_state": "",
            }
            for row, request in zip(rows, requests, strict=True)
        ]
        await repository.change_each(session, experiment.id, values)
        after_commit(session, partial(self._new_run, [row.id for row in rows]))
        await self._managers.request(session, requests)

    def _request(
        self,
        row: TrialRow,
        experiment: ExperimentRow,
        requester: Requester,
        newest: CheckpointRow | None,
        outputs: str | None,
        excluded: frozenset[str],
        built: Sequence[tuple[str, str]],
    ) -> SlotRequest:
        run_id = row.run_id + 1
        spec = container_spec(
            experiment,
            row,
            run_id=run_id,
            owner=requester.username,
            steps=newest.steps_completed if newest else 0,
            checkpoint=newest.uuid if newest else row.warm_start_checkpoint,
            outputs=outputs,
            pool_hook=self._hook_in(requester.pool),
            interface=self._interface_in(requester.pool),
            run_as=run_as(requester.agent_user_group),
            cluster_storage=self._cluster_storage,
            built=built,
        )
        timeout = experiment.config.get("preemption_timeout")
        timeout = DEFAULT_PREEMPTION_TIMEOUT_SECONDS if timeout is None else timeout
        return SlotRequest(
            task_id=row.task_id,
            run_id=run_id,
            groups=trial_groups(experiment.config, excluded),
            pool=requester.pool,
            priority=requester.priority,
            owner=requester.username,
            user_id=experiment.user_id,
            submitted_at=requester.position,
            spec=spec,
            preemption_timeout=min(timeout, MAX_PREEMPTION_TIMEOUT_SECONDS),
        )


def trial_groups(config: Mapping[str, Any], excluded: frozenset[str] = frozenset()) -> tuple[TaskGroup, ...]:
    """Returns what a trial of an experiment asks for. ``excluded``: agents that its log policies exclude."""
    resources = config["resources"]
    constraints = Constraints(single_agent=bool(resources.get("is_single_node")), excluded_agents=excluded)
    return (TaskGroup("trial", slots=resources["slots_per_trial"], constraints=constraints),)


async def _newest_checkpoints(session: ReadSession, task_ids: Collection[str]) -> dict[str, CheckpointRow]:
    """Returns checkpoints by task; most trials of a large search have none, and a trial may have thousands."""
    by_task: dict[str, CheckpointRow] = {}
    for task_id in await checkpoints.tasks_with_completed(session, task_ids):
        newest = await checkpoints.newest_completed(session, task_id)
        if newest is not None:
            by_task[task_id] = newest
    return by_task
