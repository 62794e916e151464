"""All operations of the Determined API: each is served or answers 501, and unknown paths answer 404."""

import itertools
import re
from typing import Any

from fastapi.routing import APIRoute
from tests.support.cluster import Cluster
from tests.support.seeded_cluster import seed_cluster
from tests.support.wire_shape import bodies, faults, operations

from determined_master.api.v1.unsupported_operations import OPERATIONS
from determined_master.server.app import HOT

ALL = operations()
UNSUPPORTED = {name for name, _method, _path in OPERATIONS}
# Tiers of operations: T0 runs, pauses and resumes a trial; T1 is what people call daily.
REQUIRED_OF_T1 = """
DeleteExperiment PatchExperiment ArchiveExperiment UnarchiveExperiment GetModelDef
DeleteExperimentLabel PutExperimentLabel GetTrialCheckpoints KillTrial ReportTrialSearcherEarlyExit
GetTrainingMetrics GetMetrics GetValidationMetrics DeleteCheckpoints PatchCheckpoints GetRunMetadata
PostRunMetadata GetAgents GetAgent EnableAgent DisableAgent GetSlots GetSlot EnableSlot DisableSlot
GetTasks GetTask TaskLogs Logout GetUsers GetUser PostUser PatchUser GetUserByUsername
GetMasterConfig MasterLogs GetResourcePools GetWorkspaces GetWorkspace GetProject
GetWorkspaceProjects health
"""
REQUIRED = {
    *(name for tier, _method, _path, name in ALL if tier == "T0"),
    *REQUIRED_OF_T1.split(),
}
ENDING = ("logout", "sign-out", "/stream")  # ends the login, or never ends
QUERY = {
    "trialIds": 1,
    "ids": 1,
    "group": "training",
    "metricName": "loss",
    "metricNames": "loss",
    "batchesProcessed": 2,
}
ABSENT = [
    "/api/v1/no/such/path",
    "/api/v1/experiments/1/no-such-verb",
    "/oauth2/clients",
    "/oauth2/token",
    "/saml/initiate",
    "/oidc/callback",
    "/scim/v2/Users",
    "/no-such-path",
]


def shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


async def openapi_document(cluster: Cluster) -> dict[str, Any]:
    answer = await cluster.client.get("/detent/openapi.json")
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    return document


async def test_each_operation_is_either_served_or_unsupported(cluster: Cluster):
    document = await openapi_document(cluster)
    served = {(method.upper(), shape(path)) for path, verbs in document["paths"].items() for method in verbs}
    named = {name for _tier, method, path, name in ALL if (method, shape(path)) in served}
    assert len(ALL) == 261
    assert named | UNSUPPORTED == {name for *_rest, name in ALL}
    assert not named & UNSUPPORTED
    assert named >= REQUIRED


async def test_unsupported_operations_have_the_paths_of_the_client():
    of_client = {(name, method, path) for _tier, method, path, name in ALL}
    assert [o for o in OPERATIONS if (o[0], o[1], "/api/v1" + o[2]) not in of_client] == []


async def test_an_unsupported_operation_answers_501_with_its_name(cluster: Cluster):
    for name, method, path in OPERATIONS:
        real = "/api/v1" + re.sub(r"\{[^}]*\}", "7", path)
        answer = await cluster.client.request(method, real, content=b"")
        assert answer.status_code == 501, (method, real, answer.text)
        assert answer.json()["error"]["code"] == 12
        assert name in answer.json()["error"]["error"]


async def test_no_served_operation_answers_501_405_or_500(cluster: Cluster):
    document = await openapi_document(cluster)
    for path, verbs in document["paths"].items():
        for method in verbs:
            if method == "delete" or "logs" in path or path.endswith(ENDING):
                continue
            answer = await cluster.client.request(method, re.sub(r"\{[^}]*\}", "7", path), json={})
            assert answer.status_code not in (501, 405, 500), (method, path, answer.text)


async def test_unknown_and_identity_paths_answer_404_in_the_standard_form(cluster: Cluster):
    for method, path in itertools.product(("GET", "POST", "DELETE"), ABSENT):
        answer = await cluster.client.request(method, path)
        assert answer.status_code == 404, (method, path)
        assert answer.json() == {"error": {"code": 5, "reason": "NotFound", "error": "no such path"}}


async def test_the_openapi_document_lists_every_route(cluster: Cluster):
    document = await openapi_document(cluster)
    listed = {(method.upper(), path) for path, verbs in document["paths"].items() for method in verbs}
    hot = [path.replace(":int", "") for path in HOT]
    routes = {("POST", path) for path in hot}
    for route in cluster.app.router.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            routes |= {(method, route.path) for method in route.methods}
    assert listed == routes
    for path in hot:
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        name = body["$ref"].rsplit("/", 1)[1] if "$ref" in body else ""
        assert document["components"]["schemas"][name]["properties"] if name else body["properties"]


async def test_every_served_get_returns_every_key(cluster: Cluster):
    seeded = await seed_cluster(cluster)
    wrong: list[str] = []
    for _tier, method, path, name in ALL:
        if method != "GET" or name in UNSUPPORTED:
            continue
        real = re.sub(r"\{(\w+)\}", lambda match: seeded.for_path(match[1]), path)
        query = QUERY if "/trials/metrics/" in path or "/metrics-stream/" in path or "/time-series" in path else {}
        answer = await cluster.client.get(real, params=query)
        assert answer.status_code == 200, (real, answer.text)
        assert answer.text, real
        wrong += [fault for body in bodies(answer.text) for fault in faults(name, body)]
    assert wrong == []
