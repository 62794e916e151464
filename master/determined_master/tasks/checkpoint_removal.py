"""Starts tasks that remove checkpoints which the master does not reach: no slots, as the experiment's owner."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from determined.link.messages import ContainerSpec
from determined.states import TaskKind
from determined_launch import environment as names
from determined_master.db.models import ExperimentRow, JobRow, TaskRow, UserRow
from determined_master.db.session import WriteSession
from determined_master.tasks.container_settings import container_settings
from determined_master.tasks.service import NewTask, Tasks

MAX_CHECKPOINTS = 500
"""Checkpoints of one task: their ids are in its environment."""


async def start(
    session: WriteSession,
    tasks: Tasks,
    experiment: ExperimentRow,
    owner: UserRow,
    job: JobRow,
    storage: Mapping[str, Any],
    uuids: Sequence[str],
) -> TaskRow:
    """Creates the task. It has the image, mounts and variables of the experiment.

    Parameters:
        job: the experiment's, whose pool and priority the task gets.
        storage: the ``checkpoint_storage`` section in which the checkpoints are.
        uuids: at most ``MAX_CHECKPOINTS``.
    """
    config = experiment.config
    order = {"storage": dict(storage), "uuids": list(uuids)}
    spec = ContainerSpec(
        task_id="",
        owner=owner.username,
        slots=[],
        environment={names.CHECKPOINTS_TO_REMOVE: json.dumps(order)},
        entrypoint=["python3", "-m", "determined.exec.gc_checkpoints"],
        checkpoint_storage=dict(storage),
        **container_settings(config),
    )
    return await tasks.create(
        session,
        NewTask(
            kind=TaskKind.CHECKPOINT_GC,
            user_id=owner.id,
            owner=owner.username,
            description=f"removes {len(uuids)} checkpoints of experiment {experiment.id}",
            spec=spec,
            config={"checkpoint_storage": dict(storage), "environment": config["environment"]},
            slots=0,
            pool=job.pool,
            priority=job.priority,
            experiment_id=experiment.id,
        ),
    )
