"""The command line for DeepSpeed's runner, and the machines that its filters select."""

import os

import pytest

from determined_launch import deepspeed, deepspeed_hosts, wrap_rank
from determined_launch.arguments import parse
from determined_launch.deepspeed_hosts import Part
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError

ONE_MACHINE = RendezvousFacts(("10.0.0.1",), 0, (2,))
TWO_MACHINES = RendezvousFacts(("10.0.0.1", "10.0.0.2"), 1, (2, 4))
TWO_CONTAINERS_OF_ONE_MACHINE = RendezvousFacts(("10.0.0.1", "10.0.0.1"), 1, (1, 1))


def argv(*words):
    line = parse(words, module="determined.launch.deepspeed", python="py")
    return deepspeed.build(line, Part(1, "10.0.0.1", (0, 1)), hostfile="/run/hosts", port="29400", python="py").argv


def test_the_deepspeed_command_line_names_hostfile_rank_and_program():
    assert argv("train.py", "a b", "") == (
        *("py", "-m", "deepspeed.launcher.runner", "--hostfile", "/run/hosts", "--no_ssh", "--node_rank", "1"),
        *("--master_addr", "10.0.0.1", "--master_port", "29400", "--no_python", "--no_local_rank"),
        *("py", "-m", "determined_launch.wrap_rank", "RANK", "--", "py", "train.py", "a b", ""),
    )


def test_overrides_follow_our_own_arguments():
    words = argv("--master_port", "1", "--num_gpus=3", "--", "train.py")
    position = words.index("--no_local_rank")
    assert words[position + 1 : position + 4] == ("--master_port", "1", "--num_gpus=3")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["--module", "--", "pkg.train", "x"], ("py", "-m", "pkg.train", "x")),
        (["--modul", "--", "pkg.train", "x"], ("py", "-m", "pkg.train", "x")),
        (["--no_python", "--", "train.py"], ("train.py",)),
    ],
)
def test_the_start_flags_choose_how_the_command_is_run(words, command):
    arguments = argv(*words)
    assert arguments[arguments.index("RANK") + 2 :] == command
    assert not {"--module", "--modul"} & set(arguments)


def test_a_hostfile_names_hosts_and_slots():
    assert deepspeed_hosts.hostfile(TWO_MACHINES) == "10.0.0.1 slots=2\n10.0.0.2 slots=4\n"
    assert deepspeed_hosts.hostfile(ONE_MACHINE) == "localhost slots=2\n"
    assert deepspeed_hosts.names(TWO_CONTAINERS_OF_ONE_MACHINE) == ["10.0.0.1-container-0", "10.0.0.1-container-1"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, Part(1, "10.0.0.1", (0, 1))),
        ({"include": "10.0.0.2:0,1"}, Part(0, "10.0.0.2", (1,))),
        ({"exclude": "10.0.0.1"}, Part(0, "10.0.0.2", (1,))),
        ({"exclude": "10.0.0.1:0"}, Part(1, "10.0.0.1", (0, 1))),
        ({"include": "10.0.0.1"}, None),
        ({"num_nodes": "1"}, None),
        ({"num_nodes": "2"}, Part(1, "10.0.0.1", (0, 1))),
    ],
)
def test_filters_select_the_machines_that_take_part(filters, expected):
    assert deepspeed_hosts.part(filters, TWO_MACHINES) == expected


@pytest.mark.parametrize(
    ("filters", "texts"),
    [
        ({"num_nodes": "3"}, ("--num_nodes 3", "2 machines")),
        ({"exclude": "10.0.0.1@10.0.0.2"}, ("leave no machine", "10.0.0.1, 10.0.0.2")),
        ({"include": "worker-0"}, ("host worker-0 is not in this allocation", "10.0.0.1, 10.0.0.2")),
    ],
)
def test_filters_that_contradict_the_allocation_are_refused(filters, texts):
    with pytest.raises(LaunchError) as refused:
        deepspeed_hosts.part(filters, TWO_MACHINES)
    assert all(text in str(refused.value) for text in texts)


def test_a_hostfile_with_another_number_of_hosts_is_refused(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("a slots=1\nb slots=1\n# c\nd slots=1\n")
    with pytest.raises(LaunchError, match="names 3 hosts, but this allocation has 2 machines"):
        deepspeed_hosts.part({"hostfile": str(path)}, TWO_MACHINES)


@pytest.mark.parametrize(
    ("container_devices", "numbers", "expected"),
    [("GPU-c,GPU-d", "0,1", "GPU-c,GPU-d"), ("GPU-c,GPU-d", "1", "GPU-d"), ("", "0", ""), ("3", "0,1", "3")],
)
def test_a_worker_sees_only_devices_of_its_container(container_devices, numbers, expected):
    environ = {"DET_CONTAINER_DEVICES": container_devices, "CUDA_VISIBLE_DEVICES": numbers, "DET_RUN_DIR": os.devnull}
    assert wrap_rank.worker_variables(environ, 0)["CUDA_VISIBLE_DEVICES"] == expected


def test_an_accelerator_is_recognized_by_its_device_file(tmp_path):
    assert not deepspeed.has_accelerator(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert deepspeed.has_accelerator(tmp_path)


def test_filters_select_from_the_hosts_of_a_users_file(tmp_path):
    path = tmp_path / "hosts"
    path.write_text("  # two machines\na slots=1\n  b slots=1\n")
    parts = [deepspeed_hosts.part({"hostfile": str(path), **given}, TWO_MACHINES) for given in ({}, {"exclude": "b"})]
    assert parts == [Part(1, "10.0.0.1", (0, 1)), None]
    path.write_bytes(b"\xff slots=1")
    with pytest.raises(LaunchError, match="it is not UTF-8"):
        deepspeed_hosts.part({"hostfile": str(path)}, TWO_MACHINES)
