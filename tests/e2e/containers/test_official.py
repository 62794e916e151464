"""The unmodified official client trains digits in containers on ``det up --container-runtime docker``."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.compiler import IDLE_COMPILER
from tests.support.container_engine import containers, remove_containers
from tests.support.live_models import DIGITS
from tests.support.official_client import OFFICIAL
from tests.support.official_cluster import OfficialCluster, official_cluster, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.official,
    pytest.mark.torch,
    pytest.mark.budget(60, "trains in containers with pauses"),
]

GATE = "train-17"
_FINAL = re.compile(r"final parameters sha256: ([0-9a-f]{64})")


@pytest.fixture(scope="module")
def official(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfficialCluster]:
    assert (OFFICIAL / "bin" / "det").exists(), f"no official client in {OFFICIAL}: run make official"
    with official_cluster(
        container_runtime="docker", host_paths=(tmp_path_factory.getbasetemp(), IDLE_COMPILER)
    ) as cluster:
        try:
            yield cluster
        finally:
            remove_containers(label_of(cluster))


def label_of(cluster: OfficialCluster) -> str:
    return f"detent.data={cluster.folder / 'data' / 'agent'}"


@pytest.mark.long  # test_resume.py pauses in a container, tests/e2e/official by this client
def test_digits_created_paused_and_activated_by_the_official_client_end_with_the_straight_runs_bits(
    official: OfficialCluster, tmp_path: Path, straight
) -> None:
    gates = tmp_path / "gates"
    gates.mkdir()
    (gates / GATE).write_text("preempted")  # the trial waits there until it is preempted
    mounts = [{"host_path": str(path), "container_path": str(path)} for path in (tmp_path, IDLE_COMPILER)]
    config = yaml.safe_load(DIGITS.configured(gates, bind_mounts=mounts))
    experiment = official.create(config, DIGITS.context(tmp_path / "context"))
    until((gates / f"{GATE}.here").exists)
    label = label_of(official)
    assert len(containers(label)) == 1
    assert "Paused" in official.det("experiment", "pause", experiment)
    until(lambda: not official.held(experiment))
    until(lambda: not containers(label))
    paused_at = official.steps(experiment)
    assert 0 < paused_at < DIGITS.steps
    assert "Activated" in official.det("experiment", "activate", experiment)
    official.reaches(experiment, "COMPLETED")
    log = official.logs(experiment)
    assert set(_FINAL.findall(log)) == {straight("digits").final}
    assert "with image detent/cpu" in log
    assert official.steps(experiment) == DIGITS.steps
    until(lambda: not containers(label))
