"""Starts tasks that build Python environments on the agents whose containers wait for them."""

from determined.link.messages import ContainerSpec
from determined.states import TaskKind
from determined_master.db.models import TaskRow
from determined_master.db.session import WriteSession
from determined_master.tasks import repository
from determined_master.tasks.environment_repository import Need
from determined_master.tasks.service import NewTask, Tasks


async def start(session: WriteSession, tasks: Tasks, need: Need) -> TaskRow:
    """Creates the task: no slots, on the agent of the container, as its owner, with its context and variables."""
    wanting = ContainerSpec.model_validate(need.spec)
    venv = wanting.venv or {}
    spec = ContainerSpec(
        task_id="",
        owner=wanting.owner,
        slots=[],
        environment={},
        user_environment=wanting.user_environment,
        device_environment=wanting.device_environment,
        entrypoint=["python3", "-m", "determined.exec.build_environment"],
        harness="ours",
        context=wanting.context,
        venv=wanting.venv,
        builds_environment=need.key,
    )
    task = await repository.get(session, need.task_id)
    return await tasks.create(
        session,
        NewTask(
            kind=TaskKind.ENVIRONMENT,
            user_id=need.user_id,
            owner=need.owner,
            description=f"builds the environment {need.key} of {venv.get('requirements')} on {need.agent_id}",
            spec=spec,
            config={"environment": {"environment_variables": wanting.user_environment, "venv": wanting.venv}},
            slots=0,
            pool=need.pool,
            priority=need.priority,
            workspace_id=task.workspace_id,
            experiment_id=task.experiment_id,
            agent_id=need.agent_id,
            environment_key=need.key,
        ),
    )
