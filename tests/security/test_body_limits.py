"""Large bodies are refused before they are read, also without a login and without a length."""

from collections.abc import AsyncIterator

import pytest
from tests.support.cluster import Cluster

from determined_master.web.body_limit import DEFAULT_BYTES, SIGN_IN_BYTES

CHUNK = b" " * 65536


class Body:
    """A request body that counts the bytes that are read of it."""

    def __init__(self, limit: int) -> None:
        self.taken = 0
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.taken < self._limit:
            self.taken += len(CHUNK)
            yield CHUNK


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("/api/v1/auth/login", SIGN_IN_BYTES),
        ("/detent/sign-in", SIGN_IN_BYTES),
        ("/api/v1/experiments/1/pause", DEFAULT_BYTES),
        ("/no/such/path", DEFAULT_BYTES),
    ],
)
async def test_an_announced_body_over_the_limit_is_not_read(cluster: Cluster, path: str, limit: int):
    body = Body(limit + 1_000_000)
    cluster.client.headers.pop("authorization", None)
    answer = await cluster.client.post(path, content=body, headers={"content-length": str(10**10)})
    assert answer.status_code == 413
    assert f"{limit} bytes" in answer.json()["error"]["error"]


@pytest.mark.parametrize(
    ("path", "limit"), [("/api/v1/auth/login", SIGN_IN_BYTES), ("/api/v1/experiments/1/pause", DEFAULT_BYTES)]
)
async def test_a_body_without_a_length_is_read_up_to_the_limit(cluster: Cluster, path: str, limit: int):
    body = Body(50 * limit)
    answer = await cluster.client.request(
        "PATCH" if "pause" in path else "POST", path.replace("/pause", ""), content=body
    )
    assert answer.status_code in (400, 413)
    assert body.taken <= limit + 2 * len(CHUNK)


async def test_a_request_without_a_body_is_answered(cluster: Cluster):
    assert (await cluster.client.get("/health")).status_code == 200
