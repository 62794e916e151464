"""Figures for Prometheus: what is counted, in the words of Determined and our own, and who may read them."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.cluster import CONFIG, Cluster, cluster
from tests.support.waiting import eventually

from determined.states import ContainerState
from determined_master.agents import repository

STATE, PROCESS, TARGETS = "/prom/det-state-metrics", "/debug/prom/metrics", "/prom/det-http-sd-config"
ALL = "/metrics"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def key(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


async def samples(one: Cluster, path: str = STATE) -> Samples:
    answer = await one.client.get(path)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found: Samples = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found[(sample.name, tuple(sorted(sample.labels.items())))] = sample.value
    return found


async def test_the_state_of_the_cluster_is_counted(one: Cluster) -> None:
    agent = await one.join(slots=3)
    await one.create(CONFIG + "resources: {slots_per_trial: 2}\nlabels: [vision]\n")
    wish = (await agent.wished())[0]
    await agent.run(wish)
    await one.create(CONFIG + "resources: {slots_per_trial: 2}\n")
    await one.post("/api/v1/agents/one/slots/2/disable", {})

    async def both() -> Samples | None:
        found = await samples(one)
        return found if key("detent_allocations", pool="default", state="PENDING") in found else None

    found = await eventually(both)
    assert found[key("detent_experiments", state="ACTIVE")] == 2
    assert found[key("detent_agents", state="connected")] == 1
    assert found[key("detent_slots", pool="default", type="cpu", state="held")] == 2
    assert found[key("detent_slots", pool="default", type="cpu", state="disabled")] == 1
    assert found[key("detent_allocations", pool="default", state="RUNNING")] == 1
    assert found[key("detent_storage_writable")] == 1
    pair = {"container_id": wish.container_id, "allocation_id": wish.allocation_id}
    assert found[key("det_container_id_allocation_id", **pair)] == 1
    assert found[key("det_experiment_id_label", experiment_id="1", label="vision")] == 1
    job = (await one.get("/api/v1/experiments/1"))["experiment"]["jobId"]
    assert found[key("det_job_id_experiment_id", job_id=job, experiment_id="1")] == 1


async def test_the_gpus_of_a_container_are_named_by_their_uuids(one: Cluster) -> None:
    agent = await one.join(slots=1)
    await one.create(CONFIG)
    wish = (await agent.wished())[0]
    await agent.run(wish)
    assert not [name for name, _ in await samples(one) if name == "det_gpu_uuid_container_id"]
    async with one.master.database.write() as session:
        await repository.change_slot(session, "one", 0, uuid="GPU-1")
    assert (await samples(one))[key("det_gpu_uuid_container_id", gpu_uuid="GPU-1", container_id=wish.container_id)] == 1


async def test_a_container_of_an_engine_is_named_by_the_engines_id(one: Cluster) -> None:
    agent = await one.join(slots=1)
    await one.create(CONFIG)
    wish = (await agent.wished())[0]
    await agent.run(wish)
    name = "det_container_id_runtime_container_id"
    assert not [found for found, _ in await samples(one) if found == name]  # a process
    report = agent.truth(wish, ContainerState.RUNNING).model_copy(update={"runtime_id": "4f5e6d"})
    await one.master.agents.on_report("one", [report])
    expected = key(name, container_id=wish.container_id, runtime_container_id="4f5e6d")
    assert (await samples(one))[expected] == 1
    await agent.say(wish, ContainerState.RUNNING)  # an agent that cannot ask its engine keeps the id
    assert (await samples(one))[expected] == 1


async def test_the_process_is_described(one: Cluster) -> None:
    found = await samples(one, PROCESS)
    assert found[key("process_resident_memory_bytes")] > 1 << 20
    assert found[key("detent_reports_waiting")] == 0
    assert key("detent_report_groups_total") in found


async def test_targets_name_the_exporters_of_each_agent(one: Cluster) -> None:
    await one.join(slots=1)
    targets = await one.get(TARGETS)
    assert [each["targets"][0].rpartition(":")[2] for each in targets] == ["8080", "9400"]
    assert targets[0]["labels"] == {"det_agent_id": "one", "det_resource_pool_id": "default"}


async def test_the_usual_path_has_the_state_and_the_process(one: Cluster) -> None:
    found = await samples(one, ALL)
    assert {*await samples(one), *await samples(one, PROCESS)} <= {*found}
    assert found[key("detent_storage_writable")] == 1
    assert found[key("process_resident_memory_bytes")] > 0


@pytest.mark.parametrize("path", [STATE, PROCESS, TARGETS, ALL])
async def test_a_token_is_needed_unless_the_admin_says_otherwise(tmp_path: Path, path: str) -> None:
    nobody = {"Authorization": ""}
    for name in ("closed", "open"):
        (tmp_path / name).mkdir()
    async with cluster(tmp_path / "closed") as one:
        assert (await one.client.get(path, headers=nobody)).status_code == 401
    async with cluster(tmp_path / "open", metrics_access="everybody") as one:
        assert (await one.client.get(path, headers=nobody)).status_code == 200
