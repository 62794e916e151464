"""Starts tasks that run a search method: no slots, as the experiment's owner, with the context and variables of it."""

from typing import Any

from determined.link.messages import ContainerSpec, ContextRef
from determined.states import TaskKind
from determined_launch import environment as names
from determined_master.db.models import ExperimentRow, JobRow, TaskRow, UserRow
from determined_master.db.session import WriteSession
from determined_master.tasks.container_settings import container_settings
from determined_master.tasks.service import NewTask, Tasks


async def start(
    session: WriteSession,
    tasks: Tasks,
    experiment: ExperimentRow,
    owner: UserRow,
    job: JobRow,
    *,
    pool: str,
    pool_hook: str,
) -> TaskRow:
    """Creates the task. It uses our library: another one that the image has knows no search methods.

    Parameters:
        job: the experiment's, whose priority the task gets.
        pool: the pool of tasks without slots.
        pool_hook: text of the cluster's startup hook.
    """
    config = experiment.config
    settings: dict[str, Any] = {**container_settings(config), "harness": "ours"}
    digest = experiment.context_hash
    spec = ContainerSpec(
        task_id="",
        owner=owner.username,
        slots=[],
        environment={names.EXPERIMENT_ID: str(experiment.id)},
        entrypoint=["python3", "-m", "determined.exec.search"],
        context=ContextRef(hash=digest, size=experiment.context_size) if digest else None,
        startup_hook=pool_hook,
        **settings,
    )
    return await tasks.create(
        session,
        NewTask(
            kind=TaskKind.SEARCH,
            user_id=owner.id,
            owner=owner.username,
            description=f"runs the search of experiment {experiment.id}",
            spec=spec,
            config={"environment": config["environment"]},
            slots=0,
            pool=pool,
            priority=job.priority,
            experiment_id=experiment.id,
        ),
    )
