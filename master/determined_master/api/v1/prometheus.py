"""Figures for Prometheus: state of the cluster, the master's process, and targets to scrape on each agent."""

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Response

from determined_master.agents import repository as agent_rows
from determined_master.api.dependencies import GroupWriterDep, MetricsReader, Read, StorageHealthDep
from determined_master.cluster import state_queries

if TYPE_CHECKING:
    from prometheus_client.core import Metric  # loaded by the first request for figures

router = APIRouter(tags=["monitoring"])

CADVISOR_PORT, DCGM_PORT = 8080, 9400
"""Ports at which the exporters of containers and of NVIDIA's GPUs listen by default."""


@router.get("/metrics", dependencies=[MetricsReader])
async def get_all(session: Read, storage: StorageHealthDep, writer: GroupWriterDep) -> Response:
    """Returns the state of the cluster and the figures of the master's process, where Prometheus looks by default."""
    from determined_master.api import prometheus_text as text

    return text.answer([*await _state(session, storage), *_process(writer)])


@router.get("/prom/det-state-metrics", dependencies=[MetricsReader])
async def get_state(session: Read, storage: StorageHealthDep) -> Response:
    """Returns counts by state, and which live containers, allocations, tasks, jobs and GPUs belong to each other."""
    from determined_master.api import prometheus_text as text

    return text.answer(await _state(session, storage))


@router.get("/debug/prom/metrics", dependencies=[MetricsReader])
async def get_process(writer: GroupWriterDep) -> Response:
    """Returns figures of the master's process: memory, processor, descriptors, and the writer of reports."""
    from determined_master.api import prometheus_text as text

    return text.answer(_process(writer))


@router.get("/prom/det-http-sd-config", dependencies=[MetricsReader])
async def get_targets(session: Read) -> list[dict[str, Any]]:
    """Returns the exporters of each agent, as Prometheus discovers them by HTTP."""
    return [
        {
            "targets": [f"{agent.hostname or agent.id}:{port}"],
            "labels": {"det_agent_id": agent.id, "det_resource_pool_id": agent.pool},
        }
        for agent in await agent_rows.present(session)
        for port in (CADVISOR_PORT, DCGM_PORT)
    ]


async def _state(session: Read, storage: StorageHealthDep) -> list["Metric"]:
    from determined_master.api import prometheus_text as text

    containers = await state_queries.live_containers(session)
    experiments = await state_queries.live_experiments(session)
    slots = await state_queries.slots_by_state(session)
    allocations = await state_queries.allocations_by_state(session)
    free = [((each.name,), float(each.free_bytes)) for each in storage.states]
    labels = [(str(number), label) for number, _, labels in experiments for label in labels]
    engine_ids = [(each.container_id, each.runtime_id) for each in containers if each.runtime_id]
    gpus = [(uuid, each.container_id) for each in containers for uuid in each.gpu_uuids]
    return [
        text.by_state("detent_experiments", "Experiments", await state_queries.experiments_by_state(session)),
        text.by_state("detent_trials", "Trials", await state_queries.trials_by_state(session)),
        text.by_state("detent_agents", "Agents", await state_queries.agents_by_state(session)),
        text.gauge("detent_slots", "Slots by state", ("pool", "type", "state"), slots.items()),
        text.gauge("detent_allocations", "Live allocations by state", ("pool", "state"), allocations.items()),
        text.gauge("detent_storage_free_bytes", "Free space of the master's storages", ("storage",), free),
        text.gauge("detent_storage_writable", "1 if the master can write", (), [((), float(storage.is_writable))]),
        text.relation(
            "container_id", "allocation_id", [(each.container_id, each.allocation_id) for each in containers]
        ),
        text.relation("container_id", "runtime_container_id", engine_ids),
        text.relation("allocation_id", "task_id", sorted({(each.allocation_id, each.task_id) for each in containers})),
        text.relation("job_id", "experiment_id", [(job_id, str(number)) for number, job_id, _ in experiments]),
        text.relation("experiment_id", "label", labels),
        text.relation("gpu_uuid", "container_id", gpus),
    ]


def _process(writer: GroupWriterDep) -> list["Metric"]:
    from determined_master.api import prometheus_text as text

    return [
        *text.process(),
        text.counter("detent_report_groups", "Transactions that stored reports and log lines", writer.groups),
        text.gauge("detent_reports_waiting", "Reports that wait for a transaction", (), [((), writer.waiting)]),
    ]
