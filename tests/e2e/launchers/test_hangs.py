"""A hang under a real launcher ends the attempt, and its log names the rank and contains the stacks."""

import json
import sys

import pytest
from tests.support.layers import Container, run_on
from tests.support.machines import machines, why_not

HANGING = """
import faulthandler, os, signal, struct, time, torch, torch.distributed as dist
faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)  # as core.init() does
dist.init_process_group("gloo")
rank = dist.get_rank()

def get_stuck():
    time.sleep(300)

for step in range(1, 1000):
    if rank == 1 and step == 4:
        get_stuck()
    dist.all_reduce(torch.ones(1))
    with open(os.environ["DET_STEP_FILE"], "r+b") as file:
        file.write(struct.pack("<Q", step))
"""

# the harness's own collective, for a worker without heavy imports
STAR = """
import faulthandler, os, pathlib, signal, struct, time
from determined.core import _collectives
faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)
rank = int(os.environ["RANK"])
star = _collectives.over_unix(rank, 2, pathlib.Path("star.sock"), b"key")

def get_stuck():
    time.sleep(300)

for step in range(1, 1000):
    if rank == 1 and step == 4:
        get_stuck()
    star.broadcast(star.gather(rank))
    with open(os.environ["DET_STEP_FILE"], "r+b") as file:
        file.write(struct.pack("<Q", step))
"""


def configured(seconds):
    return {"DET_EXPERIMENT_CONFIG": json.dumps({"launch": {"hang_timeout": seconds}}), "C10D_PORT": "29577"}


def assert_named(ended):
    assert ended.code == 1, ended.output
    assert "hang: rank 1 is not in the collective operation that the others wait in" in ended.output
    assert "in get_stuck" in ended.output
    assert ended.record(1)["cause"] == "hang"


@pytest.mark.torch
def test_the_hung_rank_on_one_machine_is_named(tmp_path):
    (tmp_path / "train.py").write_text(STAR)
    shell = ["sh", "-c", f"{sys.executable} train.py; exit $?"]  # makes the worker a grandchild of its wrapper
    words = ["determined.launch.torch_distributed", "--nproc_per_node", "2", "--", *shell]
    ended = Container(tmp_path / "run", words, environ={**configured(3), "C10D_PORT": "0"}).wait(180)
    assert_named(ended)
    assert any(line.startswith("[rank=1]") and "in get_stuck" in line for line in ended.output.splitlines())
    assert any(line.startswith("[rank=0]") and "_collectives.py" in line for line in ended.output.splitlines())


@pytest.mark.torch
@pytest.mark.long  # tests/e2e/launchers/test_failures.py lets a rank sleep on the second machine
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_the_hung_rank_on_another_machine_is_named(tmp_path):
    (tmp_path / "train.py").write_text(HANGING)
    with machines(2) as created:
        chief, other = run_on(
            created, tmp_path, ["determined.launch.torch_distributed", "train.py"], environ=configured("15s")
        )
        assert_named(chief.wait(180))
        other.kill()
        assert "[rank=1]" in other.wait(60).output


@pytest.mark.long  # tests/launch has the file
@pytest.mark.torch
def test_without_a_timeout_there_is_no_step_file(tmp_path):
    (tmp_path / "train.py").write_text("import os\nprint('file', os.environ.get('DET_STEP_FILE'))")
    ended = Container(tmp_path / "run", ["determined.launch.torch_distributed", "train.py"], environ={"C10D_PORT": "0"})
    assert ended.wait().ranks("file") == {0: "None"}


@pytest.mark.torch
def test_workers_without_a_signal_handler_are_described_from_proc(tmp_path):
    words = ["determined.launch.torch_distributed", "--", "sleep", "300"]
    ended = Container(tmp_path / "run", words, environ={**configured(1), "C10D_PORT": "0"}).wait(180)
    assert ended.code == 1
    assert "hang: rank 0" in ended.output
    assert any(line.startswith("[rank=0] process ") and "(sleep 300" in line for line in ended.output.splitlines())
