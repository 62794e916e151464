"""Tasks: trials, commands and other work that runs in allocations."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter

from determined.errors import Forbidden
from determined.states import AllocationState
from determined_master.agents import repository as agent_rows
from determined_master.allocations import repository as allocation_rows
from determined_master.api.dependencies import Anyone, CommandsDep, DatabaseDep, ModelDefsDep, Owner, Read, TaskOrUser
from determined_master.api.schemas.agents import device
from determined_master.api.schemas.base import Time, Wire, rfc3339
from determined_master.db.models import AllocationRow, ContainerRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.proxy import task_queries
from determined_master.proxy.declared_ports import DeclaredPort
from determined_master.tasks import repository as tasks
from determined_master.trials import repository

router = APIRouter(tags=["tasks"])


class Allocation(Wire):
    allocation_id: str
    task_id: str
    state: str
    slots: int
    is_ready: bool
    start_time: Time | None = None
    end_time: Time | None = None
    exit_reason: str | None = None
    status_code: int | None = None


class Task(Wire):
    task_id: str
    task_type: str
    start_time: Time
    end_time: Time | None = None
    allocations: list[Allocation]
    config: str | None = None
    forked_from: str | None = None
    no_pause: bool = False
    parent_id: str | None = None
    task_state: str = "GENERIC_TASK_STATE_UNSPECIFIED"


class TaskAnswer(Wire):
    task: Task


class TasksAnswer(Wire):
    allocation_id_to_summary: dict[str, Any]


class ContextAnswer(Wire):
    b64_tgz: str


@router.get("/api/v1/tasks")
async def list_tasks(_principal: Anyone, session: Read) -> TasksAnswer:
    return TasksAnswer(allocation_id_to_summary={k: _camel(v) for k, v in (await _summaries(session)).items()})


@router.get("/tasks")
async def list_tasks_plain(_principal: Anyone, session: Read) -> dict[str, Any]:
    return await _summaries(session)


@router.get("/api/v1/tasks/{task_id}")
async def get_task(task_id: str, _principal: Anyone, session: Read) -> TaskAnswer:
    row = await tasks.get(session, task_id)
    trial = await repository.find_by_task(session, task_id)
    rows = await allocation_rows.of_task(session, task_id)
    return TaskAnswer(
        task=Task(
            task_id=task_id,
            task_type=f"TASK_TYPE_{row.kind.wire}",
            start_time=row.created_at,
            end_time=trial.end_time if trial else row.ended_at,
            allocations=[_allocation(row) for row in reversed(rows)],
        )
    )


@router.post("/api/v1/tasks/{task_id}/kill")
async def kill_task(task_id: str, user: Owner, commands: CommandsDep) -> dict[str, Any]:
    await commands.kill_task(task_id, user)
    return {}


@router.get("/api/v1/tasks/{task_id}/context_directory")
async def context_directory(
    task_id: str, principal: TaskOrUser, database: DatabaseDep, model_defs: ModelDefsDep
) -> ContextAnswer:
    if principal.is_task and principal.task_id != task_id:
        raise Forbidden("this task token may not read the context of another task")
    # No session is open while the context is read, as in model_def.
    async with database.read() as session:
        row = await tasks.get(session, task_id)
        context_hash = row.context_hash
        if row.experiment_id is not None:
            context_hash = (await experiment_rows.get(session, row.experiment_id)).context_hash
    return ContextAnswer(b64_tgz=await model_defs.as_tgz(context_hash))


def _allocation(row: AllocationRow) -> Allocation:
    return Allocation(
        allocation_id=row.id,
        task_id=row.task_id,
        state=f"STATE_{_STATES.get(row.state, 'RUNNING')}",
        slots=row.slots,
        is_ready=row.ready_at is not None,
        start_time=row.placed_at,
        end_time=row.ended_at,
        exit_reason=row.message or (row.exit_reason.value if row.exit_reason else None),
        status_code=row.exit_code,
    )


async def _summaries(session: ReadSession) -> dict[str, Any]:
    """Returns the live allocations by id; all are read in six statements."""
    rows = await allocation_rows.live_without_spec(session)
    containers = await allocation_rows.containers_of_live(session)
    task_ids = {row.task_id for row in rows}
    names = {
        task_id: _trial_name(trial) for task_id, trial in (await repository.names_of_tasks(session, task_ids)).items()
    }
    names |= {task_id: named.description for task_id, named in (await tasks.names(session, task_ids)).items()}
    agent_ids = {container.agent_id for found in containers.values() for container in found}
    slots = await agent_rows.slots(session, agent_ids=agent_ids)
    devices = {(slot.agent_id, slot.slot_id): device(slot).model_dump() for slot in slots}
    ports = await task_queries.declared_by(session, {row.task_id for row in rows if row.id in containers})
    return {
        row.id: _summary(row, names.get(row.task_id, row.task_id), containers.get(row.id, []), devices)
        | {"proxy_ports": [_port(row.task_id, each) for each in ports.get(row.task_id, [])]}
        for row in rows
    }


def _trial_name(trial: repository.TrialName) -> str:
    return f"Trial {trial.trial_id} (Experiment {trial.experiment_id})"


def _summary(
    row: AllocationRow,
    name: str,
    containers: Sequence[ContainerRow],
    devices: dict[tuple[str, int], Any],
) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "allocation_id": row.id,
        "name": name,
        "registered_time": rfc3339(row.created_at),
        "resource_pool": row.pool,
        "slots_needed": row.slots,
        "resources": [
            {
                "resources_id": c.id,
                "resources_type": "docker-container",
                "allocation_id": row.id,
                "agent_devices": {
                    c.agent_id: {"devices": [devices[key] for i in c.slot_ids if (key := (c.agent_id, i)) in devices]}
                },
                "container_id": c.id,
                "started": None,
                "exited": None,
            }
            for c in containers
        ],
        "scheduler_type": "priority",
        "priority": row.priority,
    }


def _port(task_id: str, port: DeclaredPort) -> dict[str, Any]:
    """Returns a port as the official client reads it; its service is the name of its address below ``/proxy/``."""
    return {
        "service_id": task_id if port.is_default else f"{task_id}:{port.port}",
        "port": port.port,
        "proxy_tcp": not port.is_page,
        "unauthenticated": False,
    }


def _camel(summary: dict[str, Any]) -> dict[str, Any]:
    def name(key: str) -> str:
        first, *rest = key.split("_")
        return first + "".join(word.capitalize() for word in rest)

    inner = {
        name(list_): [{name(k): v for k, v in each.items()} for each in summary[list_]]
        for list_ in ("resources", "proxy_ports")
    }
    return {name(k): v for k, v in summary.items()} | inner


_STATES = {
    AllocationState.PENDING: "QUEUED",
    AllocationState.ASSIGNED: "QUEUED",
    AllocationState.PULLING: "PULLING",
    AllocationState.STARTING: "STARTING",
    AllocationState.TERMINATING: "TERMINATING",
    AllocationState.TERMINATED: "TERMINATED",
}
