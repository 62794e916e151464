"""The documented nginx configurations: docs/operations/tls.md serves the page, both clients, an agent and its task;
docs/how-to/pages-of-a-task.md serves the pages of tasks."""

import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from tests.e2e.pages.conftest import Serving
from tests.e2e.streams.conftest import StreamCluster
from tests.support.free_ports import free_port
from tests.support.live_cluster import Program, python
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.task_server import SERVER
from tests.support.tls_server import Pair, written_pair
from tests.support.waiting import wait_until

from determined.client.certificates import FILE_VARIABLE
from determined.client.sign_in import hashed

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
SCRIPT = MODELS["script"]


@dataclass(frozen=True)
class Proxied:
    cluster: StreamCluster
    url: str
    """Address of the master below the proxy's path."""
    pair: Pair


def documented() -> str:
    text = (ROOT / "docs" / "operations" / "tls.md").read_text()
    match = re.search(r"```nginx\n# detent.conf\n(.*?)```", text, re.DOTALL)
    pages = (ROOT / "docs" / "how-to" / "pages-of-a-task.md").read_text()
    of_pages = re.search(r"```text\n(server \{.*?)```", pages, re.DOTALL)
    assert match is not None
    assert of_pages is not None
    certificate = "    ssl_certificate /etc/nginx/lab.crt;\n    ssl_certificate_key /etc/nginx/lab.key;\n"
    return match[1] + of_pages[1].replace("    listen 443 ssl;\n", f"    listen 443 ssl;\n{certificate}")


def configured(folder: Path, pair: Pair, port: int, master: int) -> Path:
    """Writes the documented configuration with the ports and files of this test, inside a complete nginx configuration."""
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "server_name lab.example": "server_name localhost",
        "server_name *.tasks.example.org": "server_name *.tasks.localhost",
        "/etc/nginx/lab.crt": str(pair.certificate),
        "/etc/nginx/lab.key": str(pair.key),
        "127.0.0.1:8080": f"127.0.0.1:{master}",
    }
    server = documented()
    for old, new in changes.items():
        assert old in server, old
        server = server.replace(old, new)
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{name}_temp_path {folder}/{name};\n" for name in names)
    file = folder / "nginx.conf"
    file.write_text(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{server}}}\n"
    )
    return file


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    if NGINX is None:
        pytest.skip("this machine has no nginx, and only root can add it")
    folder = tmp_path_factory.mktemp("proxy")
    pair = written_pair(folder / "pair", "localhost")
    port = free_port()
    proxy_url = f"https://{{label}}.tasks.localhost:{port}"
    (folder / "cluster").mkdir()
    cluster = StreamCluster(folder / "cluster", proxy_domain="tasks.localhost", proxy_url=proxy_url)
    proxy: Program | None = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE_VARIABLE, str(pair.certificate))
        try:
            cluster.start_master()
            argv = [NGINX, "-p", str(folder), "-c", str(configured(folder, pair, port, cluster.port))]
            proxy = Program(argv, folder / "nginx.log", dict(os.environ))
            url = f"https://localhost:{port}/detent"
            wait_until(lambda: proxy is not None and _answers(proxy, port, folder), what="nginx answers")
            cluster.start_agent(slots=1, master=url, arguments=("--master-cert-file", str(pair.certificate)))
            yield Proxied(cluster, url, pair)
        finally:
            cluster.close()
            if proxy is not None:
                proxy.end(signal.SIGTERM)


def _answers(proxy: Program, port: int, folder: Path) -> bool:
    assert proxy.is_running, (folder / "nginx.log").read_text() + (folder / "error.log").read_text()
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_trial_reports_is_paused_and_ends_through_the_proxy(proxied: Proxied, tmp_path: Path) -> None:
    experiment = create(proxied.cluster, SCRIPT, tmp_path, held=("step-0-1",))
    experiment.at_gate("step-0-1")
    trial = proxied.cluster.session.get(f"/detent/trials/{experiment.trial_id}/attempts")
    assert trial["attempts"][0]["state"]
    experiment.open_gate("step-0-1")
    experiment.ended()
    assert sorted(report["totalBatches"] for report in experiment.reports("training")) == [1, 2, 3]


def test_the_command_line_uses_the_whole_address(proxied: Proxied) -> None:
    password = (proxied.cluster.data / "password").read_text().strip()
    variables = {"DET_MASTER": proxied.url, "DET_USER": "admin", "DET_PASS": password}
    environment = proxied.cluster.environment | variables | {FILE_VARIABLE: str(proxied.pair.certificate)}
    done = subprocess.run(
        python("determined_cli", "agent", "list"), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "agent-1" in done.stdout


def test_the_page_is_served_below_the_path_and_its_events_arrive_at_once(proxied: Proxied, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(proxied.pair.certificate))
    with urllib.request.urlopen(f"{proxied.url}/", context=context, timeout=10) as answer:
        page = answer.read().decode()
    assert "/detent" in page
    token = proxied.cluster.session.headers["Authorization"]
    request = urllib.request.Request(f"{proxied.url}/detent/stream", headers={"Authorization": token})
    with urllib.request.urlopen(request, context=context, timeout=90) as stream:
        first = stream.readline()
        assert first.startswith((b"event:", b"data:", b"id:", b"retry:", b":"))
        experiment = create(proxied.cluster, SCRIPT, tmp_path)
        while f'"{experiment.id}"'.encode() not in (line := stream.readline()) and b"experiment" not in line:
            assert line != b""
        experiment.ended()


def test_the_cookie_of_a_session_is_secure_behind_tls(proxied: Proxied) -> None:
    password = (proxied.cluster.data / "password").read_text().strip()
    body = {"username": "admin", "password": hashed(password), "isHashed": True}
    request = urllib.request.Request(
        f"{proxied.url}/api/v1/auth/login",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=str(proxied.pair.certificate))
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        cookie = answer.headers["Set-Cookie"].lower()
    assert "; secure" in cookie
    assert "path=/detent" in cookie


def test_a_page_of_a_task_is_entered_through_the_proxy_at_its_own_subdomain(proxied: Proxied, tmp_path: Path) -> None:
    experiment = proxied.cluster.begin(tmp_path, SERVER)
    url = httpx.URL(Serving(proxied.cluster, experiment).ticket(path="/headers"))
    assert str(url).startswith("https://")
    assert url.host.endswith(".tasks.localhost")
    with httpx.Client(
        base_url=f"https://127.0.0.1:{url.port}",
        headers={"host": url.netloc.decode()},
        verify=False,  # the name is looked up nowhere
        trust_env=False,
        timeout=60,
    ) as visitor:
        entered = visitor.get(url.raw_path.decode())
        cookie = entered.headers["set-cookie"]
        assert "secure" in cookie.lower()
        answer = visitor.get("/headers", headers={"cookie": cookie.partition(";")[0]})
        assert {name.lower(): value for name, value in answer.json()}["host"] == url.netloc.decode()
        with httpx.Client(base_url=proxied.cluster.url, trust_env=False) as straight:
            assert straight.get("/headers").status_code == 404
    experiment.do("kill")
    experiment.nothing_left()
