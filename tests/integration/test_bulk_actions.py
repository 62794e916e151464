"""Bulk actions: they act on the named experiments and no others, with a result for each experiment."""

from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, login
from tests.support.columns import update_columns
from tests.support.makers import add_experiment, add_project

from determined.states import ExperimentState
from determined_master.experiments.commands.lifecycle import Lifecycle

VERBS = ["activate", "pause", "cancel", "kill", "archive", "unarchive"]


async def bulk(cluster: Cluster, verb: str, ids: list[int], project: int = 1, **body: Any) -> Any:
    path = f"/api/v1/projects/{project}/experiments/{verb}"
    method = "DELETE" if verb == "delete" else "POST"
    return await cluster.client.request(method, path, json={"experimentIds": ids, **body})


async def errors(cluster: Cluster, verb: str, ids: list[int], **body: Any) -> dict[int, str]:
    answer = await bulk(cluster, verb, ids, **body)
    assert answer.status_code == 200, answer.text
    return {result["id"]: result["error"] for result in answer.json()["results"]}


async def add_ended(cluster: Cluster, count: int, **values: Any) -> list[int]:
    async with cluster.master.database.write() as session:
        return [(await add_experiment(session, **values)).id for _ in range(count)]


async def states(cluster: Cluster) -> list[tuple[Any, ...]]:
    rows = (await cluster.post("/detent/experiments/search", {"sort": "id=asc", "showArchived": True})).json()
    return [(r["id"], r["state"], r["archived"], r["labels"], r["projectId"]) for r in rows["experiments"]]


async def test_each_experiment_of_a_bulk_action_has_its_own_result(cluster: Cluster):
    live = await cluster.create(CONFIG, activate=False)
    done = (await add_ended(cluster, 1))[0]
    refusals = await errors(cluster, "activate", [done, live, 99, live])
    assert list(refusals) == [done, live, 99]
    assert "has ended" in refusals[done]
    assert refusals[live] == ""
    assert "not found in project 1" in refusals[99]
    assert await errors(cluster, "pause", [live]) == {live: ""}
    assert await errors(cluster, "kill", [live]) == {live: ""}
    assert await errors(cluster, "archive", [done], projectId=1) == {done: ""}
    assert await errors(cluster, "unarchive", [done]) == {done: ""}
    assert await errors(cluster, "delete", [done]) == {done: ""}


@pytest.mark.parametrize("verb", [*VERBS, "delete", "move"])
async def test_an_unexpected_count_changes_nothing(cluster: Cluster, verb: str):
    live = await cluster.create(CONFIG, activate=False)
    chosen = [live, *await add_ended(cluster, 1), *await add_ended(cluster, 1, archived=True)]
    async with cluster.master.database.write() as session:
        elsewhere = await add_project(session)
    before = await states(cluster)
    for ids, count in ((chosen, 2), (chosen, 4), ([*chosen, 999], 4), ([*chosen, chosen[0]], 4), ([], 1)):
        answer = await bulk(cluster, verb, ids, expectedCount=count, destinationProjectId=elsewhere)
        assert answer.status_code == 412, (ids, count, answer.text)
        assert "nothing was changed" in answer.json()["error"]["error"]
    assert await states(cluster) == before
    assert (await bulk(cluster, verb, chosen, expectedCount=3, destinationProjectId=elsewhere)).status_code == 200


@pytest.mark.parametrize("filters", [{}, {"projectId": 1}, {"excludedExperimentIds": [1]}])
async def test_filters_and_ids_exclude_each_other(cluster: Cluster, filters: dict[str, Any]):
    (done,) = await add_ended(cluster, 1)
    for verb in [*VERBS, "delete", "move"]:
        answer = await bulk(cluster, verb, [done], filters=filters, destinationProjectId=1)
        assert answer.status_code == 400
        assert "exclude each other" in answer.json()["error"]["error"]
    assert await states(cluster) == [(done, "STATE_COMPLETED", False, [], 1)]


FILTERS: list[dict[str, Any]] = [
    {},
    {"projectId": 1},
    {"name": "ONE", "userIds": [1]},
    {"labels": ["old", "kept"]},
    {"labels": ["kept"], "excludedExperimentIds": [2]},
    {"states": ["STATE_ERROR"]},
    {"archived": True},
    {"description": "nobody"},
]


@pytest.mark.parametrize("filters", FILTERS)
async def test_a_filter_acts_on_exactly_the_ids_that_it_lists(cluster: Cluster, filters: dict[str, Any]):
    await add_ended(cluster, 2, labels=["kept", "old"], name="one")
    await add_ended(cluster, 1, labels=["kept"], state=ExperimentState.ERROR)
    await add_ended(cluster, 1, archived=True, user_id=2, name="one of another")
    await add_ended(cluster, 1, state=ExperimentState.DELETED)
    async with cluster.master.database.write() as session:
        await add_experiment(session, project_id=await add_project(session))
    query = {key: value for key, value in filters.items() if key != "excludedExperimentIds"} | {"projectId": 1}
    query = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}
    listed = {each["id"] for each in (await cluster.get("/api/v1/experiments", **query))["experiments"]}
    expected = listed - set(filters.get("excludedExperimentIds", ()))
    refusals = await errors(cluster, "delete", [], filters=filters, expectedCount=len(expected))
    assert refusals == dict.fromkeys(sorted(expected), "")
    left = {row[0] for row in await states(cluster) if row[1] != "STATE_DELETING"}
    assert left == {1, 2, 3, 4, 6} - expected


async def test_a_filter_that_finds_an_unexpected_count_changes_nothing(cluster: Cluster):
    await add_ended(cluster, 2)
    before = await states(cluster)
    assert (await bulk(cluster, "archive", [], filters={}, expectedCount=3)).status_code == 412
    assert await states(cluster) == before


async def test_a_refused_experiment_is_rolled_back_and_the_others_of_the_filter_change(cluster: Cluster):
    live = await cluster.create(CONFIG, activate=False)
    done, theirs = await add_ended(cluster, 1), await add_ended(cluster, 1, user_id=1)
    await login(cluster.client, "determined")
    mine = await add_ended(cluster, 1, user_id=2)
    refusals = await errors(cluster, "archive", [], filters={})
    assert refusals[mine[0]] == ""
    assert all("only admin or an admin may" in refusals[each] for each in (live, *done, *theirs))
    await login(cluster.client, "admin")
    refusals = await errors(cluster, "archive", [], filters={"excludedExperimentIds": mine})
    assert "only an experiment that has ended" in refusals[live]
    assert sorted((row[0], row[2]) for row in await states(cluster)) == [(1, False), (2, True), (3, True), (4, True)]


@pytest.mark.parametrize("project", [-1, 0])
async def test_projects_0_and_minus_1_mean_any_project(cluster: Cluster, project: int):
    async with cluster.master.database.write() as session:
        elsewhere = (await add_experiment(session, project_id=await add_project(session))).id
    (here,) = await add_ended(cluster, 1)
    await update_columns(cluster.master.indexer)
    assert await errors(cluster, "archive", [here, elsewhere], project=project) == {here: "", elsewhere: ""}
    assert await errors(cluster, "unarchive", [], project=project, filters={}) == {here: "", elsewhere: ""}
    assert await errors(cluster, "archive", [here], project=project, projectId=project) == {here: ""}
    assert (await cluster.get("/api/v1/experiments", projectId=project))["pagination"]["total"] == 2
    for path in ("columns", "experiments/metric-ranges"):
        assert await cluster.get(f"/api/v1/projects/{project}/{path}")
    answer = await cluster.post("/api/v1/experiments-search", {"projectId": project})
    assert answer.json()["pagination"]["total"] == 1


async def test_a_bulk_action_reaches_only_its_own_project(cluster: Cluster):
    async with cluster.master.database.write() as session:
        elsewhere = await add_project(session)
        theirs = (await add_experiment(session, project_id=elsewhere)).id
        gone = (await add_experiment(session, state=ExperimentState.DELETED)).id
    (mine,) = await add_ended(cluster, 1)
    assert (await bulk(cluster, "archive", [mine, theirs], expectedCount=2)).status_code == 412
    assert (await bulk(cluster, "archive", [mine, gone], project=0, expectedCount=2)).status_code == 412
    assert (await errors(cluster, "archive", [mine, theirs, gone]))[mine] == ""
    assert [s[2] for s in await states(cluster)] == [False, True]
    assert await errors(cluster, "archive", [mine, theirs], project=0, expectedCount=2) == {mine: "", theirs: ""}
    assert (await bulk(cluster, "archive", [mine], project=77)).status_code == 404
    assert (await bulk(cluster, "archive", [mine], project=1, projectId=2)).status_code == 400
    refusals = await errors(cluster, "archive", [10**30, -1, 0], project=0)
    assert all("not found" in error for error in refusals.values())


async def test_moved_experiments_are_listed_and_counted_in_their_new_project(cluster: Cluster):
    first, second = await add_ended(cluster, 2)
    await update_columns(cluster.master.indexer)
    async with cluster.master.database.write() as session:
        elsewhere = await add_project(session)
        shut = await add_project(session, "shut", archived=True)
    assert await errors(cluster, "move", [first], destinationProjectId=elsewhere) == {first: ""}
    await update_columns(cluster.master.indexer)
    answer = (await cluster.post("/detent/experiments/search/ids", {"projectId": elsewhere})).json()
    assert answer["ids"] == [first]
    for project in (1, elsewhere):
        column = (await cluster.get("/detent/columns", query="slots_per_trial", projectId=project))["columns"][0]
        assert column["count"] == 1
    assert (await cluster.get("/detent/columns", query="slots_per_trial"))["columns"][0]["count"] == 2
    assert (await bulk(cluster, "move", [second], destinationProjectId=shut)).status_code == 400
    assert (await bulk(cluster, "move", [second], destinationProjectId=99)).status_code == 404


async def test_labels_are_put_on_and_taken_off_at_once(cluster: Cluster):
    first, second = await add_ended(cluster, 2, labels=["old", "kept"])
    body = {"experimentIds": [first, second], "expectedCount": 2, "add": [" new "], "remove": ["old"]}
    answer = await cluster.post("/detent/experiments/labels", body)
    assert answer.json() == {"results": [{"id": first, "error": ""}, {"id": second, "error": ""}]}
    assert [s[3] for s in await states(cluster)] == [["kept", "new"], ["kept", "new"]]
    assert (await cluster.get("/api/v1/experiment/labels"))["labels"] == ["kept", "new"]
    assert (await cluster.post("/detent/experiments/labels", body | {"expectedCount": 1})).status_code == 412
    assert (await cluster.post("/detent/experiments/labels", body | {"add": ["  "]})).status_code == 400
    assert (await cluster.post("/detent/experiments/labels", body | {"add": ["x" * 256]})).status_code == 400


async def test_an_experiment_that_raises_stops_no_other_of_the_bulk_action(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    first, second, third = await add_ended(cluster, 3)
    archive = cluster.master.lifecycle.archive

    async def breaks(experiment_id: int, *rest: Any, **more: Any) -> None:
        if experiment_id == second:
            raise RuntimeError("a secret of the master's")
        await archive(experiment_id, *rest, **more)

    monkeypatch.setattr(cluster.master.lifecycle, "archive", breaks)
    refusals = await errors(cluster, "archive", [first, second, third])
    assert (refusals[first], refusals[third]) == ("", "")
    assert "internal error" in refusals[second]
    assert "secret" not in refusals[second]


async def test_a_task_token_may_use_no_bulk_action(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    task = cluster.as_task(desired.allocation_id)
    path = "/api/v1/projects/1/experiments/kill"
    assert (await cluster.client.post(path, json={"experimentIds": [experiment]}, headers=task)).status_code == 403
    assert (await cluster.client.post("/detent/experiments/search", json={}, headers=task)).status_code == 200
    assert (await cluster.client.get("/api/v1/users/setting", headers=task)).status_code == 403


async def test_each_user_has_settings_of_their_own(cluster: Cluster):
    body = {"settings": [{"key": "a", "storagePath": "p", "value": "1"}, {"key": "b", "value": "x" * 1000}]}
    assert (await cluster.post("/api/v1/users/setting", body)).json() == {}
    assert (await cluster.post("/api/v1/users/setting", {"settings": [{"key": "a", "storagePath": "p"}]})).json() == {}
    stored = (await cluster.get("/api/v1/users/setting"))["settings"]
    assert stored == [
        {"key": "b", "storagePath": "", "value": "x" * 1000},
        {"key": "a", "storagePath": "p", "value": ""},
    ]
    too_long = {"settings": [{"key": "a", "value": "é" * 40_000}]}
    assert (await cluster.post("/api/v1/users/setting", too_long)).status_code == 400
    too_many = {"settings": [{"key": str(i), "value": "v"} for i in range(999)]}
    assert (await cluster.post("/api/v1/users/setting", too_many)).status_code == 400
    assert len((await cluster.get("/api/v1/users/setting"))["settings"]) == 2
    await login(cluster.client, "determined")
    assert (await cluster.get("/api/v1/users/setting"))["settings"] == []
    await cluster.post("/api/v1/users/setting/reset")
    await login(cluster.client, "admin")
    assert len((await cluster.get("/api/v1/users/setting"))["settings"]) == 2
    await cluster.post("/api/v1/users/setting/reset")
    assert (await cluster.get("/api/v1/users/setting"))["settings"] == []


async def test_allowed_actions_follow_the_state_and_the_owner_of_each_experiment(cluster: Cluster):
    paused = await cluster.create(CONFIG, activate=False)
    done = (await add_ended(cluster, 1))[0]
    archived = (await add_ended(cluster, 1, archived=True))[0]
    body = {"experimentIds": [archived, done, paused, 99, 2**63 - 1]}
    groups = (await cluster.post("/detent/experiments/allowed-actions", body)).json()["groups"]
    assert groups == [
        {"actions": ["activate", "cancel", "kill", "fork"], "ids": [paused]},
        {"actions": ["archive", "delete", "fork", "continue"], "ids": [done]},
        {"actions": ["unarchive", "delete", "fork"], "ids": [archived]},
    ]
    for group in groups:
        for id in group["ids"]:
            can = (await cluster.get(f"/detent/experiments/{id}/status"))["can"]
            assert group["actions"] == [action for action, allowed in can.items() if allowed]


async def test_allowed_actions_on_another_users_experiment_are_only_to_fork_it(cluster: Cluster):
    done = (await add_ended(cluster, 1))[0]
    await login(cluster.client, "determined")
    answer = await cluster.post("/detent/experiments/allowed-actions", {"experimentIds": [done]})
    await login(cluster.client, "admin")
    assert answer.json() == {"groups": [{"actions": ["fork"], "ids": [done]}]}


async def test_an_unexpected_error_is_the_result_of_its_experiment_among_those_of_a_filter(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    first, second = await add_ended(cluster, 2)
    original = Lifecycle.archive

    async def raises(self: Lifecycle, experiment_id: int, *arguments: Any, **values: Any) -> Any:
        if experiment_id == first:
            raise RuntimeError("a test's")
        return await original(self, experiment_id, *arguments, **values)

    monkeypatch.setattr(Lifecycle, "archive", raises)
    results = await errors(cluster, "archive", [], filters={})
    assert results == {first: "internal error; see the master's log", second: ""}
    assert {row[0]: row[2] for row in await states(cluster)} == {first: False, second: True}
