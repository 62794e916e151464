"""Pages of a task at an origin of their own: tickets, cookies, headers, and bodies of any size."""

import hashlib
import json
import re

import httpx
import pytest
from tests.e2e.pages.conftest import NAVIGATION, Serving, items, other_user
from tests.support.waiting import wait_until

from determined.errors import Forbidden
from determined_master.auth.passwords import client_hash

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


def test_a_ticket_of_one_task_opens_no_other(served: Serving, serve):
    other = serve("other")
    origin = other.ticket().partition("/.detent")[0]
    assert httpx.get(origin + served.ticket().partition("localhost")[2].lstrip(":0123456789")).status_code == 403


def test_without_a_visit_nothing_reaches_the_task(served: Serving):
    origin = served.ticket().partition("/.detent")[0]
    refused = httpx.get(f"{origin}/secret")
    assert refused.status_code == 401
    led = httpx.get(f"{origin}/page?a=1", headers=NAVIGATION)
    assert led.status_code == 303
    assert led.headers["location"].startswith(f"{served.cluster.url}/detent/tasks/{served.task_id}/enter?")
    with served.visitor() as visitor:
        assert visitor.get("/seen").json() == []


def test_bodies_of_200_mb_pass_in_both_directions_while_the_master_stays_small(served: Serving):
    size = 200 << 20
    assert served.cluster.master is not None
    pid = served.cluster.master.pid
    with served.visitor() as visitor:
        visitor.get("/")
        before = peak_kilobytes(pid)
        with visitor.stream("GET", f"/large?{size}") as answer:
            assert sum(len(piece) for piece in answer.iter_raw()) == size
        piece, digest = b"y" * (1 << 20), hashlib.sha256()

        def pieces():
            for _ in range(200):
                digest.update(piece)
                yield piece

        assert visitor.post("/put", content=pieces()).text == f"{size} {digest.hexdigest()}"
    assert peak_kilobytes(pid) - before < 40 << 10


def peak_kilobytes(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return int(re.search(r"VmHWM:\s+(\d+)", file.read())[1])  # type: ignore[index]


def test_the_task_gets_neither_the_clusters_cookies_nor_its_tokens(served: Serving):
    with served.visitor() as visitor:
        own = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
        headers = {
            "authorization": str(served.cluster.session.headers["Authorization"]),
            "cookie": f"auth=a; auth_{served.cluster.cluster_id[:8]}=b; own=c; detent_of_1-x_sid=d; {own}",
            "x-detent-page": "1",
            "grpc-metadata-x-allocation-token": "Bearer x",
            "x-forwarded-for": "6.6.6.6",
            "connection": "x-hop, keep-alive",
            "x-hop": "1",
        }
        got = items(visitor.get("/headers", headers=headers))
    assert got["cookie"] == "own=c"
    assert got["x-forwarded-for"] == "127.0.0.1"
    assert not {"authorization", "x-detent-page", "grpc-metadata-x-allocation-token", "x-hop"} & set(got)


def test_cookies_of_a_task_are_confined_and_none_of_the_clusters_is_set(served: Serving):
    with served.visitor() as visitor:
        answer = visitor.get("/cookies")
        given = answer.headers.get_list("set-cookie")
        label = next(name for name in visitor.cookies if name.startswith("detent_task_")).removeprefix("detent_task_")
        assert given == ["plain=1", f"detent_of_{label}_secret=2; HttpOnly; Path=/", "wide=3"]
        assert items(visitor.get("/headers"))["cookie"] == "plain=1; secret=2; wide=3"


def test_headers_that_hold_for_all_ports_of_the_host_are_left_out(served: Serving):
    with served.visitor() as visitor:
        answer = visitor.get("/of-the-host")
    left_out = {"clear-site-data", "strict-transport-security", "alt-svc", "x-hop"}
    assert not left_out & set(answer.headers)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert answer.headers["x-own"] == "2"


def test_events_arrive_as_they_are_sent_and_the_task_notices_that_their_reader_leaves(served: Serving):
    with served.visitor() as visitor:
        with visitor.stream("GET", "/events") as answer:
            lines = answer.iter_lines()
            assert [next(lines) for _ in range(3)] == ["data: 0", "", "data: 1"]
    wait_until(lambda: any("reader of events has left" in line for line in served.experiment.log), what="it leaves")


def test_a_user_without_a_right_gets_no_ticket_and_reaches_nothing(served: Serving):
    with other_user(served.cluster) as other:
        with pytest.raises(Forbidden, match="belongs to admin; only admin or an admin may enter it"):
            served.ticket(session=other)
    path = f"/proxy/{served.task_id}:{served.ports[0]}/seen"
    answer = httpx.get(served.cluster.url + path, headers={"authorization": other.headers["Authorization"]})
    assert answer.status_code == 403
    assert "only admin or an admin may enter it" in answer.text


def test_a_visit_ends_with_the_sign_in_that_opened_it_also_under_an_open_answer(served: Serving):
    password = (served.cluster.data / "password").read_text().strip()
    body = {"username": "admin", "password": client_hash(password), "isHashed": True}
    token = httpx.post(f"{served.cluster.url}/api/v1/auth/login", json=body).json()["token"]
    session = {"authorization": f"Bearer {token}"}
    opened = httpx.post(
        f"{served.cluster.url}/detent/tasks/{served.task_id}/open", json={"port": served.ports[0]}, headers=session
    ).json()["url"]
    with httpx.Client(base_url=opened.partition("/.detent")[0], timeout=60, trust_env=False) as visitor:
        visitor.get(opened)
        with visitor.stream("GET", "/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "data: 0"
            httpx.post(f"{served.cluster.url}/api/v1/auth/logout", headers=session)
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in lines:
                    pass
        assert visitor.get("/").status_code == 401


def test_programs_with_a_token_are_served_at_the_clusters_own_address(served: Serving):
    path = f"/proxy/{served.task_id}:{served.ports[0]}/a%2Fb?c=d"
    headers = {"authorization": str(served.cluster.session.headers["Authorization"])}
    answer = httpx.get(served.cluster.url + path, headers=headers)
    assert answer.text == path
    assert "sandbox" in answer.headers.get_list("content-security-policy")
    body = b"z" * (20 << 20)
    posted = httpx.post(served.cluster.url + path, headers=headers, content=body)
    assert posted.text == f"{len(body)} {hashlib.sha256(body).hexdigest()}"


def test_nothing_of_a_task_is_served_to_a_cookie_at_the_clusters_own_address(served: Serving):
    path = f"/proxy/{served.task_id}:{served.ports[0]}/page"
    token = str(served.cluster.session.headers["Authorization"]).removeprefix("Bearer ")
    cookie = {"cookie": f"auth_{served.cluster.cluster_id[:8]}={token}"}
    for headers in (cookie, {**cookie, "authorization": f"Bearer {token}"}, {}):
        answer = httpx.get(served.cluster.url + path, headers=headers)
        assert answer.status_code == 401
        assert "A page of a task" not in answer.text
    led = httpx.get(served.cluster.url + path, headers={**cookie, **NAVIGATION})
    assert led.status_code == 303
    with httpx.Client(timeout=60, trust_env=False) as browser:
        entered = browser.get(str(led.next_request.url), headers={**cookie, **NAVIGATION})  # type: ignore[union-attr]
        assert entered.headers["location"].startswith("http://localhost:")
        arrived = browser.get(entered.headers["location"], follow_redirects=True)
        assert arrived.text == path


def test_another_site_leads_a_visitor_to_a_task_only_after_a_question(served: Serving):
    token = str(served.cluster.session.headers["Authorization"]).removeprefix("Bearer ")
    cookie = {"cookie": f"auth_{served.cluster.cluster_id[:8]}={token}"}
    url = f"{served.cluster.url}/detent/tasks/{served.task_id}/enter?port={served.ports[0]}"
    foreign = {**NAVIGATION, **cookie, "sec-fetch-site": "same-site"}
    asked = httpx.get(url, headers=foreign)
    assert asked.status_code == 200
    assert "Open</button>" in asked.text
    assert "frame-ancestors 'none'" in asked.headers["content-security-policy"]
    forged = httpx.post(url, headers={**foreign, "origin": "http://127.0.0.1:1"})
    assert forged.status_code == 403
    confirmed = httpx.post(url, headers={**foreign, "sec-fetch-site": "same-origin", "origin": served.cluster.url})
    assert confirmed.status_code == 303


@pytest.mark.parametrize("path", ["//evil.example/", "https://evil.example/", "/\\evil.example", "page"])
def test_a_ticket_leads_to_no_other_host(served: Serving, path: str):
    headers = {"authorization": str(served.cluster.session.headers["Authorization"])}
    body = {"port": served.ports[0], "path": path}
    url = f"{served.cluster.url}/detent/tasks/{served.task_id}/open"
    assert httpx.post(url, json=body, headers=headers).status_code == 400


def test_large_headers_are_refused_before_the_task_gets_them(served: Serving):
    with served.visitor() as visitor:
        assert visitor.get("/", headers={"x-large": "x" * (65 << 10)}).status_code == 431
        assert json.loads(visitor.get("/seen").content) == []
