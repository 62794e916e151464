"""A master with TLS: agent, task, both clients and `det up` trust its certificate and no other."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.live_cluster import LiveCluster, python
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.new_database import put_database
from tests.support.official_client import OFFICIAL
from tests.support.tls_server import Pair, written_pair
from tests.support.waiting import wait_until

from determined.client.certificates import FILE_VARIABLE

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return written_pair(tmp_path_factory.mktemp("pair"), "127.0.0.1", "localhost")


@pytest.fixture(scope="module")
def cluster(pair: Pair, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    created = LiveCluster(tmp_path_factory.mktemp("tls"), tls_cert=pair.certificate, tls_key=pair.key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FILE_VARIABLE, str(pair.certificate))  # for the requests of the tests
        try:
            created.start_master()
            created.start_agent(slots=1, is_warm=True, arguments=("--master-cert-file", str(pair.certificate)))
            yield created
        finally:
            created.close()


def det(cluster: LiveCluster, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = cluster.environment | {"DET_MASTER": cluster.url, **variables}
    argv = python("determined_cli", *words)
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=180)


@pytest.mark.torch
def test_a_trial_is_paused_and_resumes_by_tls(cluster: LiveCluster, tmp_path: Path, same_as_straight) -> None:
    assert cluster.url.startswith("https://")
    experiment = create(cluster, MODELS["digits"], tmp_path, gates=("train-17",))
    experiment.at_gate("train-17")
    experiment.pause()
    experiment.do("activate")
    same_as_straight(experiment)
    assert {report["trialRunId"] for report in experiment.reports("training")} == {1, 2}


def test_the_cli_refuses_a_master_whose_certificate_it_does_not_trust(cluster: LiveCluster, pair: Pair) -> None:
    password = (cluster.data / "password").read_text().strip()
    credentials = {"DET_USER": "admin", "DET_PASS": password}
    assert det(cluster, "agent", "list", **credentials, **{FILE_VARIABLE: str(pair.certificate)}).returncode == 0
    refused = det(cluster, "agent", "list", **credentials)
    assert refused.returncode == 6
    assert refused.stderr.startswith(f"det: the certificate of {cluster.url} is not trusted: ")
    assert len(refused.stderr.splitlines()) == 1


def test_a_certificate_is_confirmed_once_on_a_terminal(cluster: LiveCluster, tmp_path: Path) -> None:
    password = (cluster.data / "password").read_text().strip()
    config = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "DET_USER": "admin", "DET_PASS": password}
    main, terminal = pty.openpty()
    environment = cluster.environment | {"DET_MASTER": cluster.url, **config}
    client = subprocess.Popen(
        python("determined_cli", "agent", "list"),
        env=environment,
        stdin=terminal,
        stderr=terminal,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.close(terminal)
    prompt = b""
    while b"[y/N]" not in prompt:
        prompt += os.read(main, 4096)
    os.write(main, b"y\n")
    out, _ = client.communicate(timeout=180)
    os.close(main)
    assert client.returncode == 0
    assert "agent-1" in out
    assert b"SHA-256 fingerprint" in prompt
    assert det(cluster, "agent", "list", **config).returncode == 0


def test_an_agent_without_the_certificate_logs_that_it_is_not_trusted(cluster: LiveCluster) -> None:
    stranger = cluster.start_agent("stranger", wait=False)
    try:
        text = wait_until(lambda: "is not trusted" in stranger.log.read_text() and stranger.log.read_text())
        assert f"not connected to {cluster.url}: the certificate of {cluster.url} is not trusted" in text
    finally:
        cluster.agents.pop("stranger").end()


def test_the_official_client_trusts_the_certificate_by_its_variable(cluster: LiveCluster, pair: Pair) -> None:
    password = (cluster.data / "password").read_text().strip()
    # The HTTP library of the official client prefers these variables to the certificate of the client.
    foreign = ("DET_", "PYTHON", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment = inherited | {
        "DET_MASTER": cluster.url,
        "DET_USER": "admin",
        "DET_PASS": password,
        "HOME": str(cluster.folder),
        "XDG_CONFIG_HOME": str(cluster.folder / "official"),
    }
    argv = [str(OFFICIAL / "bin" / "det"), "agent", "list", "--json"]
    with_file = {**environment, FILE_VARIABLE: str(pair.certificate)}
    done = subprocess.run(argv, env=with_file, capture_output=True, text=True, check=False, timeout=270)
    assert done.returncode == 0, done.stderr
    assert [agent["id"] for agent in json.loads(done.stdout)] == ["agent-1"]
    # The client's own procedure: it fetches the certificate, asks once, and stores it.
    for typed in ("y\n", ""):
        confirmed = subprocess.run(
            argv, env=environment, input=typed, capture_output=True, text=True, check=False, timeout=90
        )
        assert confirmed.returncode == 0, confirmed.stderr
        assert "agent-1" in confirmed.stdout


def test_det_up_serves_by_tls_with_the_certificate_of_its_settings(tmp_path: Path) -> None:
    pair = written_pair(tmp_path / "pair", "gpu-1.lab")  # the agent resolves 127.0.0.1 as gpu-1.lab
    file = tmp_path / "master.yaml"
    file.write_text(yaml.safe_dump({"security": {"tls": {"cert": str(pair.certificate), "key": str(pair.key)}}}))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    environment = inherited | {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path)}
    data = str(tmp_path / "data")
    put_database(Path(data))
    argv = [
        sys.executable,
        "-m",
        "determined_cli",
        "up",
        "--config",
        str(file),
        "--port",
        "0",
        "--data",
        data,
        "--slots",
        "1",
        "--detach",
    ]
    started = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=360)
    try:
        assert started.returncode == 0, started.stderr
        assert started.stdout.startswith("ready: https://127.0.0.1:")
        assert f"--master-cert-file {data}/master-certificate.pem" in started.stderr
        listed = subprocess.run(
            python("determined_cli", "agent", "list"), env=environment, capture_output=True, text=True, check=True
        )
        assert len(listed.stdout.splitlines()) >= 2
    finally:
        down = python("determined_cli", "down", "--now", "--data", data)
        subprocess.run(down, env=environment, check=True, capture_output=True, timeout=270)
