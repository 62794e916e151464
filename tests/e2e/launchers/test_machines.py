"""Every layer with its real framework over two machines with one container each, without exposing secrets."""

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from tests.support.layers import KEY, Container, run_on
from tests.support.machines import machines, why_not
from tests.support.waiting import wait_until

from determined_launch import process_table
from determined_launch.environment import RendezvousFacts

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.budget(60, "starts real launchers on several machines"),
]

TORCH = """
import sys, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1) * (dist.get_rank() + 1)
dist.all_reduce(total)
print("sum", total.item(), sys.argv[1:], flush=True)
dist.destroy_process_group()
"""
DEEPSPEED = """
import deepspeed
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # it would be compiled first
deepspeed.init_distributed()
""" + TORCH.replace('dist.init_process_group("gloo")', "")
HOROVOD = """
import sys, torch, horovod.torch as hvd
hvd.init()
total = hvd.allreduce(torch.ones(1) * (hvd.rank() + 1), op=hvd.Sum)
print("sum", total.item(), sys.argv[1:], flush=True)
"""
SCRIPTS = {"torch_distributed": TORCH, "deepspeed": DEEPSPEED, "horovod": HOROVOD}
ARGUMENTS = ["a b", "", "--", "--trial", "é"]
SECRETS = (KEY.encode(), b"t0ken-of-the-session", b"users-own-secret")
IGNORING = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
rank = int(os.environ.get("RANK") or os.environ["HOROVOD_RANK"])
pathlib.Path(f"up-{rank}").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.01)
if rank == 1:
    os._exit(7)
time.sleep(300)
"""


@pytest.fixture(scope="module")
def two():
    with machines(2) as created:
        yield created


def script(folder, text):
    (folder / "train.py").write_text(text)
    return "train.py"


def wait_for_workers(folder):
    """Waits for both workers. The first deepspeed import after an installation takes half a minute."""
    wait_until(lambda: len(list(folder.glob("up-*"))) == 2, within=90, what="two workers")


def assert_summed(ended, ranks, total):
    for container, own in zip(ended, ranks, strict=True):
        assert container.code == 0, container.output
        assert container.ranks("sum") == dict.fromkeys(own, f"{total} {ARGUMENTS!r}"), container.output


@pytest.mark.long  # tests/e2e/launchers/test_matrix.py trains under each layer on two machines
@pytest.mark.parametrize("layer", SCRIPTS)
def test_an_all_reduce_sums_over_two_machines(two, tmp_path, layer):
    words = [f"determined.launch.{layer}", "--", script(tmp_path, SCRIPTS[layer]), *ARGUMENTS]
    ended = [container.wait() for container in run_on(two, tmp_path, words)]
    assert_summed(ended, [[0], [1]], 3.0)
    assert ended[1].record(1)["code"] == 0


def watch_command_lines(stop, found):
    """Records every secret in a command line of this machine."""
    while not stop.is_set():
        for pid in process_table.descendants(os.getpid()):
            line = b"\0".join(process_table.command_line(pid))
            found.update((secret, line) for secret in SECRETS if secret in line)
        stop.wait(0.02)


def test_horovod_shows_no_secret_in_a_command_line_and_uses_no_remote_shell_of_the_system(two, tmp_path):
    """Plain horovodrun would show its whole environment there, and a key if it looks for interfaces itself. Failing
    programs with the names of remote shells are first on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ssh", "sshd", "pdsh", "mpirun"):
        (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/used-{name}\nexit 99\n")
        (folder / name).chmod(0o755)
    environ = {"USERS": "users-own-secret", "PATH": f"{folder}:{os.environ['PATH']}"}
    stop, exposed = threading.Event(), set()
    watcher = threading.Thread(target=watch_command_lines, args=(stop, exposed))
    watcher.start()
    show = "import os\nprint('own', os.environ['USERS'], os.environ['DET_SESSION_TOKEN'], 'remote-shell' in os.environ['PATH'])\n"
    words = ["determined.launch.horovod", script(tmp_path, show + HOROVOD), *ARGUMENTS]
    ended = [c.wait() for c in run_on(two, tmp_path, words, environ=environ)]
    stop.set()
    watcher.join()
    assert_summed(ended, [[0], [1]], 3.0)
    assert not exposed
    assert [container.ranks("own") for container in ended] == [
        {rank: "users-own-secret t0ken-of-the-session False"} for rank in (0, 1)
    ]
    assert not list(Path(tmp_path).glob("used-*"))


@pytest.mark.parametrize("layer", ["torch_distributed", "horovod", pytest.param("deepspeed", marks=pytest.mark.long)])
def test_the_container_of_a_dead_worker_ends_within_a_second(two, tmp_path, layer):
    words = [f"determined.launch.{layer}", "--", script(tmp_path, IGNORING)]
    chief, other = run_on(two, tmp_path, words)
    wait_for_workers(tmp_path)
    (tmp_path / "go").touch()
    began = time.monotonic()
    ended = other.wait(60)
    assert time.monotonic() - began < 1.5
    assert ended.code == 7, ended.output
    chief.kill()
    chief.wait(60)


@pytest.mark.long  # the test above ends the container of a dead worker
def test_horovods_chief_ends_soon_after_another_container(two, tmp_path):
    words = ["determined.launch.horovod", "--", script(tmp_path, IGNORING)]
    chief, other = run_on(two, tmp_path, words)
    wait_for_workers(tmp_path)
    (tmp_path / "go").touch()
    assert other.wait(60).code == 7
    assert chief.wait(90).code != 0


@pytest.mark.long  # the test above ends the container of a dead worker
def test_containers_end_when_horovods_chief_is_killed(two, tmp_path):
    words = ["determined.launch.horovod", "--", script(tmp_path, IGNORING)]
    chief, other = run_on(two, tmp_path, words)
    wait_for_workers(tmp_path)
    chief.kill()
    began = time.monotonic()
    ended = other.wait(60)
    assert time.monotonic() - began < 3
    assert ended.code != 0
    assert "lost the connection to the chief's container" in ended.output
    chief.wait(60)


@pytest.mark.long  # the tests of secrets and of a dead worker start horovod on two machines
def test_horovod_runs_in_two_containers_of_one_machine(two, tmp_path):
    """Two agents run on one host. horovod must not take the second container for its own machine."""
    address = two[0].address
    facts = [RendezvousFacts((address, address), rank, (1, 1)) for rank in (0, 1)]
    words = ["determined.launch.horovod", script(tmp_path, HOROVOD), *ARGUMENTS]
    containers = [
        Container(tmp_path / f"container-{rank}", words, facts=facts[rank], machine=two[0], workdir=tmp_path)
        for rank in (0, 1)
    ]
    assert_summed([container.wait() for container in containers], [[0], [1]], 3.0)


@pytest.mark.long
def test_horovod_runs_over_interfaces_of_different_names(tmp_path):
    with machines(2, interfaces=["eth0", "net7"]) as created:
        words = ["determined.launch.horovod", script(tmp_path, HOROVOD), *ARGUMENTS]
        ended = [container.wait() for container in run_on(created, tmp_path, words)]
        assert_summed(ended, [[0], [1]], 3.0)


def test_a_missing_network_interface_is_named_with_those_that_exist(two, tmp_path):
    words = ["determined.launch.torch_distributed", script(tmp_path, TORCH)]
    containers = run_on(two, tmp_path, words, environ={"DET_INTER_NODE_NETWORK_INTERFACE": "ib0"})
    for container, machine in zip(containers, two, strict=True):
        ended = container.wait()
        assert ended.code == 1
        assert "the network interface ib0, which this machine does not have" in ended.output
        assert f"eth0 ({machine.address}" in ended.output


def test_contradicting_arguments_start_no_launcher(two, tmp_path):
    words = ["determined.launch.torch_distributed", "--nnodes", "3", "--", script(tmp_path, TORCH)]
    for container in run_on(two, tmp_path, words):
        ended = container.wait()
        assert (ended.code, ended.seconds < 5) == (1, True)
        assert "--nnodes 3 was given, but this allocation has 2 machines" in ended.output


@pytest.mark.long  # tests/e2e/batch/test_slurm.py meets by it on two nodes
def test_torchs_own_rendezvous_meets_over_two_machines(two, tmp_path):
    words = ["determined.launch.torch_distributed", "--rdzv-backend", "c10d", "--"]
    ended = [c.wait() for c in run_on(two, tmp_path, [*words, script(tmp_path, TORCH), *ARGUMENTS])]
    assert {rank for container in ended for rank in container.ranks("sum")} == {0, 1}
    assert all(container.code == 0 for container in ended)


@pytest.mark.long  # horovod starts its workers without it by default, which the test of secrets shows
def test_horovod_runs_over_a_real_sshd(two, tmp_path):
    """Uses ``launch.remote_shell: ssh``. Fails with a hint if openssh-server is missing."""
    assert shutil.which("sshd", path="/usr/sbin:/usr/bin"), "this test needs Debian's openssh-server"
    words = ["determined.launch.horovod", script(tmp_path, HOROVOD), *ARGUMENTS]
    environ = {"DET_EXPERIMENT_CONFIG": '{"launch": {"remote_shell": "ssh"}}'}
    ended = [container.wait() for container in run_on(two, tmp_path, words, environ=environ)]
    assert_summed(ended, [[0], [1]], 3.0)
    keys = tmp_path / "container-0" / "info" / "ssh"
    assert keys.stat().st_mode & 0o777 == 0o700
    assert (keys / "known_hosts").read_text().startswith(f"{two[1].address} ssh-ed25519 ")
