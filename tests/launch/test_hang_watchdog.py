"""A hang: who is named, and that the attempt ends with stacks in the log."""

import json
import sys

import pytest
from tests.support.layers import Container, run_on
from tests.support.machines import machines, why_not

from determined_launch import hang_diagnosis, settings, step_counter
from determined_launch.errors import LaunchError
from determined_launch.step_counter import Steps

COLLECTIVE = """Thread 0x01 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 1 in wait
Current thread 0x02 (most recent call first):
  File "/site-packages/torch/distributed/distributed_c10d.py", line 2 in all_reduce
  File "train.py", line 9 in <module>
"""
ELSEWHERE = """Current thread 0x02 (most recent call first):
  File "train.py", line 7 in load
  File "train.py", line 9 in <module>
"""

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

# the harness's own collective: a worker that has nothing heavy to import
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


@pytest.mark.parametrize(
    ("counts", "stacks", "rank", "text"),
    [
        ((5, 3), {}, 1, "rank 1 is behind: 3 steps, the others up to 5"),
        ((3, 3), {0: COLLECTIVE, 1: ELSEWHERE}, 1, "rank 1 is not in the collective operation that the others wait in"),
        ((3, 3), {0: COLLECTIVE, 1: ELSEWHERE}, 1, "rank 1 is at train.py:7 in load"),
        ((3, 3, 3), {0: ELSEWHERE, 1: COLLECTIVE, 2: ELSEWHERE}, 0, "ranks 0, 2 are not in the collective operation"),
        ((3, 3), {0: COLLECTIVE, 1: COLLECTIVE}, None, "the rank that hangs is unknown"),
        ((3,), {0: ELSEWHERE}, 0, "rank 0 is at train.py:7"),
    ],
)
def test_the_rank_that_caused_a_hang_is_found(counts, stacks, rank, text):
    found = hang_diagnosis.find([Steps(number, count, 1.0) for number, count in enumerate(counts)], stacks)
    assert found.rank == rank
    assert text in found.text


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 0), (600, 600), ("10m", 600), ("1h30m", 5400), ("2.5", 2.5), ("90 s", 90)]
)
def test_times(value, seconds):
    assert settings.seconds(value, "launch.hang_timeout") == seconds


@pytest.mark.parametrize("value", ["soon", "10 parsecs", "m"])
def test_an_invalid_hang_timeout_is_refused(value):
    with pytest.raises(LaunchError, match=r"launch.hang_timeout: not a duration: .*; write seconds, or 90s, 10m"):
        settings.seconds(value, "launch.hang_timeout")


def test_step_files(tmp_path):
    assert step_counter.read(tmp_path / "none") == []
    path = step_counter.make(tmp_path, 3)
    (tmp_path / "rank-3.stack").touch()
    assert [(one.rank, one.count, one.age < 5) for one in step_counter.read(tmp_path)] == [(3, 0, True)]
    path.write_bytes((7).to_bytes(8, "little"))
    assert [one.count for one in step_counter.read(tmp_path)] == [7]


def configured(seconds):
    return {"DET_EXPERIMENT_CONFIG": json.dumps({"launch": {"hang_timeout": seconds}}), "C10D_PORT": "29577"}


def assert_named(ended):
    assert ended.code == 1, ended.output
    assert "hang: rank 1 is not in the collective operation that the others wait in" in ended.output
    assert "in get_stuck" in ended.output
    assert ended.record(1)["cause"] == "hang"


@pytest.mark.torch
def test_a_hang_on_one_machine(tmp_path):
    (tmp_path / "train.py").write_text(STAR)
    shell = ["sh", "-c", f"{sys.executable} train.py; exit $?"]  # so that the worker is a grandchild of its wrapper
    words = ["determined.launch.torch_distributed", "--nproc_per_node", "2", "--", *shell]
    ended = Container(tmp_path / "run", words, environ={**configured(3), "C10D_PORT": "0"}).wait(60)
    assert_named(ended)
    assert any(line.startswith("[rank=1]") and "in get_stuck" in line for line in ended.output.splitlines())
    assert any(line.startswith("[rank=0]") and "_collectives.py" in line for line in ended.output.splitlines())


@pytest.mark.torch
@pytest.mark.long  # tests/e2e/launchers/test_failures.py lets a rank sleep on the second machine
@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
def test_a_hang_across_machines(tmp_path):
    (tmp_path / "train.py").write_text(HANGING)
    with machines(2) as made:
        chief, other = run_on(
            made, tmp_path, ["determined.launch.torch_distributed", "train.py"], environ=configured("15s")
        )
        assert_named(chief.wait(60))
        other.kill()
        assert "[rank=1]" in other.wait(20).output


@pytest.mark.torch
def test_without_a_timeout_there_is_no_step_file(tmp_path):
    (tmp_path / "train.py").write_text("import os\nprint('file', os.environ.get('DET_STEP_FILE'))")
    ended = Container(tmp_path / "run", ["determined.launch.torch_distributed", "train.py"], environ={"C10D_PORT": "0"})
    assert ended.wait().ranks("file") == {0: "None"}


@pytest.mark.torch
def test_workers_without_a_handler_are_told_of_by_proc(tmp_path):
    words = ["determined.launch.torch_distributed", "--", "sleep", "300"]
    ended = Container(tmp_path / "run", words, environ={**configured(1), "C10D_PORT": "0"}).wait(60)
    assert ended.code == 1
    assert "hang: rank 0" in ended.output
    assert any(line.startswith("[rank=0] process ") and "(sleep 300" in line for line in ended.output.splitlines())
