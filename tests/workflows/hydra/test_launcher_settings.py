"""Keys of a launcher: the settings that they become, and warnings about keys without effect."""

import pytest

from determined_workflows.hydra.launcher_settings import LauncherSettings, read, warnings
from determined_workflows.hydra.slurm_options import setup_warnings


@pytest.mark.parametrize(
    ("keys", "slots"),
    [
        ({}, 1),
        ({"gpus_per_node": 8}, 8),
        ({"gpus_per_node": 8, "nodes": 2}, 16),
        ({"gpus_per_task": 1, "tasks_per_node": 4, "nodes": 2}, 8),
        ({"gpus_per_node": 0, "nodes": 3}, 1),
    ],
)
def test_the_slots_are_the_gpus_of_all_nodes(keys, slots):
    assert read(keys).slots == slots


def test_keys_with_an_effect_are_read():
    keys = {
        "partition": "compute",
        "name": "sweep",
        "comment": "why",
        "setup": ["export A=1"],
        "timeout_min": 60,
        "array_parallelism": 4,
    }
    assert read(keys) == LauncherSettings(1, "compute", "sweep", "why", ["export A=1"], 60, 4)
    assert list(warnings(keys)) == []


def test_a_launcher_key_without_effect_is_warned_about_unless_it_is_empty():
    keys = {"cpus_per_task": 28, "qos": "high", "mem_gb": None, "signal_delay_s": 120, "additional_parameters": {}}
    texts = list(warnings(keys))
    assert [text.split()[0] for text in texts] == ["hydra.launcher.cpus_per_task", "hydra.launcher.qos"]
    assert "resources.priority" in texts[1]


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("gpu-bind=none", "additional_parameters.gpu_bind: none"),
        ("wait-all-nodes=1", "additional_parameters.wait_all_nodes: 1"),
        ("exclusive", "additional_parameters.exclusive: true"),
        ("--exclusive", "additional_parameters.exclusive: true"),
        ("#SBATCH --qos=high", "qos: high"),
        ("ntasks-per-node=8", "tasks_per_node: 8"),
        ("output=x/%j.out", "submitit_folder"),
        ("time=2-00:00:00", "timeout_min: 2880"),
        ("time=1:30:00", "timeout_min: 90"),
        ("time=45", "timeout_min: 45"),
        ("time=45:01", "timeout_min: 46"),
        ("time=1-12", "timeout_min: 2160"),
    ],
)
def test_a_slurm_option_in_setup_is_warned_about_with_its_key(line, key):
    (warning,) = setup_warnings([line])
    assert f'"{line}"' in warning
    assert f"use {key}" in warning


@pytest.mark.parametrize("line", ["export NCCL_DEBUG=INFO", "module load cuda", "time", "source env.sh", "A=1", "hint"])
def test_commands_in_setup_give_no_warning(line):
    assert list(setup_warnings([line])) == []
