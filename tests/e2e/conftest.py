"""One straight run a model and session, and one shared cluster a test worker."""

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

# Masters of several workers run side by side on this machine.
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
os.environ[PORT_BLOCKS] = f"{_WORKER % 8 * 60}-{_WORKER % 8 * 60 + 59}"
# Agents give it to their tasks. Waiting threads of OpenMP spin: two small trainings with two threads each on two cores
# took 33 s at the same time, and 1.5 s each with one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")

SEED = os.environ.get("DETENT_SEED") or str(random.SystemRandom().randrange(10**6))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_report_header() -> str:
    return f"moments are drawn from DETENT_SEED={SEED}"


@pytest.fixture
def moments(request: pytest.FixtureRequest) -> random.Random:
    """Draws of this test's own; the seed is printed, and set by DETENT_SEED."""
    print(f"DETENT_SEED={SEED}")
    return random.Random(f"{SEED} {request.node.name}")


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path_factory.mktemp("shared"), slots=2) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: LiveCluster) -> LiveCluster:
    """The shared cluster, whole again and idle whatever a test before did to it."""
    shared.mend()
    shared.free_slots()
    return shared


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory, shared: LiveCluster) -> Callable[[str], Result]:
    """The result of a model's uninterrupted run, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    common = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base

    def result(name: str) -> Result:
        kept = common / f"straight-{name}.json"
        with (common / f"straight-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                shared.mend()
                experiment = create(shared, MODELS[name], tmp_path_factory.mktemp(f"straight-{name}"))
                experiment.ended()
                kept.write_text(json.dumps(asdict(experiment.result())))
            value = json.loads(kept.read_text())
        training, validation = ({int(s): m for s, m in value[g].items()} for g in ("training", "validation"))
        assert sorted(training) == list(range(1, MODELS[name].steps + 1))
        assert sorted(validation) == list(MODELS[name].validation_steps)
        return Result(value["final"], training, validation)

    return result


@pytest.fixture
def same_as_straight(straight: Callable[[str], Result]) -> Callable[[Experiment, str], None]:
    """Holds an experiment against the straight run: the same bits, each report once, and no process left."""

    def check(experiment: Experiment, model: str = "digits") -> None:
        experiment.ended()
        found, expected = experiment.result(), straight(model)
        assert sorted(found.training) == sorted(expected.training)
        assert found == expected
        experiment.nothing_left()

    return check
