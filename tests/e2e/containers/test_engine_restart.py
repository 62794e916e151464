"""Trials resume after an engine without live-restore was stopped or killed together with its containers."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.container_engine import BASE_IMAGE
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.own_engine import OwnEngine, own_engine
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

SCRIPT = MODELS["script"]


@pytest.fixture(scope="module")
def engine_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnEngine]:
    with own_engine(tmp_path_factory.mktemp("own") / "engine") as engine:
        yield engine


@pytest.fixture(scope="module")
def cluster(engine_of_its_own: OwnEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    created = LiveCluster(tmp_path_factory.mktemp("restart"))
    try:
        created.start_master()
        arguments = ("--container-runtime", "docker", "--engine-url", engine_of_its_own.url)
        created.start_agent(slots=1, arguments=arguments, host_paths=(created.folder.parent,))
        yield created
    finally:
        created.close()


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.long), signal.SIGKILL])
def test_a_trial_whose_container_ends_with_its_engine_resumes_and_loses_nothing(
    cluster: LiveCluster, engine_of_its_own: OwnEngine, tmp_path: Path, number: signal.Signals
) -> None:
    engine, gates = engine_of_its_own, tmp_path / "gates"
    environment = yaml.safe_load(SCRIPT.configured(gates))["environment"] | {"image": BASE_IMAGE}
    mounts = [{"host_path": str(tmp_path), "container_path": str(tmp_path)}]
    # No restart is allowed, since the end of an engine must not count as one.
    config = {"environment": environment, "bind_mounts": mounts, "max_restarts": 0}
    experiment = create(cluster, SCRIPT, tmp_path, held=("step-0-1",), **config)
    experiment.at_gate("step-0-1")
    (first,) = engine.containers
    engine.end(number)
    engine.start()
    wait_until(lambda: [name for name in engine.containers if name != first], within=60, what="another container")
    experiment.open_gate("step-0-1")
    experiment.ended()
    assert experiment.trials[0]["restarts"] == 0
    # Attempts that began while no engine answered must not count either.
    assert experiment.progress["runId"] >= 2
    # The first attempt reported step 1 and saved no checkpoint. Its report is archived, so that each step counts once.
    counted = [report["totalBatches"] for report in experiment.reports("training") if not report["archived"]]
    assert sorted(counted) == [1, 2, 3]
    wait_until(lambda: not engine.containers, within=20, what="no container is left")
    experiment.nothing_left()
