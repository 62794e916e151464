"""What a visitor is told when a port, a task, an agent or the master is not there."""

import httpx
import pytest
from tests.e2e.pages.conftest import NAVIGATION, Serving
from tests.support.rank_processes import free_port
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
        after = visitor.get("/", headers=NAVIGATION)
        assert after.status_code == 409
        assert "does not run" in after.text


def test_an_answer_that_its_task_cuts_is_cut_for_the_visitor_too(served: Serving):
    with served.visitor() as visitor:
        with pytest.raises(httpx.RemoteProtocolError):
            visitor.get("/cut")
        assert visitor.get("/again").text == "/again"


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
