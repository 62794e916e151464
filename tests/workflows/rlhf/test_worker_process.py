"""Small parts of a worker's process: its place, its signals, its random streams, its tracebacks and long calls."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import pytest
import torch

from determined_launch import step_counter
from determined_workflows.rlhf.task import process_setup, random_states, user_traceback
from determined_workflows.rlhf.task.call_watch import CallWatch, first_seconds
from determined_workflows.rlhf.task.process_setup import StopRequest
from determined_workflows.rlhf.task.role_place import RolePlace, role_name
from determined_workflows.rlhf.task.step_file import StepFile

ROLES = [
    {"name": "master_worker", "processes": [{"rank": 0, "address": "node-1", "port": 5000}]},
    {"name": "actor", "processes": [{"rank": 2, "address": "a", "port": 1}, {"rank": 3, "address": "b", "port": 2}]},
]
VARIABLES = {
    "DET_ROLE": "actor",
    "DET_ROLE_INDEX": "1",
    "DET_ROLES": json.dumps(ROLES),
    "DET_ALLOCATION_KEY": "00ff",
}


def test_a_place_knows_its_name_the_master_worker_and_the_key() -> None:
    place = RolePlace.from_environment(VARIABLES)
    assert place.name == "actor[1]"
    assert (place.master.address, place.master.port) == ("node-1", 5000)
    assert place.key == b"\x00\xff"
    assert place.workers("actor") == ["actor[0]", "actor[1]"]
    assert place.workers("critic") == []


def test_a_worker_outside_the_launch_layer_fails_and_names_the_layer() -> None:
    with pytest.raises(RuntimeError, match=r"DET_ROLE and DET_ROLES not set: .*determined.launch.roles"):
        RolePlace.from_environment({"DET_ROLE_INDEX": "0", "DET_ALLOCATION_KEY": "00"})


@pytest.mark.parametrize(("model", "role"), [("actor", "actor"), ("Actor.7B", "actor-7b"), ("7b", "model-7b")])
def test_a_role_has_a_name_that_the_layer_accepts(model: str, role: str) -> None:
    assert role_name(model) == role


def test_the_first_signal_requests_a_stop_and_one_after_a_second_exits() -> None:
    now, messages = [0.0], []
    stop = StopRequest(lambda: now[0], messages.append)
    assert not stop.is_asked
    stop.handle(signal.SIGINT, None)
    now[0] = 0.5
    stop.handle(signal.SIGINT, None)
    assert stop.is_asked
    assert len(messages) == 1
    now[0] = 3.0
    with pytest.raises(SystemExit) as ended:
        stop.handle(signal.SIGINT, None)
    assert ended.value.code == 130


def test_random_streams_continue_where_they_were_captured() -> None:
    random_states.seed_all(5, 1)
    state = random_states.capture()
    first = (torch.rand(2).tolist(), random.random(), np.random.rand())
    random_states.restore(state)
    assert (torch.rand(2).tolist(), random.random(), np.random.rand()) == first


def test_replicas_have_different_streams() -> None:
    drawn = []
    for part in ((), (0,), (1,)):
        random_states.seed_all(5, *part)
        drawn.append(torch.rand(1).item())
    assert len(set(drawn)) == 3


def test_random_numbers_drawn_under_untouched_do_not_change_later_ones() -> None:
    random_states.seed_all(5)
    expected = torch.rand(1)
    random_states.seed_all(5)
    with random_states.untouched():
        torch.rand(9)
    assert torch.equal(torch.rand(1), expected)


def test_a_traceback_begins_with_the_users_frames_and_has_few_of_libraries_below() -> None:
    frames = [
        ("/site-packages/determined_launch/a.py", 1),
        ("/project/impl/model.py", 10),
        ("/venv/site-packages/torch/nn.py", 2),
        *(("/venv/site-packages/torch/deep.py", line) for line in range(9)),
    ]
    stack = traceback.StackSummary.from_list([(file, line, "f", "code") for file, line in frames])
    shown = [(frame.filename, frame.lineno) for frame in user_traceback.cut(stack)]
    assert shown[0] == ("/project/impl/model.py", 10)
    assert shown[1:] == [("/venv/site-packages/torch/deep.py", line) for line in (6, 7, 8)]


def test_a_traceback_without_frames_of_the_user_stays() -> None:
    stack = traceback.StackSummary.from_list([("/venv/site-packages/torch/nn.py", 2, "f", "code")])
    assert len(user_traceback.cut(stack)) == 1


def test_a_long_call_is_named_after_a_minute_and_then_ever_less_often() -> None:
    calls: dict[str, float] = {"actor[0].generate": 0.0}
    messages: list[str] = []
    watch = CallWatch(lambda: list(calls.items()), 60.0, messages.append)
    for seconds in range(0, 500, 10):
        calls["actor[0].generate"] = float(seconds)
        watch.look()
    assert messages == [f"actor[0].generate has not answered for {seconds} s" for seconds in (60, 120, 240, 480)]


def test_of_several_equal_calls_the_one_that_waits_longest_is_named() -> None:
    messages: list[str] = []
    CallWatch(lambda: [("actor[0].generate", 90.0), ("actor[0].generate", 1.0)], 60.0, messages.append).look()
    assert messages == ["actor[0].generate has not answered for 90 s"]


def test_a_call_is_named_before_the_hang_watchdog_ends_the_trial() -> None:
    assert [first_seconds(text) for text in ("", "0", "20", "1000")] == [60.0, 60.0, 10.0, 60.0]


def test_the_step_file_of_a_busy_worker_has_the_lowest_count(tmp_path: Path) -> None:
    folder = tmp_path / "steps"
    busy, called, waiting = (StepFile({"DET_STEP_FILE": str(step_counter.make(folder, rank))}) for rank in range(3))
    waiting.end(3)  # has finished step 3 and waits for its first call of step 4
    called.begin(4)
    called.end(4)
    busy.end(4)
    busy.begin(4)  # a second call in the same step
    assert [steps.count for steps in step_counter.read(folder)] == [4, 6, 5]


def test_a_worker_without_a_step_file_writes_nothing() -> None:
    StepFile({}).begin(1)


WORKER = """
import time
from determined_workflows.rlhf.task import process_setup
process_setup.leave_signals_to_the_master_worker()
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_leaves_the_first_signal_to_the_master_worker_and_ends_at_a_later_one(first: signal.Signals) -> None:
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for _ in range(2):  # a repetition of the first
            process.send_signal(first)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.2)
        time.sleep(process_setup.REPEAT_SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate()


def test_the_ends_of_a_data_loaders_workers_are_no_signals_to_end() -> None:
    """A data loader of torch installs a handler of SIGCHLD in Python."""
    script = (
        "import signal, subprocess\n"
        "from determined_workflows.rlhf.task import process_setup\n"
        "process_setup.REPEAT_SECONDS = 0\n"
        "process_setup.leave_signals_to_the_master_worker()\n"
        "signal.signal(signal.SIGCHLD, lambda *_: None)\n"
        "for _ in range(5): subprocess.run(['true'])\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", script], env=env, check=False).returncode == 0
