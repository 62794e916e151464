"""Metrics for Prometheus: their values, the names of Determined and of Detent, and the access to them."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update
from tests.support.cluster import CONFIG, Cluster, open_cluster
from tests.support.waiting import eventually

from determined.states import ContainerState
from determined_master.agents import repository
from determined_master.cluster import state_queries
from determined_master.db.models import AgentRow

STATE, PROCESS, TARGETS = "/prom/det-state-metrics", "/debug/prom/metrics", "/prom/det-http-sd-config"
ALL = "/metrics"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def key(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


async def samples(cluster: Cluster, path: str = STATE) -> Samples:
    answer = await cluster.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    values: Samples = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            values[(sample.name, tuple(sorted(sample.labels.items())))] = sample.value
    return values


async def test_the_state_of_the_cluster_is_counted(cluster: Cluster) -> None:
    agent = await cluster.join(slots=3)
    await cluster.create(CONFIG + "resources: {slots_per_trial: 2}\nlabels: [vision]\n")
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await cluster.create(CONFIG + "resources: {slots_per_trial: 2}\n")
    await cluster.post("/api/v1/agents/one/slots/2/disable", {})

    async def with_pending() -> Samples | None:
        values = await samples(cluster)
        return values if key("detent_allocations", pool="default", state="PENDING") in values else None

    values = await eventually(with_pending)
    assert values[key("detent_experiments", state="ACTIVE")] == 2
    assert values[key("detent_agents", state="connected")] == 1
    assert values[key("detent_slots", pool="default", type="cpu", state="held")] == 2
    assert values[key("detent_slots", pool="default", type="cpu", state="disabled")] == 1
    assert values[key("detent_allocations", pool="default", state="RUNNING")] == 1
    assert values[key("detent_storage_writable")] == 1
    pair = {"container_id": desired.container_id, "allocation_id": desired.allocation_id}
    assert values[key("det_container_id_allocation_id", **pair)] == 1
    assert values[key("det_experiment_id_label", experiment_id="1", label="vision")] == 1
    job = (await cluster.get("/api/v1/experiments/1"))["experiment"]["jobId"]
    assert values[key("det_job_id_experiment_id", job_id=job, experiment_id="1")] == 1


@pytest.mark.parametrize(
    ("column", "value", "state"),
    [("disconnected_at", datetime(2026, 1, 1, tzinfo=UTC), "away"), ("leaving", True, "leaving")],
)
async def test_slots_of_an_agent_that_takes_no_work_are_not_counted_as_free(
    cluster: Cluster, column: str, value: object, state: str
) -> None:
    await cluster.join(slots=2)
    async with cluster.master.database.write() as session:
        await session.execute(update(AgentRow).values({column: value}))
        counts = await state_queries.slots_by_state(session)
    assert counts == {("default", "cpu", state): 2}


async def test_the_gpus_of_a_container_are_named_by_their_uuids(cluster: Cluster) -> None:
    agent = await cluster.join(slots=1)
    await cluster.create(CONFIG)
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    assert not [name for name, _ in await samples(cluster) if name == "det_gpu_uuid_container_id"]
    async with cluster.master.database.write() as session:
        await repository.change_slot(session, "one", 0, uuid="GPU-1")
    assert (await samples(cluster))[
        key("det_gpu_uuid_container_id", gpu_uuid="GPU-1", container_id=desired.container_id)
    ] == 1


async def test_a_container_of_an_engine_is_named_by_the_engines_id(cluster: Cluster) -> None:
    agent = await cluster.join(slots=1)
    await cluster.create(CONFIG)
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    name = "det_container_id_runtime_container_id"
    assert not [found for found, _ in await samples(cluster) if found == name]  # a process
    report = agent.report_of(desired, ContainerState.RUNNING).model_copy(update={"runtime_id": "4f5e6d"})
    await cluster.master.agents.on_report("one", [report])
    expected = key(name, container_id=desired.container_id, runtime_container_id="4f5e6d")
    assert (await samples(cluster))[expected] == 1
    await agent.send_report(desired, ContainerState.RUNNING)  # an agent that cannot ask its engine keeps the id
    assert (await samples(cluster))[expected] == 1


async def test_metrics_of_the_process_are_served(cluster: Cluster) -> None:
    values = await samples(cluster, PROCESS)
    assert values[key("process_resident_memory_bytes")] > 1 << 20
    assert values[key("detent_reports_waiting")] == 0
    assert key("detent_report_groups_total") in values


async def test_targets_name_the_exporters_of_each_agent(cluster: Cluster) -> None:
    await cluster.join(slots=1)
    targets = await cluster.get(TARGETS)
    assert [each["targets"][0].rpartition(":")[2] for each in targets] == ["8080", "9400"]
    assert targets[0]["labels"] == {"det_agent_id": "one", "det_resource_pool_id": "default"}


async def test_the_path_metrics_has_the_metrics_of_the_state_and_of_the_process(cluster: Cluster) -> None:
    values = await samples(cluster, ALL)
    assert {*await samples(cluster), *await samples(cluster, PROCESS)} <= {*values}
    assert values[key("detent_storage_writable")] == 1
    assert values[key("process_resident_memory_bytes")] > 0


@pytest.mark.parametrize("path", [STATE, PROCESS, TARGETS, ALL])
async def test_metrics_need_a_token_unless_metrics_access_is_everybody(tmp_path: Path, path: str) -> None:
    nobody = {"Authorization": ""}
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
    async with open_cluster(tmp_path / "closed") as cluster:
        assert (await cluster.client.get(path, headers=nobody)).status_code == 401
    async with open_cluster(tmp_path / "open", metrics_access="everybody") as cluster:
        assert (await cluster.client.get(path, headers=nobody)).status_code == 200
