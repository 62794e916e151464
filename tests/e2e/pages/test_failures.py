"""What a visitor is told when a port, a task, an agent or the master is not there."""

import httpx
import pytest
from tests.e2e.pages.conftest import NAVIGATION, Serving
from tests.e2e.pages.test_pages import peak_kilobytes
from tests.support.free_ports import free_port
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]


def test_a_port_on_which_nobody_listens_is_named_as_a_page_and_as_text(served: Serving):
    port = free_port()
    with served.visitor(port) as visitor:
        page = visitor.get("/", headers=NAVIGATION)
        assert page.status_code == 502
        assert f"cannot connect to port {port} of the task: nobody listens there" in page.text.lower()
        assert page.headers["content-type"].startswith("text/html")
        text = visitor.get("/")
        assert text.headers["content-type"].startswith("text/plain")
        assert f"Its program has to listen on port {port}" in text.text


def test_a_task_that_ends_under_an_open_answer_cuts_it_and_is_named_after_that(served: Serving):
    with served.visitor() as visitor:
        with visitor.stream("GET", "/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == "data: 0"
            served.experiment.do("kill")
            with pytest.raises(httpx.RemoteProtocolError):
                for _ in lines:
                    pass
        served.experiment.nothing_left()
        # For a moment the agent says that the task has ended, then the master knows.
        after = wait_until(
            lambda: answer if (answer := visitor.get("/", headers=NAVIGATION)).status_code == 409 else None,
            what="the master knows of the end",
        )
        assert "does not run" in after.text


def test_an_answer_that_its_task_cuts_is_cut_for_the_visitor_too(served: Serving):
    with served.visitor() as visitor:
        with pytest.raises(httpx.RemoteProtocolError):
            visitor.get("/cut")
        assert visitor.get("/again").text == "/again"


def test_a_reader_that_stops_stops_its_task_and_nobody_else(served: Serving):
    assert served.cluster.master is not None
    pid = served.cluster.master.pid
    with served.visitor() as visitor:
        visitor.get("/")
        before = peak_kilobytes(pid)
        with visitor.stream("GET", f"/large?{4 << 30}") as answer:
            next(answer.iter_raw())
            # Whatever is between both is full long before this has passed by.
            assert len(visitor.get(f"/large?{50 << 20}").content) == 50 << 20
            assert served.cluster.session.get("/api/v1/master")["clusterId"]
        assert peak_kilobytes(pid) - before < 40 << 10


def test_a_visitor_who_leaves_a_waiting_request_leaves_no_connection_behind(served: Serving):
    with served.visitor() as visitor:
        with pytest.raises(httpx.ReadTimeout):
            visitor.get("/wait", timeout=0.5)
        for _ in range(40):
            with pytest.raises(httpx.ReadTimeout):
                visitor.get("/wait", timeout=0.02)
        assert visitor.get("/still").text == "/still"


def test_a_program_that_speaks_no_http_is_named(served: Serving):
    _, websocket_port = served.ports
    with served.visitor(websocket_port) as visitor:
        assert visitor.get("/", headers={"upgrade": "x"}).status_code in (400, 426, 502)


@pytest.mark.budget(60, "restarts an agent and the master")
def test_a_lost_agent_is_named_and_a_restarted_master_lets_its_visitors_in_again(served: Serving):
    cluster = served.cluster
    port = served.ports[0]
    with served.visitor() as visitor:
        origin = str(visitor.base_url).rstrip("/")
        assert cluster.master is not None
        cluster.master.end()
        with pytest.raises(httpx.TransportError):
            visitor.get("/")
        cluster.start_master()
        led = visitor.get("/page", headers=NAVIGATION)
        assert led.status_code == 303
        assert f"port={port}" in led.headers["location"]
        assert visitor.get("/page").status_code == 401
    with served.visitor() as visitor:
        assert str(visitor.base_url).rstrip("/") == origin
        for agent in cluster.agents.values():
            agent.end()
        wait_until(lambda: not cluster.connected(), what="no agent is connected")
        answer = visitor.get("/", headers=NAVIGATION)
        assert answer.status_code == 409
        assert "is not connected" in answer.text
        for name in list(cluster.agents):
            cluster.restart_agent(name)
        assert visitor.get("/back").text == "/back"
