"""Shared by the end-to-end tests: one straight run per model and session, and one cluster per test worker."""

import fcntl
import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest
from tests.support.live_cluster import PORT_BLOCKS, LiveCluster, live_cluster
from tests.support.live_models import MODELS
from tests.support.live_trials import Experiment, Result, create
from tests.support.slurm import slurm as slurm

# The masters of several test workers run at the same time on this machine.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
os.environ[PORT_BLOCKS] = f"{_WORKER % 8 * 60}-{_WORKER % 8 * 60 + 59}"
# Agents pass it to their tasks. Waiting OpenMP threads spin: two concurrent trainings with two threads each took 33 s
# on two cores, and 1.5 s each with one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SEED = os.environ.get("DETENT_SEED") or str(random.SystemRandom().randrange(10**6))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_report_header() -> str:
    return f"moments are drawn from DETENT_SEED={SEED}"


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> random.Random:
    """Returns this test's own random moments. The seed is printed; DETENT_SEED sets it."""
    print(f"DETENT_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path_factory.mktemp("shared"), slots=2, is_warm=True) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: LiveCluster) -> LiveCluster:
    """Returns the shared cluster after every process runs again and all slots are free."""
    shared.mend()
    shared.free_slots()
    return shared


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory, shared: LiveCluster) -> Callable[[str], Result]:
    """Returns a function that returns the result of a model's uninterrupted run. All workers share one run."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def result(name: str) -> Result:
        path = common / f"straight-{name}.json"
        with (common / f"straight-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                shared.mend()
                experiment = create(shared, MODELS[name], tmp_path_factory.mktemp(f"straight-{name}"))
                experiment.ended()
                path.write_text(json.dumps(asdict(experiment.result())))
            value = json.loads(path.read_text())
        training, validation = ({int(s): m for s, m in value[g].items()} for g in ("training", "validation"))
        assert sorted(training) == list(range(1, MODELS[name].steps + 1))
        assert sorted(validation) == list(MODELS[name].validation_steps)
        return Result(value["final"], training, validation)

    return result


@pytest.fixture
def same_as_straight(straight: Callable[[str], Result]) -> Callable[[Experiment, str], None]:
    """Checks that an experiment has the same bits as the straight run, reports each step once, and leaves no process."""

    def check(experiment: Experiment, model: str = "digits") -> None:
        experiment.ended()
        actual, expected = experiment.result(), straight(model)
        assert sorted(actual.training) == sorted(expected.training)
        assert actual == expected
        experiment.nothing_left()

    return check
