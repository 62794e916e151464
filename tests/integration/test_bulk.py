"""One verb to many experiments: those that are named and no others, each answering for itself."""

from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster, login
from tests.support.makers import add_experiment, add_project

from determined.states import ExperimentState

VERBS = ["activate", "pause", "cancel", "kill", "archive", "unarchive"]


async def bulk(one: Cluster, verb: str, ids: list[int], project: int = 1, **body: Any) -> Any:
    path = f"/api/v1/projects/{project}/experiments/{verb}"
    method = "DELETE" if verb == "delete" else "POST"
    return await one.client.request(method, path, json={"experimentIds": ids, **body})


async def errors(one: Cluster, verb: str, ids: list[int], **body: Any) -> dict[int, str]:
    answer = await bulk(one, verb, ids, **body)
    assert answer.status_code == 200, answer.text
    return {result["id"]: result["error"] for result in answer.json()["results"]}


async def ended(one: Cluster, count: int, **values: Any) -> list[int]:
    async with one.master.database.write() as session:
        return [(await add_experiment(session, **values)).id for _ in range(count)]


async def states(one: Cluster) -> list[tuple[Any, ...]]:
    rows = (await one.post("/detent/experiments/search", {"sort": "id=asc", "showArchived": True})).json()
    return [(r["id"], r["state"], r["archived"], r["labels"], r["projectId"]) for r in rows["experiments"]]


async def test_each_experiment_of_a_bulk_action_has_its_own_result(one: Cluster):
    live = await one.create(CONFIG, activate=False)
    done = (await ended(one, 1))[0]
    told = await errors(one, "activate", [done, live, 99, live])
    assert list(told) == [done, live, 99]
    assert "has ended" in told[done]
    assert told[live] == ""
    assert "not found in project 1" in told[99]
    assert await errors(one, "pause", [live]) == {live: ""}
    assert await errors(one, "kill", [live]) == {live: ""}
    assert await errors(one, "archive", [done], projectId=1) == {done: ""}
    assert await errors(one, "unarchive", [done]) == {done: ""}
    assert await errors(one, "delete", [done]) == {done: ""}


@pytest.mark.parametrize("verb", [*VERBS, "delete", "move"])
async def test_an_unexpected_count_changes_nothing(one: Cluster, verb: str):
    live = await one.create(CONFIG, activate=False)
    chosen = [live, *await ended(one, 1), *await ended(one, 1, archived=True)]
    async with one.master.database.write() as session:
        elsewhere = await add_project(session)
    before = await states(one)
    for ids, count in ((chosen, 2), (chosen, 4), ([*chosen, 999], 4), ([*chosen, chosen[0]], 4), ([], 1)):
        answer = await bulk(one, verb, ids, expectedCount=count, destinationProjectId=elsewhere)
        assert answer.status_code == 412, (ids, count, answer.text)
        assert "nothing was changed" in answer.json()["error"]["error"]
    assert await states(one) == before
    assert (await bulk(one, verb, chosen, expectedCount=3, destinationProjectId=elsewhere)).status_code == 200


@pytest.mark.parametrize("filters", [{}, {"projectId": 1}, {"excludedExperimentIds": [1]}])
async def test_filters_and_ids_exclude_each_other(one: Cluster, filters: dict[str, Any]):
    (done,) = await ended(one, 1)
    for verb in [*VERBS, "delete", "move"]:
        answer = await bulk(one, verb, [done], filters=filters, destinationProjectId=1)
        assert answer.status_code == 400
        assert "exclude each other" in answer.json()["error"]["error"]
    assert await states(one) == [(done, "STATE_COMPLETED", False, [], 1)]


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
async def test_a_filter_acts_on_exactly_the_ids_that_it_lists(one: Cluster, filters: dict[str, Any]):
    await ended(one, 2, labels=["kept", "old"], name="one")
    await ended(one, 1, labels=["kept"], state=ExperimentState.ERROR)
    await ended(one, 1, archived=True, user_id=2, name="one of another")
    await ended(one, 1, state=ExperimentState.DELETED)
    async with one.master.database.write() as session:
        await add_experiment(session, project_id=await add_project(session))
    asked = {key: value for key, value in filters.items() if key != "excludedExperimentIds"} | {"projectId": 1}
    asked = {key: str(value).lower() if isinstance(value, bool) else value for key, value in asked.items()}
    listed = {each["id"] for each in (await one.get("/api/v1/experiments", **asked))["experiments"]}
    expected = listed - set(filters.get("excludedExperimentIds", ()))
    told = await errors(one, "delete", [], filters=filters, expectedCount=len(expected))
    assert told == dict.fromkeys(sorted(expected), "")
    left = {row[0] for row in await states(one) if row[1] != "STATE_DELETING"}
    assert left == {1, 2, 3, 4, 6} - expected


async def test_a_filter_whose_number_is_another_changes_nothing(one: Cluster):
    await ended(one, 2)
    before = await states(one)
    assert (await bulk(one, "archive", [], filters={}, expectedCount=3)).status_code == 412
    assert await states(one) == before


async def test_one_that_refuses_is_rolled_back_and_the_others_of_the_filter_change(one: Cluster):
    live = await one.create(CONFIG, activate=False)
    done, theirs = await ended(one, 1), await ended(one, 1, user_id=1)
    await login(one.client, "determined")
    mine = await ended(one, 1, user_id=2)
    told = await errors(one, "archive", [], filters={})
    assert told[mine[0]] == ""
    assert all("only admin or an admin may" in told[each] for each in (live, *done, *theirs))
    await login(one.client, "admin")
    told = await errors(one, "archive", [], filters={"excludedExperimentIds": mine})
    assert "only an experiment that has ended" in told[live]
    assert sorted((row[0], row[2]) for row in await states(one)) == [(1, False), (2, True), (3, True), (4, True)]


@pytest.mark.parametrize("project", [-1, 0])
async def test_project_minus_one_means_any(one: Cluster, project: int):
    async with one.master.database.write() as session:
        elsewhere = (await add_experiment(session, project_id=await add_project(session))).id
    (here,) = await ended(one, 1)
    await one.master.indexer.catch_up(at_once=True)
    assert await errors(one, "archive", [here, elsewhere], project=project) == {here: "", elsewhere: ""}
    assert await errors(one, "unarchive", [], project=project, filters={}) == {here: "", elsewhere: ""}
    assert await errors(one, "archive", [here], project=project, projectId=project) == {here: ""}
    assert (await one.get("/api/v1/experiments", projectId=project))["pagination"]["total"] == 2
    for path in ("columns", "experiments/metric-ranges"):
        assert await one.get(f"/api/v1/projects/{project}/{path}")
    found = await one.post("/api/v1/experiments-search", {"projectId": project})
    assert found.json()["pagination"]["total"] == 1


async def test_a_bulk_action_reaches_only_its_own_project(one: Cluster):
    async with one.master.database.write() as session:
        elsewhere = await add_project(session)
        theirs = (await add_experiment(session, project_id=elsewhere)).id
        gone = (await add_experiment(session, state=ExperimentState.DELETED)).id
    (mine,) = await ended(one, 1)
    assert (await bulk(one, "archive", [mine, theirs], expectedCount=2)).status_code == 412
    assert (await bulk(one, "archive", [mine, gone], project=0, expectedCount=2)).status_code == 412
    assert (await errors(one, "archive", [mine, theirs, gone]))[mine] == ""
    assert [s[2] for s in await states(one)] == [False, True]
    assert await errors(one, "archive", [mine, theirs], project=0, expectedCount=2) == {mine: "", theirs: ""}
    assert (await bulk(one, "archive", [mine], project=77)).status_code == 404
    assert (await bulk(one, "archive", [mine], project=1, projectId=2)).status_code == 400
    told = await errors(one, "archive", [10**30, -1, 0], project=0)
    assert all("not found" in error for error in told.values())


async def test_moved_experiments_are_listed_and_counted_in_their_new_project(one: Cluster):
    first, second = await ended(one, 2)
    await one.master.indexer.catch_up(at_once=True)
    async with one.master.database.write() as session:
        elsewhere = await add_project(session)
        shut = await add_project(session, "shut", archived=True)
    assert await errors(one, "move", [first], destinationProjectId=elsewhere) == {first: ""}
    await one.master.indexer.catch_up(at_once=True)
    found = (await one.post("/detent/experiments/search/ids", {"projectId": elsewhere})).json()
    assert found["ids"] == [first]
    for project in (1, elsewhere):
        column = (await one.get("/detent/columns", query="slots_per_trial", projectId=project))["columns"][0]
        assert column["count"] == 1
    assert (await one.get("/detent/columns", query="slots_per_trial"))["columns"][0]["count"] == 2
    assert (await bulk(one, "move", [second], destinationProjectId=shut)).status_code == 400
    assert (await bulk(one, "move", [second], destinationProjectId=99)).status_code == 404


async def test_labels_are_put_on_and_taken_off_at_once(one: Cluster):
    first, second = await ended(one, 2, labels=["old", "kept"])
    body = {"experimentIds": [first, second], "expectedCount": 2, "add": [" new "], "remove": ["old"]}
    answer = await one.post("/detent/experiments/labels", body)
    assert answer.json() == {"results": [{"id": first, "error": ""}, {"id": second, "error": ""}]}
    assert [s[3] for s in await states(one)] == [["kept", "new"], ["kept", "new"]]
    assert (await one.get("/api/v1/experiment/labels"))["labels"] == ["kept", "new"]
    assert (await one.post("/detent/experiments/labels", body | {"expectedCount": 1})).status_code == 412
    assert (await one.post("/detent/experiments/labels", body | {"add": ["  "]})).status_code == 400
    assert (await one.post("/detent/experiments/labels", body | {"add": ["x" * 256]})).status_code == 400


async def test_an_experiment_that_raises_stops_no_other_of_the_bulk_action(
    one: Cluster, monkeypatch: pytest.MonkeyPatch
):
    first, second, third = await ended(one, 3)
    archive = one.master.lifecycle.archive

    async def breaks(experiment_id: int, *rest: Any, **more: Any) -> None:
        if experiment_id == second:
            raise RuntimeError("a secret of the master's")
        await archive(experiment_id, *rest, **more)

    monkeypatch.setattr(one.master.lifecycle, "archive", breaks)
    told = await errors(one, "archive", [first, second, third])
    assert (told[first], told[third]) == ("", "")
    assert "internal error" in told[second]
    assert "secret" not in told[second]


async def test_a_task_token_may_use_no_bulk_action(one: Cluster):
    agent = await one.join()
    experiment = await one.create()
    wish = (await agent.wished())[0]
    await agent.run(wish)
    task = one.as_task(wish.allocation_id)
    path = "/api/v1/projects/1/experiments/kill"
    assert (await one.client.post(path, json={"experimentIds": [experiment]}, headers=task)).status_code == 403
    assert (await one.client.post("/detent/experiments/search", json={}, headers=task)).status_code == 200
    assert (await one.client.get("/api/v1/users/setting", headers=task)).status_code == 403


async def test_each_user_has_settings_of_their_own(one: Cluster):
    both = {"settings": [{"key": "a", "storagePath": "p", "value": "1"}, {"key": "b", "value": "x" * 1000}]}
    assert (await one.post("/api/v1/users/setting", both)).json() == {}
    assert (await one.post("/api/v1/users/setting", {"settings": [{"key": "a", "storagePath": "p"}]})).json() == {}
    kept = (await one.get("/api/v1/users/setting"))["settings"]
    assert kept == [{"key": "b", "storagePath": "", "value": "x" * 1000}, {"key": "a", "storagePath": "p", "value": ""}]
    too_long = {"settings": [{"key": "a", "value": "é" * 40_000}]}
    assert (await one.post("/api/v1/users/setting", too_long)).status_code == 400
    too_many = {"settings": [{"key": str(i), "value": "v"} for i in range(999)]}
    assert (await one.post("/api/v1/users/setting", too_many)).status_code == 400
    assert len((await one.get("/api/v1/users/setting"))["settings"]) == 2
    await login(one.client, "determined")
    assert (await one.get("/api/v1/users/setting"))["settings"] == []
    await one.post("/api/v1/users/setting/reset")
    await login(one.client, "admin")
    assert len((await one.get("/api/v1/users/setting"))["settings"]) == 2
    await one.post("/api/v1/users/setting/reset")
    assert (await one.get("/api/v1/users/setting"))["settings"] == []


async def test_allowed_actions_follow_the_state_and_the_owner_of_each_experiment(one: Cluster):
    paused = await one.create(CONFIG, activate=False)
    done = (await ended(one, 1))[0]
    archived = (await ended(one, 1, archived=True))[0]
    body = {"experimentIds": [archived, done, paused, 99, 2**63 - 1]}
    groups = (await one.post("/detent/experiments/allowed-actions", body)).json()["groups"]
    assert groups == [
        {"actions": ["activate", "cancel", "kill", "fork"], "ids": [paused]},
        {"actions": ["archive", "delete", "fork", "continue"], "ids": [done]},
        {"actions": ["unarchive", "delete", "fork"], "ids": [archived]},
    ]
    for group in groups:
        for id in group["ids"]:
            can = (await one.get(f"/detent/experiments/{id}/status"))["can"]
            assert group["actions"] == [action for action, allowed in can.items() if allowed]


async def test_allowed_actions_on_another_users_experiment_are_only_to_fork_it(one: Cluster):
    done = (await ended(one, 1))[0]
    await login(one.client, "determined")
    asked = await one.post("/detent/experiments/allowed-actions", {"experimentIds": [done]})
    await login(one.client, "admin")
    assert asked.json() == {"groups": [{"actions": ["fork"], "ids": [done]}]}
