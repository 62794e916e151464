"""Several reports of a trial in one request: each is answered, and rights and limits are those of single reports."""

from tests.integration.test_metrics import run_trial, stored
from tests.support.cluster import Cluster


def body(steps, metrics, *, run=1, group="training"):
    fields = {"trialRunId": run, "stepsCompleted": steps, "metrics": {"avgMetrics": metrics}}
    return {"group": group, "metrics": fields}


async def test_all_reports_of_a_request_are_stored_in_order(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    reports = [body(step, {"loss": 1 / step}) for step in range(1, 51)]
    answer = await cluster.post("/detent/trials/1/reports", {"reports": reports}, **task)
    assert (answer.status_code, answer.json()) == (200, {"refused": []})
    assert await stored(cluster) == [(1, step, {"loss": 1 / step}) for step in range(1, 51)]


async def test_a_refused_report_is_named_and_the_others_are_stored(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    reports = [body(1, {"loss": 1.0}), body(1, {"loss": 2.0}), body(2, {"loss": 3.0}, run=9), body(3, {"loss": 4.0})]
    answer = await cluster.post("/detent/trials/1/reports", {"reports": reports}, **task)
    alone = [await cluster.post("/api/v1/trials/1/metrics", report, **task) for report in reports]
    expected = [{"index": i, "status": a.status_code, **a.json()} for i, a in enumerate(alone) if a.status_code != 200]
    assert [each["index"] for each in expected] == [1, 2]
    assert (answer.status_code, answer.json()) == (200, {"refused": expected})
    assert await stored(cluster) == [(1, 1, {"loss": 1.0}), (1, 3, {"loss": 4.0})]


async def test_reports_that_are_sent_again_are_stored_once(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    reports = {"reports": [body(step, {"loss": 0.5}) for step in (1, 2)]}
    for _ in range(2):
        answer = await cluster.post("/detent/trials/1/reports", reports, **task)
        assert (answer.status_code, answer.json()) == (200, {"refused": []})
    assert await stored(cluster) == [(1, 1, {"loss": 0.5}), (1, 2, {"loss": 0.5})]


async def test_a_validation_among_several_reports_reaches_the_search(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    reports = [body(1, {"loss": 0.5}), body(1, {"loss": 0.25}, group="validation")]
    assert (await cluster.post("/detent/trials/1/reports", {"reports": reports}, **task)).status_code == 200
    trial = (await cluster.client.get("/api/v1/trials/1")).json()["trial"]
    assert trial["bestValidation"]["metrics"]["avgMetrics"] == {"loss": 0.25}


async def test_a_nul_in_one_of_several_reports_is_stored_as_its_symbol(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    reports = [body(1, {"a\0b": 0.5})]
    assert (await cluster.post("/detent/trials/1/reports", {"reports": reports}, **task)).status_code == 200
    assert await stored(cluster) == [(1, 1, {"a\u2400b": 0.5})]


async def test_another_trials_token_may_not_report(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    answer = await cluster.post("/detent/trials/2/reports", {"reports": [body(1, {"loss": 0.5})]}, **task)
    assert answer.status_code == 403


async def test_too_many_or_malformed_reports_are_answered_with_400_and_none_is_stored(cluster: Cluster):
    _, _, task = await run_trial(cluster)
    good = body(1, {"loss": 0.5})
    for reports in ([good] * 1001, [good, {"group": "training"}], [good, body("x", {})], {}, None):
        answer = await cluster.post("/detent/trials/1/reports", {"reports": reports}, **task)
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["code"] == 3
    assert await stored(cluster) == []
