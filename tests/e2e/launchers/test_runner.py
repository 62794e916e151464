"""The end of a launcher: its exit code, its delay, and no leftover processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.layers import PACKAGES, Container
from tests.support.waiting import wait_until

from determined_launch import process_table

pytestmark = pytest.mark.budget(60, "starts real launchers for each task")

DEEPSPEED = ["determined.launch.deepspeed", "--num_gpus", "2", "--quiet", "--"]
TORCH = ["determined.launch.torch_distributed", "--nproc_per_node", "2", "--"]
HOROVOD = ["determined.launch.horovod", "-np", "2", "--"]
ALL = pytest.mark.parametrize("layer", [TORCH, DEEPSPEED, HOROVOD], ids=["torch", "deepspeed", "horovod"])

# a plain program, since these tests are about how workers end, not what they compute
WORKER = """
import os, pathlib, signal, sys, time
rank = int(os.environ.get("RANK") or os.environ["HOROVOD_RANK"])
pathlib.Path(f"up-{rank}").write_text(str(os.getpid()))
"""


def worker(tmp_path, text):
    (tmp_path / "worker.py").write_text(WORKER + text)
    return [sys.executable, str(tmp_path / "worker.py")]


def start(tmp_path, layer, text, **environ):
    return Container(tmp_path / "run", [*layer, *worker(tmp_path, text)], environ={"C10D_PORT": "0", **environ})


def pids_of_workers(tmp_path, count=2):
    """Waits until ``count`` workers run and returns their pids."""

    def look():
        pids = [int(path.read_text() or 0) for path in tmp_path.glob("up-*")]
        return pids if len(pids) == count and all(pids) else None

    return wait_until(look, what=f"{count} workers")


def all_gone(pids):
    return wait_until(
        lambda: all(process_table.command_line(pid) in ([], [b""]) for pid in pids), within=5, what="their end"
    )


IGNORING = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if rank == 1:
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    {end}
time.sleep(300)
"""


@pytest.mark.torch
@ALL
@pytest.mark.parametrize(
    ("end", "code"), [pytest.param("os._exit(7)", 7, marks=pytest.mark.long), ("os.kill(os.getpid(), 9)", 137)]
)
def test_a_dead_worker_ends_the_container_within_a_second(tmp_path, layer, end, code):
    container = start(tmp_path, layer, IGNORING.format(end=end))
    pids = pids_of_workers(tmp_path)
    (tmp_path / "go").touch()
    began = time.monotonic()
    ended = container.wait(90)
    assert time.monotonic() - began < 1.5, ended.output
    assert ended.code == code, ended.output
    assert (ended.record(1)["code"], ended.record(1)["signal"]) == (code, 9 if code == 137 else None)
    assert all_gone(pids)


@pytest.mark.torch
@pytest.mark.parametrize(
    "layer",
    [TORCH, pytest.param(DEEPSPEED, marks=pytest.mark.long), HOROVOD],  # test_ranks.py pauses under deepspeed
    ids=["torch", "deepspeed", "horovod"],
)
def test_sigterm_reaches_the_workers(tmp_path, layer):
    text = "signal.signal(15, lambda *_: (print('saved', rank, flush=True), sys.exit(0)))\nopen(f'ready-{rank}','w')\nsignal.pause()"
    container = start(tmp_path, layer, text)
    pids = pids_of_workers(tmp_path)
    wait_until(lambda: len(list(tmp_path.glob("ready-*"))) == 2, what="two workers with a handler")
    container.send(signal.SIGTERM)
    ended = container.wait(60)
    assert sorted(ended.ranks("saved")) == [0, 1], ended.output
    assert all_gone(pids)


@pytest.mark.torch
@pytest.mark.long  # test_a_layer_runs_without_a_cluster starts each layer, to its end
@pytest.mark.parametrize("layer", [DEEPSPEED, HOROVOD], ids=["deepspeed", "horovod"])  # torch: with arguments, below
def test_a_successful_launch_exits_with_zero_and_records_every_rank(tmp_path, layer):
    ended = start(tmp_path, layer, "print('done', rank)").wait()
    assert ended.code == 0, ended.output
    assert sorted(ended.record(rank)["code"] for rank in (0, 1)) == [0, 0]


@pytest.mark.torch
def test_a_worker_that_daemonizes_is_ended_too(tmp_path):
    text = """
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        pathlib.Path("up-daemon").write_text(str(os.getpid()))
        time.sleep(300)
    os._exit(0)
os.wait()
while not pathlib.Path("up-daemon").exists():
    time.sleep(0.01)
"""
    container = start(tmp_path, TORCH[:1], text)
    ended = container.wait(60)
    assert ended.code == 0, ended.output
    assert all_gone([int((tmp_path / "up-daemon").read_text())])


@pytest.mark.torch
def test_a_launcher_may_restart_its_workers(tmp_path):
    text = "seen = pathlib.Path('seen')\nif not seen.exists():\n    seen.touch()\n    time.sleep(1)\n    sys.exit(3)\nprint('again')"
    ended = start(tmp_path, [TORCH[0], "--max-restarts", "1", "--"], text).wait()
    assert ended.code == 0, ended.output
    assert ended.ranks("again") == {0: ""}
    assert ended.record(0)["code"] == 0


@pytest.mark.long  # the test below has the runner's exit code
@pytest.mark.torch
def test_deepspeeds_runner_does_not_hide_that_its_launcher_was_killed(tmp_path):
    container = start(tmp_path, DEEPSPEED, "time.sleep(300)")
    pids = pids_of_workers(tmp_path)
    launcher = next(
        pid
        for pid in process_table.descendants(container.process.pid)
        if b"deepspeed.launcher.launch" in process_table.command_line(pid)
    )
    os.kill(launcher, signal.SIGKILL)
    ended = container.wait(60)
    assert ended.code == 1, ended.output
    assert "2 of its workers were still running" in ended.output
    assert all_gone(pids)


@pytest.mark.torch
def test_deepspeeds_runner_reports_that_no_worker_was_started(tmp_path):
    container = start(tmp_path, DEEPSPEED, "")
    launcher = None
    until = time.monotonic() + 30
    while launcher is None and time.monotonic() < until:  # without a pause: it must be found before it starts a worker
        below = process_table.descendants(container.process.pid)
        launcher = next((pid for pid in below if b"deepspeed.launcher.launch" in process_table.command_line(pid)), None)
    os.kill(launcher, signal.SIGKILL)
    ended = container.wait(60)
    assert ended.code == 1, ended.output
    assert "before it started any worker" in ended.output


@pytest.mark.torch
def test_a_layer_in_a_worker_does_not_change_the_records_of_its_parent(tmp_path):
    inner = [sys.executable, "-m", TORCH[0], "--nproc_per_node", "2", "--", "sh", "-c", "exit 4"]
    text = f"import subprocess\nprint('inner', subprocess.run({inner!r}).returncode, flush=True)"
    ended = start(tmp_path, TORCH[:1], text).wait()
    assert ended.code == 0, ended.output
    assert ended.ranks("inner") == {0: "4"}
    assert ended.record(0)["code"] == 0
    assert sorted(path.name for path in (tmp_path / "run" / "exits").glob("*.json")) == ["rank-0.json"]


@pytest.mark.torch
@pytest.mark.parametrize(
    "layer",
    [TORCH, pytest.param(DEEPSPEED, marks=pytest.mark.long), HOROVOD],  # test_example_launchers.py has a local one
    ids=["torch", "deepspeed", "horovod"],
)
def test_a_layer_runs_without_a_cluster(tmp_path, layer):
    """Runs without run folder, allocation and ports, as on a laptop."""
    program = worker(
        tmp_path, "print('folder', os.environ['DET_RUN_DIR'], 'key', len(os.environ['DET_ALLOCATION_KEY']))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    done = subprocess.run(
        [sys.executable, "-m", *layer, *program],
        env={**environment, "PYTHONPATH": PACKAGES},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    words = [line.partition("[rank=")[2].split() for line in done.stdout.splitlines() if "[rank=" in line]
    assert sorted(word[0] for word in words) == ["0]", "1]"]
    assert all(word[4] == "64" and not Path(word[2]).exists() for word in words)


@pytest.mark.torch
@pytest.mark.parametrize("layer", [TORCH, DEEPSPEED], ids=["torch", "deepspeed"])  # horovod uses any free port here
def test_a_launcher_whose_port_is_in_use_names_the_port(tmp_path, layer):
    with socket.socket() as holder:
        holder.bind(("", 0))
        holder.listen()
        port = holder.getsockname()[1]
        ended = start(tmp_path, layer, "", C10D_PORT=str(port)).wait()
    assert ended.code == 1
    assert f"port {port} " in ended.output
    assert f"by process {os.getpid()} " in ended.output


@pytest.mark.torch
def test_arguments_reach_every_torch_worker_unchanged(tmp_path):
    arguments = ["a b", "", "--", "--trial", "é"]
    show = "import json\nprint('got', json.dumps([sys.argv[1:], rank, os.environ['WORLD_SIZE']]))"
    worker(tmp_path, show)
    ended = Container(tmp_path / "run", [*TORCH, "worker.py", *arguments], environ={"C10D_PORT": "0"}).wait()
    assert ended.code == 0, ended.output
    got = {rank: json.loads(text) for rank, text in ended.ranks("got").items()}
    assert got == {rank: [arguments, rank, "2"] for rank in (0, 1)}
    assert sorted(os.listdir(tmp_path / "run" / "exits")) == ["rank-0.json", "rank-1.json"]
    assert [ended.record(rank)["code"] for rank in (0, 1)] == [0, 0]
