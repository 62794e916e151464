"""Checks of a configuration against the cluster: its pool, source trial or checkpoint, image and project."""

from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid, report_checkpoint
from tests.support.cluster import Cluster
from tests.support.makers import add_project

from determined.link.messages import Hello, SlotFacts
from determined_master.experiments.commands import config_check

TEXT = "name: x\nentrypoint: python3 run.py\nsearcher:\n  name: single\n  metric: loss\n"


async def refused(cluster: Cluster, text: str) -> dict[str, Any]:
    """Submits a configuration that must be refused; returns its only diagnostic."""
    answer = await cluster.client.post("/api/v1/experiments", json={"config": text, "activate": True})
    assert answer.status_code == 400, answer.text
    (diagnostic,) = answer.json()["diagnostics"]
    assert (await cluster.get("/api/v1/experiments"))["pagination"]["total"] == 0
    return dict(diagnostic)


async def test_an_unknown_resource_pool_is_refused_with_its_line(cluster: Cluster) -> None:
    diagnostic = await refused(cluster, TEXT + "resources:\n  resource_pool: gpus\n")
    assert (diagnostic["code"], diagnostic["line"], diagnostic["column"]) == ("E208", 7, 18)
    assert diagnostic["message"] == 'unknown resource pool "gpus"'
    assert diagnostic["hint"] == 'this cluster has "default"'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("source_trial_id: 77", "trial 77 does not exist"),
        (f"source_checkpoint_uuid: {checkpoint_uuid(9)}", f"checkpoint {checkpoint_uuid(9)} does not exist"),
    ],
)
async def test_a_source_that_does_not_exist_is_refused(cluster: Cluster, line: str, message: str) -> None:
    diagnostic = await refused(cluster, f"{TEXT}  {line}\n")
    assert (diagnostic["code"], diagnostic["line"], diagnostic["message"]) == ("E208", 6, message)


async def test_a_source_without_a_checkpoint_is_refused(cluster: Cluster) -> None:
    await cluster.create()
    answer = await cluster.client.post("/api/v1/experiments", json={"config": TEXT + "  source_trial_id: 1\n"})
    assert answer.status_code == 400
    assert "trial 1 has no checkpoint to start from" in answer.text


async def test_a_deleted_checkpoint_is_refused_and_a_stored_one_accepted(cluster: Cluster) -> None:
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await report_checkpoint(cluster, desired.allocation_id, checkpoint_uuid(1))
    for source in (f"source_checkpoint_uuid: {checkpoint_uuid(1)}", "source_trial_id: 1"):
        answer = await cluster.client.post("/api/v1/experiments", json={"config": f"{TEXT}  {source}\n"})
        assert answer.status_code == 200, answer.text
    deleted = await cluster.client.request(
        "DELETE", "/api/v1/checkpoints", json={"checkpointUuids": [checkpoint_uuid(1)]}
    )
    assert deleted.status_code == 200, deleted.text
    body = {"config": f"{TEXT}  source_checkpoint_uuid: {checkpoint_uuid(1)}\n"}
    answer = await cluster.client.post("/api/v1/experiments", json=body)
    assert answer.status_code == 400
    assert "has no files any more (deleted)" in answer.text


async def test_the_check_of_the_page_names_an_unknown_pool(cluster: Cluster) -> None:
    text = TEXT + "resources: {resource_pool: gpus}\n"
    answer = await cluster.post("/detent/config/check", {"config": text})
    assert 'unknown resource pool \\"gpus\\"' in answer.text, answer.text


IMAGE = TEXT + "environment:\n  image: lab/train:1\nresources:\n  shm_size: 1g\n  max_slots: 3\n"


@pytest.mark.parametrize(
    ("runtime", "keys"),
    [
        ("process", ["environment.image", "resources.shm_size"]),
        ("docker", []),
    ],
)
async def test_an_image_is_warned_about_only_where_no_agent_runs_containers(
    cluster: Cluster, runtime: str, keys: list[str]
) -> None:
    await cluster.master.agents.welcome(Hello(agent_id="box", slots=[SlotFacts(id=0)], container_runtime=runtime))
    answer = await cluster.client.post("/detent/config/check", json={"config": IMAGE})
    assert [each["path"] for each in answer.json()["diagnostics"]] == keys


HOME = "workspace: Vision\nproject: Digits\n"
WARNING = 'workspace "Vision" with project "Digits" does not exist; the experiment goes to "Uncategorized"'


async def warnings_of(cluster: Cluster, config: str) -> list[tuple[str, str, int]]:
    answer = (await cluster.post("/detent/config/check", {"config": config})).json()
    assert answer["ok"] is True
    return [(each["code"], each["message"], each["line"]) for each in answer["diagnostics"]]


async def test_a_project_that_does_not_exist_is_a_warning_with_its_line(cluster: Cluster) -> None:
    assert await warnings_of(cluster, TEXT + HOME) == [("W507", WARNING, 6)]
    unknown = TEXT + "workspace: Uncategorized\nproject: Digits\n"
    expected = 'project "Digits" does not exist in workspace "Uncategorized"; the experiment goes to "Uncategorized"'
    assert await warnings_of(cluster, unknown) == [("W507", expected, 7)]
    assert await warnings_of(cluster, TEXT) == []
    assert await warnings_of(cluster, TEXT + "workspace: Uncategorized\nproject: Uncategorized\n") == []


async def test_the_log_of_the_first_trial_warns_about_a_missing_project(cluster: Cluster) -> None:
    experiment = await cluster.create(TEXT + HOME)
    assert (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["projectId"] == 1
    lines = (await cluster.get("/detent/trials/1/logs"))["lines"]
    assert WARNING in "".join(line["text"] for line in lines)


async def test_an_experiment_goes_to_the_project_that_its_configuration_names(cluster: Cluster) -> None:
    async with cluster.master.database.write() as session:
        project_id = await add_project(session)
    named = (await cluster.get(f"/api/v1/projects/{project_id}"))["project"]
    home = f"workspace: {named['workspaceName']}\nproject: {named['name']}\n"
    assert await warnings_of(cluster, TEXT + home) == []
    experiment = await cluster.create(TEXT + home)
    assert (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]["projectId"] == project_id


async def test_the_master_checks_a_configuration_once_for_a_client_that_asks_before_it_creates(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: list[str] = []
    check = config_check.check
    monkeypatch.setattr(config_check, "check", lambda text, **options: texts.append(text) or check(text, **options))
    await warnings_of(cluster, TEXT + HOME)
    for _ in range(2):
        await cluster.post("/api/v1/experiments", {"config": TEXT + HOME})
    assert texts == [TEXT + HOME] * 2, "the second creation was not preceded by a check"


async def test_the_result_of_a_check_is_used_for_one_creation(cluster: Cluster) -> None:
    body = {"config": TEXT.replace("name: x\n", "")}
    await warnings_of(cluster, body["config"])
    first, second = [(await cluster.post("/api/v1/experiments", body)).json()["experiment"] for _ in range(2)]
    assert first["name"] != second["name"]


async def test_a_creation_after_a_check_looks_at_the_projects_again(cluster: Cluster) -> None:
    text = TEXT + "workspace: Uncategorized\nproject: elsewhere\n"
    ((code, _, _),) = await warnings_of(cluster, text)
    assert code == "W507"
    async with cluster.master.database.write() as session:
        project_id = await add_project(session)
    answer = await cluster.post("/api/v1/experiments", {"config": text})
    assert answer.json()["experiment"]["projectId"] == project_id
