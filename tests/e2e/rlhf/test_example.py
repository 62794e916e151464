"""The example: PPO raises the reward, and takes the models that warm-up and reward training saved."""

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.compiler import IDLE_COMPILER
from tests.support.rlhf_sets import ROOT

EXAMPLE = ROOT / "examples" / "rlhf"
PRELOAD = ["torch", "transformers.models.gpt2.modeling_gpt2"]
"""Modules that are imported once for all processes: most of what these would compute are the imports."""
if importlib.util.find_spec("deepspeed"):  # which transformers imports then
    PRELOAD.append("deepspeed")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.xdist_group("rlhf"),
    pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers"),
]


def environment(**variables: str) -> dict[str, str]:
    path = os.pathsep.join(
        map(str, (IDLE_COMPILER, *(ROOT / package for package in ("launch", "harness", "workflows"))))
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    return {**environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "base"
    subprocess.run([sys.executable, "make_model.py", str(folder)], cwd=EXAMPLE, env=environment(), check=True)
    return folder


def run(experiment: str, models: list[str], folder: Path, **variables: str) -> list[dict[str, float]]:
    """Runs an experiment of the example to its end and returns the metrics of each step."""
    command = ["python3", "-m", "determined_workflows.rlhf.task.run_worker", experiment, "trial"]
    roles = [{"name": role, "command": command} for role in ("master_worker", "data_worker")]
    roles += [{"name": model, "slots": 1, "command": command} for model in models]  # type: ignore[dict-item]  # JSON
    folder.mkdir()
    (folder / "roles.json").write_text(json.dumps({"preload": PRELOAD, "roles": roles}))
    done = subprocess.run(
        [sys.executable, "-m", "determined.launch.roles", str(folder / "roles.json")],
        cwd=EXAMPLE,
        env=environment(DETENT_RLHF_FOLDER=str(folder), **variables),
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line["metrics"] for line in lines if line["group"] == "training"]


def saved(folder: Path, model: str) -> str:
    """Returns the folder of a model in the newest checkpoint of a run."""
    uuid = json.loads((folder / "latest").read_text())["uuid"]
    return str(folder / "checkpoints" / uuid / "models" / model)


@pytest.mark.long  # test_whole_set.py trains by PPO over a killed worker
@pytest.mark.budget(60, "trains a language model with six processes")
def test_ppo_raises_the_mean_reward(base: Path, tmp_path: Path) -> None:
    steps = run("ppo", ["actor", "critic", "ref", "reward"], tmp_path / "ppo", ACTOR_MODEL=str(base))
    rewards = [metrics["score/reward"] for metrics in steps]
    assert statistics.mean(rewards[-5:]) >= statistics.mean(rewards[:5]) + 0.2
    assert all(metrics["version_lag/actor"] == 0 for metrics in steps)
    assert [metrics["version/actor"] for metrics in steps] == list(range(len(steps)))


@pytest.mark.long
def test_ppo_continues_with_the_models_that_warmup_and_reward_saved(base: Path, tmp_path: Path) -> None:
    warmup = run("warmup", ["actor"], tmp_path / "warmup", BASE_MODEL=str(base))
    reward = run("reward", ["reward"], tmp_path / "reward", BASE_MODEL=str(base))
    assert warmup[-1]["train/loss"] < warmup[0]["train/loss"] - 0.5
    assert statistics.mean(metrics["train/accuracy"] for metrics in reward[-5:]) > 0.8
    actor, scorer = saved(tmp_path / "warmup", "actor"), saved(tmp_path / "reward", "reward")
    models = ["actor", "critic", "ref", "reward"]
    steps = run("ppo", models, tmp_path / "ppo", ACTOR_MODEL=actor, REWARD_MODEL=scorer)
    rewards = [metrics["score/reward"] for metrics in steps]
    assert statistics.mean(rewards[-5:]) >= statistics.mean(rewards[:5]) + 0.2


@pytest.mark.long
@pytest.mark.parametrize("stage", ["1", "2"])
def test_ppo_raises_the_mean_reward_with_deepspeed(base: Path, tmp_path: Path, stage: str) -> None:
    pytest.importorskip("deepspeed")
    models = ["actor", "critic", "ref", "reward"]
    steps = run("ppo-deepspeed", models, tmp_path / "ppo", ACTOR_MODEL=str(base), ZERO_STAGE=stage)
    rewards = [metrics["score/reward"] for metrics in steps]
    assert statistics.mean(rewards[-5:]) >= statistics.mean(rewards[:5]) + 0.2
