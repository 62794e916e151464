"""Metric series: packed and unpacked reports, resumed runs, and names and numbers of every kind."""

import asyncio
import math
import sqlite3
from typing import Any

import pytest
from tests.support.checkpoints import checkpoint_uuid
from tests.support.cluster import Cluster
from tests.support.database_rows import write_rows
from tests.support.series import oracle, packing, series, store
from tests.support.waiting import eventually

from determined_master.metric_series import repository, series_packer
from determined_master.metric_series.downsampling import SIZE

HOSTILE = [
    "__proto__",
    "constructor",
    'quo"te',
    "it's",
    "a.b.c",
    "<script>alert(1)</script>",
    "%s; DROP TABLE metrics",
    "ü\u202e\n",
]


async def run_trial(cluster: Cluster) -> dict[str, str]:
    """Runs trial 1; returns the headers of its task."""
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    return cluster.as_task(desired.allocation_id)


async def report(cluster: Cluster, headers: dict[str, str], steps: int | None, metrics: Any, group="training", **more):
    fields = {"trialId": 1, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}, **more}
    answer = await cluster.post("/api/v1/trials/1/metrics", {"group": group, "metrics": fields}, **headers)
    assert answer.status_code == 200, answer.text


async def test_an_empty_trial_has_an_empty_curve_and_unknown_trials_are_missing(cluster: Cluster):
    await run_trial(cluster)
    answer = await series(cluster, trialIds=[1, 77, 1, 99])
    assert answer["missing"] == [77, 99]
    assert [(s["trialId"], s["count"], s["values"], s["epochs"]) for s in answer["series"]] == [(1, 0, [], None)]


async def test_curves_have_numbers_that_are_not_finite_and_leave_out_other_values(cluster: Cluster):
    task = await run_trial(cluster)
    for steps, value in enumerate([1, "NaN", "Infinity", "-Infinity", "text", None, [1], True, 2.5], 1):
        await report(cluster, task, steps, {"loss": value, "epochs": steps / 2})
    (curve,) = (await series(cluster))["series"]
    assert curve["batches"] == [1, 2, 3, 4, 9]
    assert curve["values"] == [1.0, "NaN", "Infinity", "-Infinity", 2.5]
    assert curve["epochs"] == [0.5, 1.0, 1.5, 2.0, 4.5]
    assert curve["count"] == 5


async def test_a_metric_with_a_name_of_megabytes_has_no_curve_and_spoils_no_other(cluster: Cluster):
    task = await run_trial(cluster)
    name = "x" * 1_000_000
    await report(cluster, task, 1, {name: 1.0, "loss": 2.0, "big": 2**62})
    metrics = [{"group": "training", "name": each} for each in ("loss", "big")]
    for _ in range(2):
        curves = (await series(cluster, metrics=metrics))["series"]
        assert [each["values"] for each in curves] == [[2.0], [float(2**62)]]
        await packing(cluster, least=1)
    metrics = [{"group": "training", "name": name}]
    refused = await cluster.post("/detent/series", {"trialIds": [1], "metrics": metrics, "x": "batches"})
    assert refused.status_code == 400
    assert "at most 4096 characters" in refused.json()["error"]["error"]


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_metric_names_are_curves_like_others(cluster: Cluster, name: str):
    task = await run_trial(cluster)
    await report(cluster, task, 1, {name: 1.0})
    for _ in range(2):
        (curve,) = (await series(cluster, metrics=[{"group": "training", "name": name}]))["series"]
        assert (curve["name"], curve["values"]) == (name, [1.0])
        await packing(cluster, least=1)
    names = (await cluster.get("/detent/trials/1/metric-names"))["metrics"]
    assert names == [{"group": "training", "name": name, "type": "number", "count": 1}]
    summary = (await cluster.post("/detent/trials/summaries", {"trialIds": [1]})).json()["trials"][0]["metrics"]
    assert [(m["name"], m["last"]) for m in summary] == [(name, 1.0)]


async def test_groups_of_the_profiler_are_drawn_over_time(cluster: Cluster):
    task = await run_trial(cluster)
    for second in (0, 2, 1):
        at = f"2026-01-01T00:00:0{second}Z"
        await report(cluster, task, None, {"util": float(second)}, group="gpu", reportTime=at)
    (curve,) = (await series(cluster, metrics=[{"group": "gpu", "name": "util"}], x="time"))["series"]
    assert curve["values"] == [0.0, 1.0, 2.0]
    assert curve["times"] == [1767225600.0, 1767225601.0, 1767225602.0]
    window = {"x": "time", "start": 1767225601, "end": 1767225601.5}
    (curve,) = (await series(cluster, metrics=[{"group": "gpu", "name": "util"}], **window))["series"]
    assert curve["values"] == [1.0]


QUERIES = [
    {},
    {"maxPoints": 10},
    {"maxPoints": 5000},
    {"x": "time"},
    {"x": "epochs"},
    {"start": 3000, "end": 9000},
    {"start": 2040, "end": 2060},
    {"start": 1e9},
    {"x": "time", "start": 1700000000.5, "end": 1700000007.25, "maxPoints": 20},
    {"x": "epochs", "start": 1.5, "end": 60, "maxPoints": 50},
]


@pytest.mark.parametrize("packed", [0, 1, SIZE - 1, SIZE, 3 * SIZE + 500, 9000])
async def test_curves_do_not_depend_on_the_number_of_packed_reports(cluster: Cluster, packed: int):
    await run_trial(cluster)
    points = [
        (step, 1_700_000_000_000_000 + step * 1000 + (step % 7) * 3000, value, step // 100 if step % 5 else None)
        for step in range(9000)
        for value in [math.nan if step == 4321 else math.inf if step == 8000 else math.sin(step / 90) * step]
    ]
    await store(cluster, points[:packed])
    await packing(cluster, least=1)
    await store(cluster, points[packed:])
    for query in QUERIES:
        (curve,) = (await series(cluster, **query))["series"]
        expected = oracle(points, **query)
        got = (curve["batches"], curve["times"], list(map(str, curve["values"])), curve["count"])
        assert got == expected, (query, packed)


async def test_a_crash_between_steps_of_packing_loses_and_doubles_no_point(cluster: Cluster):
    await run_trial(cluster)
    points = [(step, step, float(step), None) for step in range(5000)]
    await store(cluster, points)
    await packing(cluster, least=1, steps=2)
    await packing(cluster, least=1)
    (curve,) = (await series(cluster, maxPoints=5000))["series"]
    assert curve["values"] == [float(i) for i in range(5000)]
    assert stored_value(cluster, "SELECT sum(points) FROM series_chunks WHERE factor = 1") == 5000
    assert stored_value(cluster, "SELECT count(*) FROM series_chunks WHERE factor > 1") == 8


async def test_packing_pauses_after_each_page(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    await run_trial(cluster)
    await store(cluster, [(step, step, float(step), None) for step in range(10 * series_packer.PAGE)])
    pages: list[int] = []
    read = repository.reports

    async def counted(*arguments: Any) -> Any:
        reports = await read(*arguments)
        pages.append(len(reports))
        return reports

    monkeypatch.setattr(repository, "reports", counted)
    monkeypatch.setattr(series_packer, "PAGE_PAUSE_SECONDS", 3600.0)
    step = asyncio.create_task(packing(cluster, least=1))
    await eventually(lambda: bool(pages))
    assert pages == [series_packer.PAGE]
    step.cancel()


async def test_keys_that_are_added_to_an_old_report_are_drawn(cluster: Cluster):
    task = await run_trial(cluster)
    for steps in (1, 2, 3):
        await report(cluster, task, steps, {"loss": 1.0})
    await packing(cluster, least=1)
    await report(cluster, task, 2, {"late": 5.0})
    for _ in range(2):
        metrics = [{"group": "training", "name": name} for name in ("loss", "late")]
        loss, late = (await series(cluster, metrics=metrics))["series"]
        assert (loss["batches"], late["batches"]) == ([1, 2, 3], [2])
        await packing(cluster, least=1)


async def test_a_resumed_run_hides_the_points_that_it_replaces(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await store(cluster, [(step, step, 1.0, None) for step in range(1, 3001)])
    cluster.master.metrics.forget([1])
    await packing(cluster, least=1)
    body = {"uuid": checkpoint_uuid(1), "taskId": desired.spec.task_id, "metadata": {"steps_completed": 2500}}
    assert (
        await cluster.post("/api/v1/checkpoints", body, **cluster.as_task(desired.allocation_id))
    ).status_code == 200
    await agent.exit(desired, code=1)
    again = (await agent.wait_for_desired())[0]
    await agent.run(again)
    await report(cluster, cluster.as_task(again.allocation_id), 2501, {"loss": 2.0}, trialRunId=2)
    for _ in range(2):
        (curve,) = (await series(cluster, maxPoints=5000))["series"]
        assert curve["batches"] == list(range(1, 2502))
        assert curve["values"] == [1.0] * 2500 + [2.0]
        await packing(cluster, least=1)
    assert stored_value(cluster, "SELECT max(last_id) FROM series_chunks") == 3001


async def test_a_report_that_is_changed_while_it_is_packed_is_packed_anew(cluster: Cluster):
    """A page that was read before the change has an older version, so it is not written."""
    task = await run_trial(cluster)
    for steps in (1, 2, 3):
        await report(cluster, task, steps, {"loss": 1.0})
    async with cluster.master.database.write() as session:
        version = await repository.reach(session, 1, 3)
    await report(cluster, task, 2, {"late": 5.0})
    async with cluster.master.database.write() as session:
        assert not await repository.claim(session, 1, version, packed_id=3)


async def test_a_trial_that_has_ended_is_packed_whole_and_not_again(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    desired = (await agent.wait_for_desired())[0]
    await agent.run(desired)
    await report(cluster, cluster.as_task(desired.allocation_id), 1, {"loss": 1.0})
    await agent.exit(desired)

    async def ended() -> bool:
        return await cluster.state(1) == "STATE_COMPLETED"

    await eventually(ended)
    await packing(cluster, least_at_end=2)
    assert stored_value(cluster, "SELECT count(*) FROM series") == 0, "few reports stay as they are"
    assert stored_value(cluster, "SELECT done_run FROM series_cursors") == 1
    (curve,) = (await series(cluster))["series"]
    assert curve["values"] == [1.0]
    await asyncio.to_thread(write_rows, cluster.master.settings.data, "UPDATE series_cursors SET done_run = ?", [(-1,)])
    await packing(cluster)
    assert stored_value(cluster, "SELECT points FROM series") == 1
    assert stored_value(cluster, "SELECT done_run FROM series_cursors") == 1
    await cluster.client.delete("/api/v1/experiments/1")

    async def gone() -> bool:
        return stored_value(cluster, "SELECT count(*) FROM series") == 0

    await eventually(gone)
    assert stored_value(cluster, "SELECT count(*) FROM series_chunks") == 0
    assert (await series(cluster))["missing"] == [1]


async def test_metric_names_and_summaries_are_listed(cluster: Cluster):
    task = await run_trial(cluster)
    await report(cluster, task, 1, {"loss": 1.0, "word": "x", "map": {"a": 1}})
    await report(cluster, task, 2, {"loss": 3.0})
    await report(cluster, task, 2, {"loss": "NaN"}, group="validation")
    names = await cluster.get("/detent/experiments/1/metric-names")
    assert names["searcherMetric"] == "loss"
    assert [(m["group"], m["name"], m["type"], m["count"]) for m in names["metrics"]] == [
        ("training", "loss", "number", 2),
        ("training", "map", "object", 0),
        ("training", "word", "string", 0),
        ("validation", "loss", "number", 0),
    ]
    body = {
        "trialIds": [1, 5],
        "metrics": [{"group": "training", "name": "loss"}, {"group": "validation", "name": "loss"}],
    }
    (summary,) = (await cluster.post("/detent/trials/summaries", body)).json()["trials"]
    assert (summary["trialId"], summary["experimentId"], summary["hparams"], summary["state"]) == (
        1,
        1,
        {},
        "STATE_RUNNING",
    )
    assert (summary["experimentName"], summary["searcherMetric"], summary["smallerIsBetter"]) == ("tiny", "loss", True)
    loss = {"name": "loss", "smallerIsBetter": True}
    assert summary["metrics"] == [
        {"group": "training", **loss, "last": 3.0, "min": 1.0, "max": 3.0, "mean": 2.0, "count": 2},
        {"group": "validation", **loss, "last": "NaN", "min": None, "max": None, "mean": None, "count": 0},
    ]


async def test_a_metric_beyond_the_range_of_floats_is_infinite_where_it_is_read(cluster: Cluster):
    task = await run_trial(cluster)
    await report(cluster, task, 1, {"loss": 10**400, "is_good": True}, group="validation")
    (summary,) = (await cluster.post("/detent/trials/summaries", {"trialIds": [1]})).json()["trials"]
    assert {each["name"]: each["last"] for each in summary["metrics"]} == {"loss": "Infinity", "is_good": True}


@pytest.mark.parametrize(
    "body",
    [{"trialIds": []}, {"trialIds": [1] * 101}, {"maxPoints": 9}, {"maxPoints": 5001}, {"x": "noon"}, {"metrics": []}],
)
async def test_queries_of_series_out_of_bounds_are_refused(cluster: Cluster, body: dict[str, Any]):
    query = {"trialIds": [1], "metrics": [{"group": "training", "name": "loss"}], "x": "batches", **body}
    assert (await cluster.post("/detent/series", query)).status_code == 400


def stored_value(cluster: Cluster, query: str) -> Any:
    if cluster.master.lease is not None:
        pytest.skip("a test of the SQLite file")
    connection = sqlite3.connect(cluster.master.settings.data / "master.sqlite")
    try:
        return connection.execute(query).fetchone()[0]
    finally:
        connection.close()


def _tail(answer: dict[str, Any]) -> list[tuple[int, list[int], int]]:
    return [(each["trialId"], each["batches"], each["count"]) for each in answer["series"]]


def _totals(answer: dict[str, Any]) -> list[int]:
    return [each["total"] for each in answer["series"]]


@pytest.mark.parametrize("is_packed", [False, True])
async def test_after_a_known_time_only_its_point_and_later_ones_are_returned(cluster: Cluster, is_packed: bool):
    await run_trial(cluster)
    points = [(step, 1_700_000_000_000_000 + 1_234_567 * step, 1 / step, None) for step in range(1, 2 * SIZE + 30)]
    await store(cluster, points)
    if is_packed:
        await packing(cluster)
    (whole,) = (await series(cluster, maxPoints=5000))["series"]
    assert len(whole["batches"]) == len(points)
    known = whole["times"][-4]
    assert _tail(await series(cluster, after={"1": known})) == [(1, whole["batches"][-4:], 4)]
    assert _tail(await series(cluster, after={"1": known}, x="epochs")) == [(1, whole["batches"][-4:], 4)]
    assert _tail(await series(cluster, after={"1": whole["times"][SIZE - 3]}, maxPoints=5000))[0][2] == SIZE + 29 + 3
    assert (
        _totals(await series(cluster, after={"1": known}))
        == _totals(await series(cluster, x="epochs"))
        == [len(points)]
    )
    assert _tail(await series(cluster, after={"77": known}))[0][2] == len(points)
    assert _tail(await series(cluster, after={}))[0][2] == len(points)


async def test_each_trial_has_a_known_time_of_its_own(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create("name: t\nentrypoint: x\nsearcher: {name: single, metric: loss}\n")
    await cluster.create("name: t\nentrypoint: x\nsearcher: {name: single, metric: loss}\n")
    for desired in await agent.wait_for_desired(2):
        await agent.run(desired)
    for number in (1, 2):
        rows = [(number, 1_700_000_000_000_000 + 1_000_000 * step, step, '{"loss": 1}') for step in range(1, 9)]
        statement = (
            'INSERT INTO metrics (trial_id, run_id, "group", reported_at, steps, metrics, archived)'
            " VALUES (?, 1, 'training', ?, ?, ?, 0)"
        )
        await asyncio.to_thread(write_rows, cluster.master.settings.data, statement, rows)
    after = {"1": 1_700_000_007.0, "2": 1_700_000_003.0}
    tails = _tail(await series(cluster, trialIds=[1, 2], after=after))
    assert tails == [(1, [7, 8], 2), (2, [3, 4, 5, 6, 7, 8], 6)]
    tails = _tail(await series(cluster, trialIds=[1, 2], after={"1": 1_700_000_008.0}))
    assert tails == [(1, [8], 1), (2, list(range(1, 9)), 8)]


@pytest.mark.parametrize("after", [{"1": -1}, {"1": 1e300}, {"1": "x"}, {"-1": 1}, {"x": 1}])
async def test_an_invalid_known_time_is_refused(cluster: Cluster, after: dict[str, Any]):
    body = {"trialIds": [1], "metrics": [{"group": "training", "name": "loss"}], "after": after}
    assert (await cluster.post("/detent/series", body)).status_code == 400
