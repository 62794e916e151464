"""The launch layers over two agents whose tasks run in containers of one engine, in the host network."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.compiler import IDLE_COMPILER
from tests.support.container_engine import TASK_IMAGE, containers, need_launchers_image, remove_containers
from tests.support.live_cluster import LiveCluster
from tests.support.live_launchers import Outcome, example_under, outcome_of, run_bare_launcher, seed_of
from tests.support.live_trials import Experiment, create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.budget(90, "trains over two containers with a pause")]

AGENTS = ("agent-1", "agent-2")
LONG_LAYERS = ("deepspeed", "horovod")


class Pair(LiveCluster):
    """Two agents with one slot each, on one engine."""

    @property
    def labels(self) -> list[str]:
        return [f"detent.data={self.folder / name}" for name in AGENTS]

    @property
    def containers(self) -> list[list[str]]:
        """Returns the names of the containers by agent."""
        return [containers(label) for label in self.labels]

    def no_container_left(self) -> None:
        wait_until(lambda: not any(self.containers), within=20, what="no container is left")


@pytest.fixture(scope="module")
def pair(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    cluster = Pair(tmp_path_factory.mktemp("pair"))
    try:
        cluster.start_master()
        for name in AGENTS:
            host_paths = (cluster.folder.parent, IDLE_COMPILER)
            cluster.start_agent(name, slots=1, arguments=("--container-runtime", "docker"), host_paths=host_paths)
        yield cluster
    finally:
        cluster.close()
        for label in cluster.labels:
            remove_containers(label)


@pytest.fixture
def pause_and_finish(pair: Pair, tmp_path: Path) -> Callable[..., Experiment]:
    """Pauses a trial on both agents in the middle of training, activates it, and waits for its end."""

    def work(layer: str, image: str = TASK_IMAGE) -> Experiment:
        mounts = [{"host_path": str(path), "container_path": str(path)} for path in (tmp_path, IDLE_COMPILER)]
        model = example_under(layer, slots=2, held=True)
        environment = yaml.safe_load(model.configured(tmp_path / "gates"))["environment"] | {"image": image}
        changes = {"environment": environment, "bind_mounts": mounts}
        experiment = create(pair, model, tmp_path, gates=("train-9",), **changes)
        experiment.at_gate("train-9", within=120)
        assert [len(names) for names in pair.containers] == [1, 1], "one container on each agent"
        experiment.do("pause")
        experiment.left(within=60)
        pair.no_container_left()
        assert 0 < experiment.progress["steps"] < model.steps
        experiment.do("activate")
        experiment.ended(within=180)
        assert experiment.progress["runId"] == 2
        pair.no_container_left()
        return experiment

    return work


def assert_same(actual: Outcome, expected: Outcome) -> None:
    assert len(actual.finals) == 2
    assert actual.finals == expected.finals
    assert list(actual.validation.values()) == list(expected.validation.values())


def test_a_trial_over_two_agents_in_containers_pauses_and_ends_with_the_same_bits(pair, pause_and_finish, tmp_path):
    experiment = pause_and_finish("torch_distributed")
    seed = seed_of(pair, experiment)
    assert_same(outcome_of(experiment), run_bare_launcher("torch_distributed", "class", 2, seed, tmp_path / "bare"))


@pytest.mark.long
@pytest.mark.parametrize("layer", LONG_LAYERS)
def test_every_other_layer_pauses_and_ends_with_the_same_bits_in_an_image_that_holds_it(
    pair, pause_and_finish, tmp_path, layer
):
    """Uses the default image with deepspeed and horovod. The reference is the layer's own launcher."""
    experiment = pause_and_finish(layer, image=need_launchers_image())
    assert_same(
        outcome_of(experiment), run_bare_launcher(layer, "class", 2, seed_of(pair, experiment), tmp_path / "bare")
    )
