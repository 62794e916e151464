"""Authorization of every route: each route is called by each kind of caller that its rule must refuse."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Route, WebSocketRoute
from tests.support.agent_hello import say_hello
from tests.support.callers import VICTIM, Callers, callers, protected_rows
from tests.support.cluster import Cluster, open_cluster

from determined.link.messages import Hello
from determined_master.api.authorization import Rule, rules
from determined_master.api.v1.unsupported_operations import OPERATIONS, PLAIN
from determined_master.server.app import ROUTERS

FOREIGN = ("no token", "expired token", "another user", "another trial", "join token")
ALLOWED = 0
EXPECTED: dict[Rule, tuple[int, int, int, int, int]] = {
    Rule.PUBLIC: (ALLOWED, ALLOWED, ALLOWED, ALLOWED, ALLOWED),
    Rule.SIGNED_IN: (401, 401, ALLOWED, ALLOWED, 401),
    Rule.READER: (401, 401, ALLOWED, ALLOWED, 401),
    Rule.USER: (401, 401, ALLOWED, 403, 401),
    Rule.SELF: (401, 401, 403, 403, 401),
    Rule.OWNER: (401, 401, 403, 403, 401),
    Rule.TASK: (401, 401, 403, 403, 401),
    Rule.TASK_OR_USER: (401, 401, ALLOWED, 403, 401),
    Rule.TASK_ONLY: (401, 401, 403, 403, 401),
    Rule.SEARCH_TASK: (401, 401, 403, 403, 401),
    Rule.ADMIN: (401, 401, 403, 403, 401),
    Rule.AGENT: (401, 401, 401, 401, ALLOWED),
    Rule.ADMIN_OR_OPERATOR: (401, 401, 403, 403, 401),
    Rule.USER_OR_OPERATOR: (401, 401, ALLOWED, 403, 401),
}
"""Status by caller, in the order of FOREIGN."""
NEVER_ALLOWED_HERE = ("/detent/stream", "/detent/drain", "/api/v1/auth/logout", "/detent/sign-out")
"""Routes that never end, stop the cluster or end the login. Only callers whom they refuse call them."""


class Declared(NamedTuple):
    rule: Rule
    method: str
    path: str


def table() -> list[Declared]:
    lines = (Path(__file__).parent / "routes.txt").read_text().splitlines()
    return [Declared(Rule[rule], method, path) for rule, method, path in map(str.split, lines)]


def bodies(everyone: Callers) -> dict[str, Any]:
    """Returns bodies that would change rows of the victim, by ``METHOD path``."""
    seeded = everyone.seeded
    metrics = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 9, "metrics": {"avgMetrics": {"loss": 9.0}}}
    return {
        "DELETE /api/v1/checkpoints": {"checkpointUuids": [seeded.checkpoint]},
        "PATCH /api/v1/checkpoints": {"checkpoints": [{"uuid": seeded.checkpoint, "resources": {"resources": {}}}]},
        "POST /api/v1/checkpoints": {
            "uuid": "11111111-8a54-4a86-a47b-3a3d1f0a4f2b",
            "taskId": seeded.task,
            "metadata": {"steps_completed": 1},
        },
        "POST /detent/checkpoints/removed": {"removed": [], "failed": {seeded.checkpoint: "taken"}},
        "POST /api/v1/commands/{command_id}/set_priority": {"priority": 60},
        "POST /api/v1/shells/{shell_id}/set_priority": {"priority": 60},
        "POST /api/v1/job-queues": {"updates": [{"jobId": seeded.job, "weight": 2}]},
        "POST /detent/job-queues": {"updates": [{"jobId": seeded.job, "weight": 2}]},
        "PATCH /api/v1/experiments/{experiment_id}": {"name": "taken", "notes": "taken"},
        "POST /api/v1/runs/start": {"runId": seeded.trial},
        "POST /api/v1/runs/{trial_id}/metadata": {"metadata": {"taken": True}},
        "POST /api/v1/trials/{trial_id}/early_exit": {"reason": "EXITED_REASON_INVALID_HP"},
        "POST /api/v1/trials/{trial_id}/progress": {"progress": 0.9},
        "POST /api/v1/trials/{trial_id}/metrics": {"group": "validation", "metrics": metrics},
        "POST /detent/trials/{trial_id}/reports": {"reports": [{"group": "validation", "metrics": metrics}]},
        "POST /api/v1/task/logs": {"logs": [{"taskId": seeded.task, "log": "taken"}]},
        "POST /api/v1/experiments/continue": {"id": seeded.experiment},
        "POST /detent/experiments/labels": {
            "experimentIds": [seeded.experiment],
            "expectedCount": 1,
            "add": ["taken"],
        },
        "PATCH /api/v1/users/{user_id}": {"displayName": "taken"},
        "POST /api/v1/commands": {"config": {"entrypoint": 5}},  # an empty configuration would start a command
        "POST /api/v1/shells": {"config": {"resources": 5}},
        "POST /api/v1/users": {"user": {"username": "taken", "admin": True}},
        "POST /api/v1/users/setting": {"settings": []},
        "POST /detent/agents/{agent_id}/output": {},
        "POST /detent/tasks/{task_id}/streams": {"argv": ["true"]},
        "POST /detent/tasks/{task_id}/open": {"port": 8888},
        "BULK": {"experimentIds": [seeded.experiment], "destinationProjectId": 1},
    }


PAGES = {"ClusterProxy": "/proxy/", "Pages": "/experiments/1", "DocsSite": "/docs/"}
"""The path of each route that is a class, by the name of the class."""


def routes(everyone: Callers) -> Iterator[tuple[Rule, str, str, Any]]:
    """Yields rule, method, path and body of every HTTP route, including the page and the operations that answer 501."""
    sent = bodies(everyone)
    for rule, method, template in table():
        if template == "UnsupportedOperations":
            for _name, verb, path in OPERATIONS:
                yield rule, verb, "/api/v1" + path.replace("{", "").replace("}", ""), {}
            yield from ((rule, verb, path, None) for _name, verb, path in PLAIN)
        elif template in PAGES:
            yield rule, "GET", PAGES[template], None
        elif method != "SOCKET":
            path = template.replace(":row_id", "")
            key = "BULK" if "/projects/{project_id}/experiments/" in path and method != "GET" else f"{method} {path}"
            yield rule, method, everyone.path(path), sent.get(key, None if method == "GET" else {})


async def status(cluster: Cluster, everyone: Callers, caller: str, method: str, path: str, body: Any) -> int:
    """Returns the status of the answer. A bulk action that refuses all of its experiments counts as 403."""
    answer = await cluster.client.request(method, path, json=body, headers=everyone.headers[caller])
    if answer.status_code == 200 and answer.text.startswith('{"results"'):
        errors = [result.get("error", "") for result in answer.json()["results"]]
        if errors and all(f"only {VICTIM} or an admin may" in error for error in errors):
            return 403
    if answer.status_code == 403 and caller == "another user":
        assert "admin" in answer.json()["error"]["error"] or "token" in answer.json()["error"]["error"], answer.text
    return answer.status_code


def test_every_route_declares_the_rule_of_the_table():
    declarations: list[tuple[Rule, str, str]] = []
    for router in ROUTERS:
        for method, path, declared in rules(router):
            assert len(declared) == 1, f"{method} {path} declares {declared}; a route declares one rule"
            declarations.append((declared[0], method, path))
    in_table = [each for each in table() if each.method not in ("SOCKET", "*")]
    declared_paths = {(method, path) for _rule, method, path in declarations}
    others = {(each.method, each.path) for each in in_table} - declared_paths
    assert sorted(declarations, key=str) == sorted((e for e in in_table if (e.method, e.path) not in others), key=str)
    assert len(table()) == len(set(table()))


async def test_every_route_of_the_app_is_in_the_table(cluster: Cluster):
    served: set[tuple[str, str]] = set()
    for route in cluster.app.router.routes:
        if isinstance(route, APIRoute):
            served |= {(method, route.path) for method in route.methods}
        elif isinstance(route, Route):
            served |= {(method, route.path) for method in (route.methods or ()) if method != "HEAD"}
        elif isinstance(route, WebSocketRoute):
            served.add(("SOCKET", route.path))
        else:
            served.add(("*", type(route).__name__))
    assert served == {(each.method, each.path) for each in table()}


@pytest.mark.parametrize("caller", FOREIGN)
async def test_no_route_lets_a_caller_do_what_its_rule_forbids(cluster: Cluster, caller: str):
    everyone = await callers(cluster)
    before = await protected_rows(cluster)
    wrong: list[str] = []
    called = 0
    for rule, method, path, body in routes(everyone):
        expected = EXPECTED[rule][FOREIGN.index(caller)]
        if expected == ALLOWED and path in NEVER_ALLOWED_HERE:
            continue
        called += 1
        got = await status(cluster, everyone, caller, method, path, body)
        is_right = got == expected if expected else got not in ((401, 403) if rule is not Rule.PUBLIC else (403,))
        if not is_right:
            wrong.append(f"{method} {path} ({rule.name}): {got} instead of {expected or 'an answer'}")
    print(f"{caller}: {called} routes called")
    assert wrong == []
    after = await protected_rows(cluster)
    assert [name for name, rows in before.items() if after[name] != rows] == [], f"{caller} changed rows"


SPELLINGS = ("{}", "+{}", "00{}", "{:019}", "%20{}", "{}.0", "0_{}")
"""An id as a route may read it."""
NUMBERED = ("{experiment_id}", "{trial_id}", "{line_id}")


@pytest.mark.parametrize("caller", ["victim", "admin"])
async def test_the_owner_and_an_admin_are_not_refused(cluster: Cluster, caller: str):
    everyone = await callers(cluster)
    wrong = []
    for rule, method, path, body in routes(everyone):
        if rule in (Rule.OWNER, Rule.TASK, Rule.SELF):
            got = await status(cluster, everyone, caller, method, path, body)
            if got in (401, 403):
                wrong.append(f"{method} {path} ({rule.name}): {got}")
    assert wrong == []


async def test_a_task_may_write_to_its_own_trial_and_checkpoints(cluster: Cluster):
    everyone = await callers(cluster)
    for rule, method, path, body in routes(everyone):
        if rule in (Rule.TASK, Rule.TASK_ONLY, Rule.TASK_OR_USER):
            assert await status(cluster, everyone, "the trial", method, path, body) in (200, 404), (method, path)


async def test_an_open_cluster_lets_everybody_change_but_not_delete(tmp_path: Path):
    async with open_cluster(tmp_path, authorization="open") as cluster:
        everyone = await callers(cluster)
        refused = set()
        for rule, method, path, body in routes(everyone):
            if rule in (Rule.OWNER, Rule.TASK):
                if await status(cluster, everyone, "another user", method, path, body) == 403:
                    refused.add((method, path))
            elif rule in (Rule.ADMIN, Rule.SELF) and not path.endswith("/master/logs"):
                assert await status(cluster, everyone, "another user", method, path, body) == 403, path
        assert refused == {
            ("DELETE", "/api/v1/checkpoints"),
            ("DELETE", f"/api/v1/experiments/{everyone.seeded.experiment}"),
            ("DELETE", "/api/v1/projects/1/experiments/delete"),
            ("POST", f"/detent/tasks/{everyone.seeded.task}/open"),
            ("POST", f"/detent/tasks/{everyone.seeded.task}/streams"),
        }


async def test_a_task_logs_for_its_own_allocation_only(cluster: Cluster):
    everyone = await callers(cluster)
    line = {"taskId": everyone.seeded.task, "log": "taken", "allocationId": f"{everyone.seeded.task}.9"}
    answer = await cluster.post("/api/v1/task/logs", {"logs": [line]}, **everyone.headers["the trial"])
    assert answer.status_code == 403
    assert "another allocation" in answer.json()["error"]["error"]


async def test_a_task_reads_nothing_of_another_user_however_the_id_is_spelled(cluster: Cluster):
    everyone = await callers(cluster)
    agent = await cluster.join("two")
    cluster.client.headers.update(everyone.headers["another user"])
    await cluster.create()
    intruder = cluster.as_task((await agent.wait_for_desired())[0].allocation_id)
    odd = [
        "{}",
        "+{}",
        "0{}",
        "{:0>22}",
        "%20{}",
        "{}%20",
        "{}.0",
        "{}.",
        "0_{}",
        "{}e0",
        "%D9%A1",
        "%EF%BC%91",
        "{}%0A",
        "-{}",
    ]
    allowed: list[str] = []
    for rule, method, template in table():
        if rule is not Rule.READER:
            continue
        for name in re.findall(r"\{(\w+)\}", template):
            for spelling in odd if name.endswith("_id") and name != "task_id" else ["{}"]:
                value = spelling.format(everyone.path("{" + name + "}"))
                path = template.replace("{" + name + "}", value) + "?path=run.py"
                answer = await cluster.client.request(method, path, json={"path": "run.py"}, headers=intruder)
                if answer.status_code not in (400, 403, 404):
                    allowed.append(f"{method} {path}: {answer.status_code}")
    assert allowed == []


async def test_any_signed_in_user_may_fork_an_experiment(cluster: Cluster):
    everyone = await callers(cluster)
    body = {"config": "{name: fork, entrypoint: x, searcher: {name: single, metric: m}}", "parentId": 1}
    answer = await cluster.post("/api/v1/experiments", body, **everyone.headers["another user"])
    assert answer.status_code == 200, answer.text
    assert answer.json()["experiment"]["username"] == "determined"


@pytest.mark.parametrize("caller", FOREIGN)
async def test_the_agent_link_accepts_only_the_join_token(cluster: Cluster, caller: str):
    everyone = await callers(cluster)
    hello = Hello(agent_id="stranger", slots=[], protocol=1)
    texts = await say_hello(cluster, hello, everyone.headers[caller])
    kinds = {text.get("kind") or text.get("type") for text in texts}
    is_refused = any("join token" in str(text.get("reason")) for text in texts)
    assert is_refused == (caller != "join token"), kinds
    agents = (await cluster.get("/api/v1/agents"))["agents"]
    assert ("stranger" in {each["id"] for each in agents}) == (caller == "join token")


async def test_the_page_offers_only_what_its_user_may_do(cluster: Cluster):
    everyone = await callers(cluster)
    path = f"/detent/experiments/{everyone.seeded.experiment}/status"
    theirs = (await cluster.client.get(path, headers=everyone.headers["another user"])).json()
    assert [verb for verb, can in theirs["can"].items() if can] == ["fork"]
    assert theirs["why"]["kill"] == "only ada (the owner) or an admin may change it"
    assert theirs["why"]["delete"] == "only ada (the owner) or an admin may delete it"
    assert (await cluster.client.get(path, headers=everyone.headers["victim"])).json()["can"]["kill"]
