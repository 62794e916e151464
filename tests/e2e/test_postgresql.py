"""A cluster with PostgreSQL: a trial is paused and activated, the server crashes, and the bits are the same."""

from collections.abc import Iterator

import pytest
from tests.support.compiler import IDLE_COMPILER
from tests.support.container_engine import need_task_image
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.postgresql import Server

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.budget(60, "kills the database server and the master")]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Yields a server with PostgreSQL's default settings for crash safety."""
    created = Server(fsync="on", synchronous_commit="on")
    created.start()
    yield created
    created.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[LiveCluster]:
    cluster = LiveCluster(tmp_path_factory.mktemp("lab"), database_url=server.create("lab"))
    try:
        cluster.start_master()
        yield cluster
    finally:
        cluster.close()


@pytest.mark.long  # the test below runs a trial over crashes of the database
@pytest.mark.parametrize(
    "runtime", ["process", pytest.param("docker", marks=pytest.mark.xdist_group("container-engine"))]
)
def test_a_trial_with_postgresql_is_paused_activated_and_ends_with_the_same_bits(
    lab, tmp_path, same_as_straight, runtime
):
    mounts = []
    if runtime == "docker":
        need_task_image()
        mounts = [{"host_path": str(path), "container_path": str(path)} for path in (tmp_path, IDLE_COMPILER)]
    arguments = ("--container-runtime", "docker") if runtime == "docker" else ()
    agent = lab.start_agent(runtime, arguments=arguments, host_paths=(tmp_path, IDLE_COMPILER))
    experiment = create(lab, MODELS["digits"], tmp_path, gates=("train-17",), bind_mounts=mounts)
    experiment.at_gate("train-17")
    experiment.pause()
    experiment.do("activate")
    same_as_straight(experiment)
    agent.end()


@pytest.mark.long  # tests/integration/test_postgresql.py has the crash of the server
def test_a_trial_outlives_a_crash_of_the_server_and_of_the_master(lab, server, tmp_path, same_as_straight):
    agent = lab.start_agent("survivor", is_warm=True)
    experiment = create(lab, MODELS["digits"], tmp_path, held=("train-9", "train-23"))
    experiment.at_gate("train-9")
    server.stop("immediate")
    experiment.open_gate("train-9")
    server.start()
    experiment.at_gate("train-23")
    lab.kill_master()
    server.stop("immediate")
    server.start()
    lab.start_master()
    experiment.open_gate("train-23")
    same_as_straight(experiment)
    agent.end()


def test_a_second_master_on_the_database_names_the_first(lab, tmp_path, server):
    other = LiveCluster(tmp_path / "other", database_url=lab.environment["DET_MASTER_DATABASE_URL"])
    try:
        with pytest.raises(AssertionError, match=r"another master uses this database: det-master .* pid"):
            other.start_master()
    finally:
        other.close()
