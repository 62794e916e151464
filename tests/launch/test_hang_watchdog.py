"""Hangs: the rank that is named, and the time limit. tests/e2e/launchers/test_hangs.py tests real hangs."""

import json
from types import SimpleNamespace

import pytest

from determined_launch import deepspeed, hang_diagnosis, hang_watchdog, runner, settings, step_counter, watchdog
from determined_launch.arguments import parse
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
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
def test_the_diagnosis_names_the_rank_that_caused_a_hang(counts, stacks, rank, text):
    diagnosis = hang_diagnosis.find([Steps(number, count, 1.0) for number, count in enumerate(counts)], stacks)
    assert diagnosis.rank == rank
    assert text in diagnosis.text


@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 0), (600, 600), ("10m", 600), ("1h30m", 5400), ("2.5", 2.5), ("90 s", 90)]
)
def test_a_hang_timeout_is_read_as_seconds(value, seconds):
    assert settings.seconds(value, "launch.hang_timeout") == seconds


@pytest.mark.parametrize("value", ["soon", "10 parsecs", "m"])
def test_an_invalid_hang_timeout_is_refused(value):
    with pytest.raises(LaunchError, match=r"launch.hang_timeout: not a duration: .*; write seconds, or 90s, 10m"):
        settings.seconds(value, "launch.hang_timeout")


def test_step_files_hold_rank_count_and_age(tmp_path):
    assert step_counter.read(tmp_path / "none") == []
    path = step_counter.make(tmp_path, 3)
    (tmp_path / "rank-3.stack").touch()
    assert [(steps.rank, steps.count, steps.age < 5) for steps in step_counter.read(tmp_path)] == [(3, 0, True)]
    path.write_bytes((7).to_bytes(8, "little"))
    assert [steps.count for steps in step_counter.read(tmp_path)] == [7]


@pytest.mark.parametrize(
    ("config", "seconds", "name"),
    [
        ({"health": {"hang_timeout": 600.0}}, 600, "health.hang_timeout"),
        ({"launch": {"hang_timeout": "10m"}, "health": {"hang_timeout": None}}, 600, "launch.hang_timeout"),
        ({}, 0, "launch.hang_timeout"),
    ],
)
def test_a_hang_timeout_is_read_under_its_new_and_its_earlier_name(config, seconds, name):
    launch_settings = settings.read({"DET_EXPERIMENT_CONFIG": json.dumps(config)})
    assert (launch_settings.hang_seconds, launch_settings.hang_setting) == (seconds, name)


@pytest.mark.parametrize(
    ("config", "setting"),
    [
        ({"data": {"__det_dtrain_args": "--note 'it"}}, "data.__det_dtrain_args: No closing quotation"),
        ({"optimizations": {"tensor_fusion_threshold": "many"}}, "optimizations.tensor_fusion_threshold is a whole"),
        ({"optimizations": {"tensor_fusion_cycle_time": []}}, "optimizations.tensor_fusion_cycle_time is a whole"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named(config, setting):
    with pytest.raises(LaunchError, match=setting):
        settings.read({"DET_EXPERIMENT_CONFIG": json.dumps(config)})


def test_a_setting_that_is_null_has_its_default():
    config = {"optimizations": {"tensor_fusion_threshold": None, "tensor_fusion_cycle_time": None}}
    found = settings.read({"DET_EXPERIMENT_CONFIG": json.dumps(config)})
    assert (found.fusion_megabytes, found.cycle_milliseconds) == (64, 1)


@pytest.mark.parametrize(
    ("rank", "ranks", "expected"),
    [
        (0, None, ("watches", [1, 2])),
        (1, None, ("serves",)),
        (1, (1, 2), ("watches", [2])),
        (2, (1, 2), ("serves",)),
    ],
)
def test_the_first_container_with_workers_watches_the_others_with_workers(monkeypatch, rank, ranks, expected):
    """Filters of deepspeed leave some containers without workers; these answer nothing."""
    done = []
    server = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(hang_watchdog, "HangWatch", lambda _context, _mark, others: done.extend(["watches", [*others]]))
    monkeypatch.setattr(hang_watchdog, "serve", lambda _context: done.append("serves") or server)
    monkeypatch.setattr(runner, "run", lambda *_args, **_options: 0)
    facts = RendezvousFacts(("10.0.0.1", "10.0.0.2", "10.0.0.3"), rank, (1, 1, 1))
    environ = {"DET_EXPERIMENT_CONFIG": json.dumps({"launch": {"hang_timeout": 5}})}
    context = LaunchContext(deepspeed.MODULE, parse(["train.py"], module=deepspeed.MODULE, python="py"), facts, environ)
    assert watchdog.run(context, runner.LauncherPlan(("true",)), ranks=ranks) == 0
    assert tuple(done) == expected
