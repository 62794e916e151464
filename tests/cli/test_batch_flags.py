"""Flags of ``det batch run``: every spelling of the scripts of ammunk/hpc, and unknown ones."""

from argparse import Namespace

import pytest

from determined_cli import command
from determined_cli.argument_parser import ArgumentParser
from determined_cli.batch.arguments import VERBS
from determined_cli.main import main


def parse(*words: str) -> Namespace:
    verb = command.find(VERBS, "submit")
    assert verb is not None
    parser = ArgumentParser("det batch run", allow_abbrev=False)
    for add in verb.arguments:
        add(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("spellings", "value", "name"),
    [
        (("-a", "--account"), "me", "account"),
        (("-g", "--gpus"), "2", "gpus"),
        (("-c", "--cpus", "--cpu"), "4", "cpus"),
        (("-j", "--job-type", "--job_type"), "sweep", "kind"),
        (("-W", "--which-distributed", "--which_distributed"), "torchrun", "launcher"),
        (("-p", "--partition"), "compute", "partition"),
        (("-t", "--time"), "00-01:00:00", "time"),
        (("-m", "--mem"), "10G", "memory"),
        (("--mem-per-gpu", "--mem_per_gpu"), "10G", "memory_per_gpu"),
        (("-G", "--gpu-type", "--gpu_type"), "v100l", "gpu_type"),
        (("-e", "--exp-name", "--exp_name"), "testing", "exp_name"),
        (("-N", "-n", "--nodes", "--num_nodes", "--num-nodes"), "2", "nodes"),
        (("-s", "--singularity-container", "--singularity_container"), "x.sif", "container"),
        (("-w", "--workdir"), "src", "workdir"),
        (("-C", "--configs"), "mine.txt", "configs"),
        (("--sweep-id", "--wandb-sweepid"), "ab12", "sweep_id"),
    ],
)
def test_each_spelling_of_a_flag_is_accepted(spellings: tuple[str, ...], value: str, name: str) -> None:
    for spelling in spellings:
        assert getattr(parse(spelling, value), name) == value


def test_data_takes_several_paths_and_options_of_sbatch_follow_two_hyphens() -> None:
    found = parse("-d", "a", "b/c", "-g", "1", "--", "--qos=high", "--mail-type", "END")
    assert found.data == ["a", "b/c"]
    assert found.sbatch_words == ["--qos=high", "--mail-type", "END"]


@pytest.mark.parametrize(
    ("flag", "near"), [("--gpu", "--gpus"), ("--num-node", "--num-nodes"), ("--jobtype", "--job-type")]
)
def test_an_unknown_flag_is_answered_with_the_nearest(flag: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "submit", flag, "2"]) == 2
    assert f"unrecognized arguments: {flag}" in (message := capsys.readouterr().err)
    assert message.rstrip().endswith(f"did you mean {near}?")
