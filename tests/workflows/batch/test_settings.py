"""Flags of ``det batch run`` as settings, and values that are refused."""

from typing import Any

import pytest

from determined.errors import ConfigError
from determined_workflows.batch import settings


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"gpus": "x"}, '--gpus "x" is not valid: a whole number of 0 or more'),
        ({"gpus": "-1"}, '--gpus "-1" is not valid'),
        ({"cpus": "0"}, '--cpus "0" is not valid: a whole number of 1 or more'),
        ({"nodes": "two"}, '--nodes "two" is not valid'),
        ({"memory": "10X"}, '--mem "10X" is not valid: a number with K, M, G or T, such as 10G'),
        ({"time": "tomorrow"}, '--time "tomorrow" is not valid: dd-HH:MM:SS'),
        ({"kind": "standart"}, '--job-type "standart" is not valid: standard, distributed, sweep'),
        ({"kind": "distributed"}, "needs its launcher: -W torchrun or -W lightning"),
        ({"kind": "distributed", "launcher": "horovod"}, '--which-distributed "horovod" is not valid'),
        ({"exp_name": "a/b"}, '--exp-name "a/b" is not valid'),
        ({"partition": "a b"}, '--partition "a b" is not valid'),
        ({"memory_per_gpu": "4G"}, "--mem-per-gpu needs --gpus N"),
    ],
)
def test_a_value_that_is_not_valid_is_named_with_its_flag(flags: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings.read(flags)
    assert sentence in str(refused.value)


def test_defaults_are_those_of_the_document() -> None:
    found, notes = settings.read({"yes": True, "data": None})
    assert (found.kind, found.nodes, found.gpus, found.cpus, found.memory) == ("standard", 1, 0, 2, "10G")
    assert found.time == "00-01:00:00"
    assert notes == []


def test_a_standard_job_has_one_node_and_says_so() -> None:
    found, notes = settings.read({"nodes": "2"})
    assert found.nodes == 1
    assert notes == ["a standard job has one node; --nodes 2 has an effect with --job-type distributed"]


def test_a_sweep_has_one_gpu_unless_told_otherwise() -> None:
    assert settings.read({"kind": "sweep"})[0].gpus == 1
    assert settings.read({"kind": "sweep", "gpus": "0"})[0].gpus == 0


def test_the_older_name_of_torchrun_is_accepted() -> None:
    assert settings.read({"kind": "distributed", "launcher": "script"})[0].launcher == "torchrun"
