"""Pages of a task at an origin of their own: tickets, cookies, headers, bodies of any size, and what fails."""

import hashlib

import httpx
import pytest
from tests.e2e.pages.conftest import NAVIGATION, Serving, items

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]


def test_a_ticket_opens_the_page_at_its_own_origin_and_leaves_the_address(served: Serving):
    url = served.ticket(path="/some/path?with=query")
    assert url.startswith("http://localhost:")
    with httpx.Client(timeout=60, trust_env=False) as client:
        answer = client.get(url, follow_redirects=True)
        assert answer.text == "/some/path?with=query"
        assert "ticket" not in str(answer.url)
        entered = answer.history[0]
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert entered.headers["referrer-policy"] == "no-referrer"


def test_a_ticket_is_taken_once(served: Serving):
    url = served.ticket()
    assert httpx.get(url).status_code == 303
    again = httpx.get(url)
    assert again.status_code == 403
    assert "used before" in again.text


def test_without_a_visit_nothing_reaches_the_task(served: Serving):
    origin = served.ticket().partition("/.detent")[0]
    refused = httpx.get(f"{origin}/secret")
    assert refused.status_code == 401
    led = httpx.get(f"{origin}/page?a=1", headers=NAVIGATION)
    assert led.status_code == 303
    assert led.headers["location"].startswith(f"{served.cluster.url}/detent/tasks/{served.task_id}/enter?")
    with served.visitor() as visitor:
        assert visitor.get("/seen").json() == []


def test_bodies_of_200_mb_pass_in_both_directions(served: Serving):
    size = 200 << 20
    with served.visitor() as visitor:
        with visitor.stream("GET", f"/large?{size}") as answer:
            assert sum(len(piece) for piece in answer.iter_raw()) == size
        piece, digest = b"y" * (1 << 20), hashlib.sha256()

        def pieces():
            for _ in range(200):
                digest.update(piece)
                yield piece

        assert visitor.post("/put", content=pieces()).text == f"{size} {digest.hexdigest()}"


def test_the_task_gets_neither_the_clusters_cookies_nor_its_tokens(served: Serving):
    with served.visitor() as visitor:
        token = served.cluster.session.headers["Authorization"]
        headers = {
            "authorization": token,
            "cookie": f"auth=a; auth_{served.cluster.cluster_id[:8]}=b; own=c; {'; '.join(f'{n}={v}' for n, v in visitor.cookies.items())}",
            "x-detent-page": "1",
            "grpc-metadata-x-allocation-token": "Bearer x",
            "x-forwarded-for": "6.6.6.6",
        }
        got = items(visitor.get("/headers", headers=headers))
    assert got["cookie"] == "own=c"
    assert got["x-forwarded-for"] == "127.0.0.1"
    assert not {"authorization", "x-detent-page", "grpc-metadata-x-allocation-token"} & set(got)
