"""Experiment files in the style of 2023 import and build: star imports, partials, raw data by DataQuery."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parent / "project_of_2023"
REPORT = """
import json, sys
import experiments
from api.config import ALL_EXPERIMENT_CLASSES, dump_config_to_yaml, load_config_from_yaml, make_experiment
from determined_workflows.rlhf.task import experiment_check

report = {"names": sorted(ALL_EXPERIMENT_CLASSES), "torch": "torch" in sys.modules}
for name in ("plot-ppo-s3", "plot-sft", "plot-sft-lora"):
    experiment = make_experiment(name)
    scheduling, config = experiment.scheduling_setup(), experiment.initial_setup()
    experiment_check.check_scheduling(scheduling, config)
    config.set_worker_information(name, "trial")
    master = config.master_worker[0]
    dump_config_to_yaml(config, "config.yaml")
    loaded = load_config_from_yaml("config.yaml")
    report[name] = {
        "levels": master.leveled_exec_funcs.levels,
        "streams": {model: [s.stream_name for s in streams] for model, streams in master.model_streams.items()},
        "notes": experiment_check.notes(scheduling, config),
        "info": [vars(worker.worker_info) for worker in config.model_worker][-1],
        "datasets": [dataset.type_ for dataset in config.data_worker[0].datasets],
        "seed": config.model_worker[0].seed,
        "same": (loaded.data_worker, loaded.model_worker) == (config.data_worker, config.model_worker)
        and loaded.master_worker[0].leveled_exec_funcs.after == master.leveled_exec_funcs.after,
    }
print(json.dumps(report))
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = os.pathsep.join([str(PROJECT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", REPORT],
        capture_output=True,
        text=True,
        cwd=tmp_path_factory.mktemp("here"),
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_files_of_2023_register_classes_and_partials(report: Any) -> None:
    assert report["names"] == ["plot-ppo", "plot-ppo-s1", "plot-ppo-s2", "plot-ppo-s3", "plot-sft", "plot-sft-lora"]


def test_an_experiment_is_built_without_torch(report: Any) -> None:
    assert not report["torch"]


def test_a_ppo_of_2023_builds_with_its_levels_and_streams(report: Any) -> None:
    ppo = report["plot-ppo-s3"]
    assert ppo["seed"] == 3
    assert ppo["levels"] == [
        ["rollout"],
        ["inference_reward", "inference_ref_logits", "inference_values"],
        ["train_actor", "train_critic"],
    ]
    assert ppo["streams"] == {
        "actor": ["model_0", "model_1"],
        "critic": ["model_2", "model_3"],
        "reward": ["model_4"],
        "ref": ["model_5"],
    }
    assert ppo["notes"] == [
        "cpu, mem, nodelist of the scheduling have no effect: the pool and its agents decide",
        "streams use raw_compress instead of pickle_compress: nothing is pickled",
    ]


def test_worker_information_names_the_worker(report: Any) -> None:
    assert report["plot-ppo-s3"]["info"] == {
        "experiment_name": "plot-ppo-s3",
        "trial_name": "trial",
        "worker_type": "model_worker",
        "worker_index": 5,
        "worker_count": 6,
    }


@pytest.mark.parametrize("name", ["plot-sft", "plot-sft-lora"])
def test_a_fine_tuning_of_2023_builds(report: Any, name: str) -> None:
    assert report[name]["levels"] == [["sft"]]
    assert report[name]["datasets"] == ["prompt_answer", "prompt_answer"]
    assert report[name]["notes"] == []


@pytest.mark.parametrize("name", ["plot-ppo-s3", "plot-sft", "plot-sft-lora"])
def test_a_configuration_comes_back_from_yaml(report: Any, name: str) -> None:
    assert report[name]["same"]
