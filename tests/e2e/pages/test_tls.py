"""Pages of tasks of a master that serves by TLS: cookies that no other host can set, and secure websockets."""

import ssl
from pathlib import Path

import httpx
import pytest
from tests.e2e.pages.conftest import Serving
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.task_server import SERVER
from tests.support.tls_server import written_pair
from websockets.sync.client import connect

from determined.client.certificates import FILE_VARIABLE

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages by tls")]


def test_a_page_by_tls_has_a_cookie_of_its_host_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pair = written_pair(tmp_path, "127.0.0.1", "localhost")
    first = free_port()
    trust = ssl.create_default_context(cafile=str(pair.certificate))
    cluster = StreamCluster(
        tmp_path / "cluster",
        tls_cert=pair.certificate,
        tls_key=pair.key,
        proxy_port_range=f"{first}-{min(65535, first + 20)}",
    )
    monkeypatch.setenv(FILE_VARIABLE, str(pair.certificate))
    try:
        cluster.start_master()
        cluster.start_agent(slots=1, arguments=("--master-cert-file", str(pair.certificate)))
        served = Serving(cluster, cluster.begin(tmp_path / "trial", SERVER))
        url = served.ticket()
        assert url.startswith("https://localhost:")
        with httpx.Client(timeout=60, trust_env=False, verify=trust) as visitor:
            entered = visitor.get(url)
            cookie = entered.headers["set-cookie"]
            assert cookie.startswith("__Host-detent_task_")
            assert "Secure" in cookie
            assert visitor.get(url.partition("/.detent")[0] + "/x").text == "/x"
            entered = visitor.get(url := served.ticket(served.ports[1]))
        origin = url.partition("/.detent")[0]
        headers = {"Cookie": entered.headers["set-cookie"].partition(";")[0]}
        address = origin.replace("https", "wss")
        with connect(address, ssl=trust, origin=origin, additional_headers=headers, proxy=None) as socket:  # type: ignore[arg-type]
            socket.send("hello")
            assert socket.recv() == "hello"
        cluster.free_slots()
    finally:
        cluster.close()
