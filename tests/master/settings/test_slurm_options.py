"""Options of sbatch that a pool may set."""

import pytest
from pydantic import ValidationError

from determined_master.settings import slurm_options
from determined_master.settings.pool_settings import ProviderSettings


def settings(**values):
    return ProviderSettings.model_validate({"type": "slurm", "max_agents": 2} | values)


@pytest.mark.parametrize(
    "name", ["comment", "--comment", "Comment", "output", "o", "array", "a", "requeue", "no_requeue"]
)
def test_an_option_that_detent_sets_is_refused_in_any_spelling(name):
    with pytest.raises(ValidationError, match="cannot be set here, because this option of sbatch is ours: "):
        settings(sbatch={name: "x"})


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpu-per-node", 'is no long option of sbatch; did you mean "gpus-per-node"'),
        ("outpu", "is no option of sbatch, and output is ours: Detent reads"),
        ("p", 'write the long name, "partition"'),
        ("xyzzy", '"xyzzy" is no long option of sbatch'),
    ],
)
def test_an_unknown_option_names_the_nearest_known_one(name, words):
    assert words in (slurm_options.problem(name, "1") or "")


@pytest.mark.parametrize("value", ["", "a\nb", "a\0b"])
def test_a_value_is_one_line_of_text(value):
    with pytest.raises(ValidationError, match="one line of text"):
        settings(sbatch={"partition": value})


@pytest.mark.parametrize(
    ("value", "is_right"), [("1-12", True), ("90", True), (90, True), ("1h", False), (True, False)]
)
def test_a_time_limit_has_a_form_that_slurm_reads(value, is_right):
    words = slurm_options.problem("time", value)
    assert (words is None) == is_right
    assert is_right or f"{value} is no time limit" in words


def test_options_become_words_with_one_cpu_for_each_slot():
    options = slurm_options.texts({"partition": "gpu", "gpus_per_node": 2, "contiguous": True, "reboot": False})
    assert options == {"partition": "gpu", "gpus-per-node": "2", "contiguous": None}
    shape = ["--nodes=2", "--ntasks-per-node=1"]
    words = slurm_options.of_job(options, slots=2, nodes=2)
    assert words == [*shape, "--partition=gpu", "--gpus-per-node=2", "--contiguous"]
    assert slurm_options.of_job({}, slots=3, nodes=2) == [*shape, "--cpus-per-task=3"]
    assert slurm_options.of_job({"cpus-per-task": "8"}, slots=3, nodes=2) == [*shape, "--cpus-per-task=8"]
    assert slurm_options.of_job({"exclusive": None}, slots=3, nodes=2) == [*shape, "--exclusive"]


def test_options_of_the_pool_replace_those_of_the_site_that_exclude_them():
    site = {"gres": "gpu:1", "mem": "1G", "qos": "low"}
    assert slurm_options.merged(site, {"gpus-per-node": "4", "mem-per-cpu": "1G"}) == {
        "gpus-per-node": "4",
        "mem-per-cpu": "1G",
        "qos": "low",
    }


@pytest.mark.parametrize(
    ("options", "has"),
    [
        ({"gres": "gpu:a100:2"}, True),
        ({"gres": "tmpfs:1,gpu"}, True),
        ({"gpus": "1"}, True),
        ({"gres": "tmp:1"}, False),
    ],
)
def test_a_job_has_gpus_if_an_option_asks_for_them(options, has):
    assert slurm_options.has_gpus(options) is has


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"launch": ["x"]}, "launch belongs to providers of type command"),
        ({"tasks_as_me": True}, "tasks_as_me belongs to providers of type local"),
        ({"nodes": 2, "max_agents": 3}, "no multiple of nodes"),
        ({"type": "local", "sbatch": {"partition": "a"}}, "sbatch belongs to providers of type slurm"),
        ({"type": "local", "folder": "/a"}, "folder belongs to providers of type slurm"),
    ],
)
def test_settings_of_another_type_are_refused(values, words):
    with pytest.raises(ValidationError, match=words):
        settings(**values)
