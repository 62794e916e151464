"""``examples/launchers``: plain launchers, our layer and a task on the cluster end with the same hash."""

import json
import re
import shutil
from pathlib import Path

import pytest
from tests.support import launchers
from tests.support.fake_master import serving, task_environment
from tests.support.free_ports import free_port

from determined.local import run_local

pytestmark = pytest.mark.torch

EXAMPLE = Path(__file__).parents[3] / "examples" / "launchers"
_FINAL = re.compile(r"final parameters sha256: (\w{64})")


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "example")
    return tmp_path / "example"


def finals(text):
    """Returns the hash, which both ranks must have printed."""
    hashes = _FINAL.findall(text)
    assert len(hashes) == 2, text
    assert len(set(hashes)) == 1
    return hashes[0]


def run(launcher, folder, words, **environ):
    return launchers.run(launcher, 2, words, folder=folder, XDG_DATA_HOME=str(folder.parent), **environ)


@pytest.mark.long
@launchers.needs("horovod")
def test_a_pytorch_trial_has_the_same_hash_under_our_layer_and_under_plain_horovod(folder):
    ours = run(
        "plain",
        folder,
        ["-m", "determined.launch.torch_distributed", "pytorch_trial.py"],
        DET_SLOT_IDS="[0, 1]",
        DET_RUN_DIR=str(folder.parent),
        C10D_PORT=str(free_port()),
    )
    assert finals(ours) == finals(run("horovod", folder, ["pytorch_trial.py"]))


@pytest.mark.long
@launchers.needs("deepspeed")
def test_a_core_api_script_has_the_same_hash_under_plain_torchrun_and_plain_deepspeed(folder):
    hashes = {finals(run(launcher, folder, ["core_api.py"])) for launcher in ("torch_distributed", "deepspeed")}
    assert len(hashes) == 1


@pytest.mark.long
@launchers.needs("deepspeed")
def test_a_deepspeed_trial_has_the_same_hash_as_a_task_and_under_plain_torchrun(folder):
    """Runs the same class by ``--trial`` with the configuration's periods, and by its own ``fit``."""
    import yaml

    config = yaml.safe_load((folder / "deepspeed.yaml").read_text())
    store = folder.parent / "store"
    config["checkpoint_storage"] = {"type": "directory", "container_path": str(store)}
    with serving() as master:
        environ = {
            **task_environment(master, folder.parent),
            "DET_SLOT_IDS": "[0, 1]",
            "DET_TRIAL_SEED": "0",
            "DET_HPARAMS": json.dumps(config["hyperparameters"]),
            "DET_EXPERIMENT_CONFIG": json.dumps(config),
            "USE_DEEPSPEED": "1",
        }
        spec = config["entrypoint"].split()[-1]
        words = ["--module", "determined.exec.harness", spec]
        task = finals(launchers.run("deepspeed", 2, words, folder=folder, **environ))
        reported = master.bodies("/checkpoints")
        steps = [b["metrics"]["stepsCompleted"] for b in master.bodies("/metrics") if b["group"] == "validation"]
    assert steps == [10, 20, 30, 40]
    last = reported[-1]
    assert last["metadata"]["steps_completed"] == 40
    assert last["metadata"]["framework"].startswith("deepspeed-")
    names = set(last["resources"])
    # with ZeRO each rank stores its part of the optimizer in its own file
    assert {"rank-0.pth", "rank-1.pth", "load_data.json", "model0/mp_rank_00_model_states.pt"} <= names
    assert len([name for name in names if "optim_states" in name]) == 2
    assert "code/deepspeed_trial.py" in names
    assert json.loads((store / last["uuid"] / "load_data.json").read_text())["trial_type"] == "DeepSpeedTrial"
    assert task == finals(run("torch_distributed", folder, ["deepspeed_trial.py"]))


@launchers.needs("deepspeed")
def test_a_deepspeed_trial_passes_a_batch_in_local_test_mode(capfd):
    text = (EXAMPLE / "deepspeed.yaml").read_text()
    assert run_local(text, name="deepspeed.yaml", context=EXAMPLE, test_mode=True) == 0
    assert capfd.readouterr().err.splitlines()[-1] == "test passed"
