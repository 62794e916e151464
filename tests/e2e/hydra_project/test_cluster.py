"""The Hydra example as a trial: paused, activated, and with the loss of a run on plain Python."""

from pathlib import Path

import pytest
import yaml
from tests.e2e.hydra_project.project import EXAMPLE, copied, result, train
from tests.support.compiler import IDLE_COMPILER
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment

from determined.client import submissions
from determined.context import pack

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.budget(90, "trains with a pause beside plain Python")]

STEPS = 800
OVERRIDES = (f"num_train_steps={STEPS}", "num_epochs=100", "trainer.val_every_n_steps=100", "lr_monitor=disabled")


@pytest.mark.long  # test_hydra.py pauses a job and compares
@pytest.mark.parametrize("devices", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_paused_trial_ends_with_the_loss_of_plain_python(cluster: LiveCluster, tmp_path: Path, devices: int) -> None:
    overrides = (*OVERRIDES, f"parallel.devices={devices}")
    config = yaml.safe_load((EXAMPLE / "det.yaml").read_text())
    script, _, _ = config["entrypoint"].partition(" +experiment")
    config |= {"entrypoint": " ".join([script, *overrides, "checkpointing.every_n_steps=1000"])}
    config["environment"] = {"environment_variables": [f"PYTHONPATH={IDLE_COMPILER}"]}
    packed = pack(copied(tmp_path / "example"))
    body = {"config": yaml.safe_dump(config), "configName": "det.yaml", "activate": True}
    answer = submissions.create(cluster.session, body, packed)
    experiment = Experiment(cluster, int(answer["experiment"]["id"]))
    experiment.at_step(20)
    experiment.pause()
    left_at = int(experiment.progress["steps"])
    experiment.do("activate")
    experiment.ended()
    assert any("Leaving after step" in line for line in experiment.log)
    assert left_at < STEPS
    plain = result(train(tmp_path / "plain", *overrides))
    last = max(experiment.reports("validation"), key=lambda report: report["totalBatches"])
    assert (last["totalBatches"], last["metrics"]["validation_metrics"]["val_loss"]) == (STEPS, plain["final_loss"])
    experiment.nothing_left()
