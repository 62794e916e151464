"""Searches of experiments: filters, sorting, columns and groups."""

import json
from typing import Any

import pytest
from tests.support.cluster import CONFIG, Cluster
from tests.support.columns import update_columns
from tests.support.experiment_list import add_three, field, search, where
from tests.support.makers import NOON, add_experiment, add_trial, effective

from determined.states import ContainerState, ExperimentState

pytestmark = pytest.mark.budget(10, "stores very many columns")


async def refused(cluster: Cluster, **body: Any) -> str:
    answer = await cluster.post("/detent/experiments/search", body)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"]["error"])


async def test_a_filter_takes_the_names_that_lists_and_charts_show(cluster: Cluster):
    """Hyperparameters need no prefix and metrics no group. The searcher's metric means its best value."""
    async with cluster.master.database.write() as session:
        created = []
        for lr, losses in ((0.0005, [0.4, 2.0]), (0.01, [1.5, 3.0])):
            row = await add_experiment(session, config=effective(lr=1), searcher_metric="val/loss")
            reports = [("validation", {"val/loss": loss, "top5": 10 * loss}) for loss in losses]
            await add_trial(
                session,
                row,
                hparams={"lr": lr, "net": {"width": 8}},
                reports=reports,
                searcher_metric_value=min(losses),
            )
            created.append(row.id)
    await update_columns(cluster.master.indexer)
    first, second = created
    assert await search(cluster, field("lr", "<", 0.001)) == [first]
    assert await search(cluster, field("net.width", "=", 8)) == [second, first]
    assert await search(cluster, field("val/loss", "<", 1)) == [first]
    assert await search(cluster, field("val/loss", ">=", 1)) == [second]
    assert await search(cluster, field("val/loss", "isEmpty")) == []
    assert await search(cluster, field("top5", ">", 25)) == [second]
    assert await search(cluster, field("top5.min", "<", 5)) == [first]
    assert await search(cluster, field("validation.val/loss.last", "<", 1)) == []
    assert "there is no column 'val/los'" in await refused(cluster, filter=where(field("val/los", "<", 1)))


async def test_a_page_has_the_requested_columns_and_names_unknown_ones(cluster: Cluster):
    first, second, third = await add_three(cluster)
    columns = ["validation.loss.last", "validation.loss.min", "hp.opt", "config.lr", "hp.none", "name"]
    answer = await cluster.post("/detent/experiments/search", {"columns": columns, "sort": "validation.loss.last=asc"})
    page = answer.json()
    assert (page["total"], page["offset"], page["unknownColumns"]) == (3, 0, ["hp.none"])
    assert [row["id"] for row in page["experiments"]] == [second, first, third]
    assert page["experiments"][0]["cells"] == {
        "validation.loss.last": 0.1,
        "validation.loss.min": 0.1,
        "hp.opt": "beta",
        "config.lr": 1.0,
        "hp.none": None,
    }
    assert page["experiments"][2]["cells"]["validation.loss.last"] is None
    assert page["experiments"][0]["labels"] == ["b"]


async def test_rows_without_a_value_come_last_in_either_order_and_newer_ones_win_ties(cluster: Cluster):
    first, second, third = await add_three(cluster)
    assert await search(cluster, sort="validation.loss.last=desc") == [first, second, third]
    assert await search(cluster, sort="state=asc") == [third, second, first]
    assert await search(cluster, sort="tags=desc") == [second, first, third]
    assert await search(cluster, sort="numTrials=asc,name=desc") == [third, second, first]
    assert await search(cluster, limit=1, offset=1) == [second]


async def test_filters_combine_conditions_in_groups(cluster: Cluster):
    first, second, third = await add_three(cluster)
    assert await search(cluster, field("validation.loss.last", "<", 0.3)) == [second]
    assert await search(cluster, field("validation.loss.last", "!=", 0.1)) == [third, first]
    assert await search(cluster, field("validation.loss.last", "isEmpty")) == [third]
    assert await search(cluster, field("name", "contains", "A_")) == [third]
    assert await search(cluster, field("name", "contains", "%")) == [third]
    assert await search(cluster, field("name", "contains", "alp")) == [first]
    assert await search(cluster, field("tags", "=", "b")) == [second, first]
    assert await search(cluster, field("tags", "notContains", "a")) == [third, second]
    assert await search(cluster, field("hp.opt", "=", "beta")) == [second]
    assert await search(cluster, field("user", "=", "admin"), field("id", ">=", second)) == [third, second]
    nested = {"kind": "group", "conjunction": "or", "children": [field("id", "=", first), field("id", "=", third)]}
    assert await search(cluster, nested, field("startTime", "=", NOON.date().isoformat())) == [third, first]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"filter": "{"}, "not JSON"),
        ({"filter": where(field("validation.los.last", "<", 1))}, 'did you mean "validation.loss.last"'),
        ({"filter": where(field("name", "<", 1))}, "name has text values"),
        ({"filter": where(field("state", "=", "faild"))}, "no state 'faild'; did you mean \"failed\""),
        ({"filter": where(field("state", "!=", "xyz"))}, "no state 'xyz'; valid states: active, "),
        ({"filter": where(field("numTrials", "=", "many"))}, "needs a number"),
        ({"filter": where(field("startTime", "<", "soon"))}, "needs a time"),
        ({"filter": where(field("name", "like", "x"))}, "operator"),
        ({"filter": where(field("name", "=", "\ud800"))}, "an invalid character"),
        ({"filter": where(field("name", "=", None))}, "value"),
        ({"filter": where(field("name", "=", "x" * 2000))}, "longer than"),
        ({"sort": "nmae=asc"}, 'did you mean "name"'),
        ({"sort": "name"}, "column=asc"),
        ({"limit": 501}, "limit"),
        ({"projectId": -1}, "no project"),
    ],
)
async def test_an_invalid_filter_is_refused_with_a_sentence(cluster: Cluster, body: dict[str, Any], words: str):
    await add_three(cluster)
    assert words in await refused(cluster, **body)


async def test_words_of_filters_and_columns_are_found_whatever_the_case_of_their_letters(cluster: Cluster):
    config = CONFIG.replace("tiny", "Ärger").replace("hyperparameters: {}", "hyperparameters: {Öpt: ÜBER}")
    await cluster.create(config + "labels: [Größe]\n", activate=False)
    await update_columns(cluster.master.indexer)
    for column, word in (("name", "äRGER"), ("tags", "GRÖß"), ("hp.Öpt", "über"), ("user", "DMI")):
        found = await cluster.post("/detent/experiments/search/ids", {"filter": where(field(column, "contains", word))})
        assert found.json() == {"ids": [1], "total": 1}, column
    assert (await cluster.get("/detent/columns/values", column="tags", query="GRÖß"))["values"] == ["Größe"]
    assert [each["column"] for each in (await cluster.get("/detent/columns", query="öpt"))["columns"]] == ["hp.Öpt"]


async def test_a_search_returns_ids_groups_and_column_values(cluster: Cluster):
    first, second, third = await add_three(cluster)
    ids = (await cluster.post("/detent/experiments/search/ids", {"sort": "name=asc"})).json()
    assert ids == {"ids": [first, second, third], "total": 3}
    groups = (await cluster.post("/detent/experiments/search/groups", {"by": "tags"})).json()["groups"]
    assert groups == [{"value": "b", "count": 2}, {"value": None, "count": 1}, {"value": "a", "count": 1}]
    groups = (await cluster.post("/detent/experiments/search/groups", {"by": "state"})).json()["groups"]
    assert groups == [{"value": "STATE_COMPLETED", "count": 3}]
    groups = (await cluster.post("/detent/experiments/search/groups", {"by": "hp.lr"})).json()["groups"]
    assert {g["value"] for g in groups} == {0.5, 0.1, None}
    assert (await cluster.post("/detent/experiments/search/groups", {"by": "startTime"})).status_code == 400
    assert (await cluster.get("/detent/columns/values", column="hp.opt", query="ET"))["values"] == ["beta"]
    assert (await cluster.get("/detent/columns/values", column="tags"))["values"] == ["a", "b"]
    assert (await cluster.get("/detent/columns/values", column="state"))["values"] == ["STATE_COMPLETED"]
    assert (await cluster.get("/detent/columns/values", column="user"))["values"] == ["admin"]
    assert (await cluster.get("/detent/columns/values", column="hp.nothing"))["values"] == []
    answer = await cluster.get("/detent/columns", query="loss")
    assert [c["column"] for c in answer["columns"]] == [f"validation.loss.{s}" for s in ("last", "min", "max", "mean")]
    assert {(c["kind"], c["type"], c["count"]) for c in answer["columns"]} == {("metric", "number", 2)}
    assert (await cluster.get("/detent/columns", kind="hyperparameter"))["columns"][1] == {
        "column": "hp.opt",
        "kind": "hyperparameter",
        "type": "text",
        "displayName": "opt",
        "count": 3,
    }
    assert (await cluster.get("/detent/columns", kind="experiment", projectId=7))["columns"][0]["count"] == 0
    assert (await cluster.get("/detent/columns", limit=1))["total"] > 19


async def test_the_determined_api_has_the_same_experiments_columns_and_labels(cluster: Cluster):
    first, second, _third = await add_three(cluster)
    body = {"filter": where(field("validation.loss.last", "<", 9)), "sort": "validation.loss.last=asc", "limit": 1}
    answer = (await cluster.post("/api/v1/experiments-search", body)).json()
    assert [e["experiment"]["id"] for e in answer["experiments"]] == [second]
    assert answer["pagination"]["total"] == 2
    columns = (await cluster.get("/api/v1/projects/1/columns"))["columns"]
    assert {"LOCATION_TYPE_EXPERIMENT", "LOCATION_TYPE_HYPERPARAMETERS", "LOCATION_TYPE_VALIDATIONS"} == {
        c["location"] for c in columns
    }
    ranges = (await cluster.get("/api/v1/projects/1/experiments/metric-ranges"))["ranges"]
    assert ranges == [{"metricsName": "validation.loss", "min": 0.1, "max": 0.5}]
    assert (await cluster.get("/api/v1/experiment/labels"))["labels"] == ["b", "a"]
    assert (await cluster.get("/api/v1/experiment/labels", projectId=1))["labels"] == ["b", "a"]
    assert (await cluster.client.get("/api/v1/projects/7/columns")).status_code == 404
    await cluster.client.put(f"/api/v1/experiments/{first}/labels/c", json={})
    assert await search(cluster, field("tags", "=", "c")) == [first]
    await cluster.client.delete(f"/api/v1/experiments/{first}/labels/c")
    assert await search(cluster, field("tags", "=", "c")) == []


async def test_the_best_trial_of_a_search_is_shown_with_the_searchers_metric_alone(cluster: Cluster):
    async with cluster.master.database.write() as session:
        row = await add_experiment(
            session, searcher_type="random", config=effective({"w": {"type": "const", "val": 3}})
        )
        for loss in (0.3, 0.2, 0.4):
            reports = [("validation", {"loss": loss, "other": 1.0})]
            await add_trial(session, row, hparams={"lr": loss}, reports=reports, searcher_metric_value=loss)
        undecided = await add_experiment(
            session, config=effective({"w": {"type": "const", "val": 3}, "lr": {"type": "int"}})
        )
        for loss in (1, 2):
            await add_trial(session, undecided, hparams={"lr": loss, "w": 3}, reports=[("training", {"x": loss})])
    await update_columns(cluster.master.indexer)
    body = {"columns": ["hp.lr", "hp.w", "validation.other.last", "training.x.last"], "sort": "id=asc"}
    best, none = (await cluster.post("/detent/experiments/search", body)).json()["experiments"]
    assert (best["trialId"], best["searcherMetricValue"], best["numTrials"]) == (2, 0.2, 3)
    assert best["cells"] == {"hp.lr": 0.2, "hp.w": None, "validation.other.last": 1.0, "training.x.last": None}
    assert none["trialId"] is None
    assert none["cells"] == {"hp.lr": None, "hp.w": 3.0, "validation.other.last": None, "training.x.last": 2.0}
    older = (await cluster.post("/api/v1/experiments-search", {"sort": "id=asc"})).json()["experiments"]
    assert older[0]["bestTrial"]["id"] == 2
    assert set(older[0]["bestTrial"]["summaryMetrics"]["validation_metrics"]) == {"loss"}
    assert older[1]["bestTrial"] is None


async def test_a_state_is_found_by_the_word_that_its_row_displays(cluster: Cluster):
    async with cluster.master.database.write() as session:
        failed = (await add_experiment(session, state=ExperimentState.ERROR)).id
        killing = (await add_experiment(session, state=ExperimentState.STOPPING_KILLED)).id
    for word in ("failed", "FAILED", "error", "STATE_ERROR"):
        assert await search(cluster, field("state", "=", word)) == [failed], word
    assert await search(cluster, field("state", "!=", "failed")) == [killing]
    assert await search(cluster, field("state", "contains", "fail")) == [failed]
    assert await search(cluster, field("state", "=", "killing")) == await search(
        cluster, field("state", "=", "stopping")
    )
    assert await search(cluster, field("state", "contains", "no such")) == []


async def test_the_displayed_state_is_listed_and_searchable(cluster: Cluster):
    agent = await cluster.join(slots=1)
    running, queued = await cluster.create(), await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.send_report(desired, ContainerState.RUNNING)
    assert await search(cluster, field("state", "=", "RUNNING")) == [running]
    assert await search(cluster, field("state", "=", "STATE_QUEUED")) == [queued]
    assert await search(cluster, field("state", "=", "ACTIVE")) == [queued, running]
    await cluster.post(f"/api/v1/experiments/{running}/pause")
    rows = (await cluster.post("/detent/experiments/search", {"sort": "id=asc"})).json()["experiments"]
    assert [row["state"] for row in rows] == ["STATE_PAUSING", "STATE_QUEUED"]
    assert await search(cluster, field("state", "=", "PAUSING")) == [running]
    assert await search(cluster, field("state", "!=", "PAUSED")) == [queued]
    await agent.exit(desired)
    assert await search(cluster, field("state", "=", "PAUSING")) == []


async def test_hostile_metric_names_are_columns_like_others(cluster: Cluster):
    hostile = ["__proto__", "qu\"o'te", "a.b.last", "<script>alert(1)</script>", "=asc,x", "%_/", "ünïcode", "x" * 400]
    too_long = "y" * 100_000
    async with cluster.master.database.write() as session:
        row = await add_experiment(session)
        metrics = {name: 1.0 * place for place, name in enumerate([*hostile, too_long])}
        await add_trial(session, row, reports=[("training", metrics)], hparams={"__proto__": {"constructor": "x"}})
    await update_columns(cluster.master.indexer)
    columns = [f"training.{name}.last" for name in hostile]
    page = (
        await cluster.post("/detent/experiments/search", {"columns": [*columns, "hp.__proto__.constructor"]})
    ).json()
    cells = page["experiments"][0]["cells"]
    assert [cells[column] for column in columns] == [float(place) for place in range(len(hostile))]
    assert cells["hp.__proto__.constructor"] == "x"
    for place, column in enumerate(columns):
        assert await search(cluster, field(column, "=", place)) == [row.id]
    answer = await cluster.get("/detent/columns", kind="metric", limit=100)
    assert answer["total"] == 4 * len(hostile)
    assert (await cluster.get("/detent/columns", query="%_/"))["total"] == 4
    unknown = f"training.{too_long}.last"
    page = (await cluster.post("/detent/experiments/search", {"columns": [unknown]})).json()
    assert page["unknownColumns"] == [unknown]


async def test_archived_experiments_are_shown_on_request(cluster: Cluster):
    async with cluster.master.database.write() as session:
        listed = await add_experiment(session)
        hidden = await add_experiment(session, archived=True)
        await add_experiment(session, state=ExperimentState.DELETED)
    assert await search(cluster) == [listed.id]
    assert await search(cluster, showArchived=True) == [hidden.id, listed.id]
    filter_text = json.dumps({"showArchived": True})
    assert (await cluster.post("/detent/experiments/search/ids", {"filter": filter_text})).json()["total"] == 2
    assert await search(cluster, field("archived", "=", True), showArchived=True) == [hidden.id]


async def test_a_search_limited_to_ids_returns_those_rows_and_the_total_of_the_filter(cluster: Cluster):
    alpha, beta, gamma = await add_three(cluster)
    answer = await cluster.post(
        "/detent/experiments/search",
        {"filter": where(field("tags", "=", "b")), "ids": [beta, gamma, 99], "sort": "id=asc", "columns": ["hp.opt"]},
    )
    assert answer.json()["total"] == 2
    assert [(row["id"], row["cells"]) for row in answer.json()["experiments"]] == [(beta, {"hp.opt": "beta"})]
    assert (await cluster.post("/detent/experiments/search", {"ids": []})).json()["experiments"] == []
    assert await search(cluster, sort="id=asc", ids=[gamma, alpha]) == [alpha, gamma]
    assert "at most 500" in await refused(cluster, ids=list(range(501)))
