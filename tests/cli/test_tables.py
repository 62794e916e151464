"""The tables of the command line on terminals of 80, 100 and 160 columns. ``tables/`` holds the expected texts.

With ``DETENT_WRITE_TABLES=1``, ``python -m pytest tests/cli/test_tables.py`` writes these files.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from determined_cli import logs
from determined_cli.agent.commands import AGENT_COLUMNS
from determined_cli.command_noun import show as command
from determined_cli.experiment.hyperparameters import with_hyperparameters
from determined_cli.experiment.show import CHECKPOINTS, COLUMNS, DECISIONS, TRIALS
from determined_cli.job import commands as job
from determined_cli.output import render
from determined_cli.task import show as task
from determined_cli.trial.describe import ATTEMPTS, METRICS, WORKLOADS

from .test_lists import Screen

TABLES = Path(__file__).parent / "tables"
WIDTHS = (80, 100, 160)
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
UUIDS = ("3f2b6a1e-0d58-4a62-9a0c-6f5f3f9d1a11", "91c0d7fe-6b7c-4f1b-8f0e-2b1c8f0a4e55")
NAMES = (
    "vit-b16-imagenet1k-cosine-warmup5-mixup0.2-cutmix1.0-bs4096-seed3",
    "llama-3.2-1b-sft-openorca-lr-sweep (continued from 3981)",
    "spiral",
)


def ago(**span: float) -> str:
    return (NOW - timedelta(**span)).isoformat().replace("+00:00", "Z")


def experiments() -> list[dict[str, Any]]:
    states = (("RUNNING", "41.7%"), ("PAUSED", "8.0%"), ("COMPLETED", "100.0%"))
    return [
        {
            "id": 4127 - number,
            "username": ("marie-therese.dupont", "determined", "kim")[number],
            "name": NAMES[number],
            "forked_from": None,
            "state": states[number][0],
            "progress": states[number][1],
            "start_time": ago(hours=31.2 + number * 70),
            "end_time": ago(minutes=4.5) if number == 2 else None,
            "resource_pool": "a100-80gb",
            "labels": ("imagenet, vit, baseline, paper-figure-3", "sft", "")[number],
        }
        for number in range(3)
    ]


def search() -> list[dict[str, Any]]:
    """Returns trials with ten hyperparameters that vary, and two that do not."""
    return [
        {
            "id": 20518 + number,
            "state": ("COMPLETED", "RUNNING", "ERROR", "STOPPING_COMPLETED")[number],
            "searcher_metric_value": (0.718281828, 0.69314718, None, 1.5e-07)[number],
            "total_batches_processed": (90000, 41250, 12, 90000)[number],
            "restarts": number % 2,
            "start_time": ago(hours=26 - number),
            "end_time": ago(minutes=125 - 50 * number) if number != 1 else None,
            "hparams": {
                "learning_rate": 0.0003162277 * (number + 1),
                "optimizer": {
                    "name": ("adamw", "lamb", "sgd", "adafactor")[number],
                    "weight_decay": 0.05 / (number + 1),
                },
                "beta1": 0.9 - number / 100,
                "beta2": 0.999 - number / 1000,
                "dropout": number / 10,
                "warmup_steps": 500 * number,
                "layers": 6 + number,
                "hidden": 256 * (number + 1),
                "augmentation": ("randaugment", "none", "mixup", "autoaugment")[number],
                "global_batch_size": 512,
                "dataset": "imagenet1k",
            },
        }
        for number in range(4)
    ]


def checkpoints() -> list[dict[str, Any]]:
    return [
        {
            "trial_id": 20518,
            "steps_completed": 45000 * (number + 1),
            "state": ("DELETED", "COMPLETED")[number],
            "searcher_metric": (None, 0.718281828)[number],
            "uuid": UUIDS[number],
            "size": 1_073_741_824 * (number + 1),
            "report_time": ago(hours=13 * (2 - number)),
        }
        for number in range(2)
    ]


def jobs() -> list[dict[str, Any]]:
    return [
        {
            "place": number + 1,
            "job_id": UUIDS[number],
            "type": "experiment",
            "entity_id": 4127 - number,
            "name": NAMES[number],
            "priority": 42,
            "weight": 1,
            "slots": ("64/64", "0/8")[number],
            "state": ("scheduled", "queued")[number],
            "username": "marie-therese.dupont",
            "submission_time": ago(minutes=200 * (number + 1)),
        }
        for number in range(2)
    ]


def tasks() -> list[dict[str, Any]]:
    return [
        {
            "task_id": f"4127.{uuid}",
            "name": NAMES[number],
            "slots_needed": 8,
            "resource_pool": "a100-80gb",
            "registered_time": ago(hours=7 + number),
            "agents": "gpu-node-017.cluster.example.org, gpu-node-018.cluster.example.org",
        }
        for number, uuid in enumerate(UUIDS)
    ]


def agents() -> list[dict[str, Any]]:
    return [
        {
            "id": f"gpu-node-{number:03}.cluster.example.org",
            "version": "0.38.1",
            "registered_time": ago(days=12, hours=number),
            "slots": 8,
            "containers": 3,
            "resource_pool": "a100-80gb",
            "enabled": True,
            "draining": False,
            "addresses": "10.20.30.4",
        }
        for number in (17, 18)
    ]


def remote_commands() -> list[dict[str, Any]]:
    return [
        {
            "id": UUIDS[0],
            "username": "marie-therese.dupont",
            "description": "Command (python3 -m tools.evaluate --split test --checkpoint 91c0d7fe)",
            "state": "RUNNING",
            "exit_status": None,
            "resource_pool": "a100-80gb",
            "start_time": ago(minutes=42),
        }
    ]


def attempts() -> list[dict[str, Any]]:
    outcome = "failed: train.py:118: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    return [
        {
            "attempt": 1,
            "agents": "gpu-node-017 (8)",
            "started": ago(hours=9),
            "ended": ago(hours=8),
            "outcome": outcome,
        },
        {"attempt": 2, "agents": "gpu-node-018 (8)", "started": ago(minutes=30), "ended": None, "outcome": "running"},
    ]


def metrics() -> list[dict[str, Any]]:
    values = {"last": 0.718281828, "min": 0.11, "max": 0.72, "count": 18}
    names = ("top5_accuracy_on_the_validation_split_of_imagenet_v2", "loss")
    bests = (None, 0.11)
    pairs = zip(names, bests, strict=True)
    return [{"group": "validation", "name": name, **values, "best": best} for name, best in pairs]


def workloads() -> list[dict[str, Any]]:
    return [
        {
            "batches": 45000,
            "time": ago(hours=1.5),
            "checkpoint": "COMPLETED",
            "uuid": UUIDS[0],
            "training": '{"loss": 0.3412, "learning_rate": 0.00031}',
            "validation": '{"top5_accuracy": 0.91823, "top1_accuracy": 0.7182}',
        }
    ]


def decisions() -> list[dict[str, Any]]:
    reason = "trial 20520 is stopped at rung 2: loss 0.7182 is not among the best 4 of 16 at 16000 batches"
    return [{"time": ago(hours=2), "trial_id": 20520, "bracket": 1, "reason": reason}]


CASES: dict[str, tuple[Sequence[render.Column], Callable[[], list[dict[str, Any]]]]] = {
    "experiments": (COLUMNS, experiments),
    "trials-of-a-search": (TRIALS, search),
    "checkpoints": (CHECKPOINTS, checkpoints),
    "jobs": (job.COLUMNS, jobs),
    "tasks": (task.COLUMNS, tasks),
    "agents": (AGENT_COLUMNS, agents),
    "commands": (command.COLUMNS, remote_commands),
    "attempts": (ATTEMPTS, attempts),
    "metrics": (METRICS, metrics),
    "workloads": (WORKLOADS, workloads),
    "decisions": (DECISIONS, decisions),
}


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    class Fixed(datetime):
        @classmethod
        def now(cls, tz: object = None) -> "Fixed":
            return cls.fromtimestamp(NOW.timestamp(), UTC)

    monkeypatch.setattr(render, "datetime", Fixed)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_a_table_equals_its_file_and_fits_the_terminal(
    name: str, width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, make = CASES[name]
    rows: Sequence[Mapping[str, Any]] = make()
    if columns is TRIALS:
        columns, rows = with_hyperparameters(columns, rows)
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(width))
    render.show("table", columns, rows)
    output = screen.getvalue() + capsys.readouterr().err
    file = TABLES / f"{name}-{width}.txt"
    if os.environ.get("DETENT_WRITE_TABLES"):
        file.write_text(output, encoding="utf-8")
    assert output == file.read_text(encoding="utf-8")
    assert max(map(len, screen.getvalue().splitlines())) <= width
    for row in rows:
        for key in ("id", "uuid", "task_id", "job_id", "state", "searcher_metric_value"):
            if row.get(key) is not None:
                assert render.Terminal(width).cell(row[key]) in output, key


LINES = (
    {"log": "epoch 1\n", "level": "LOG_LEVEL_INFO", "rankId": 0},
    {"log": "loss is NaN", "level": "LOG_LEVEL_WARNING", "rankId": 3},
    {"log": "", "level": "LOG_LEVEL_INFO", "rankId": None},
)


def test_log_lines_are_shortened_only_for_a_terminal() -> None:
    lines = [{**line, "timestamp": "2026-11-27T11:59:01.123456789Z", "message": "whole"} for line in LINES]
    assert [logs.message(line, short=True) for line in lines] == [
        "11:59:01 epoch 1\n",
        "11:59:01 rank=3 WARNING loss is NaN\n",
        "11:59:01 \n",
    ]
    assert {logs.message(line) for line in lines} == {"whole\n"}
