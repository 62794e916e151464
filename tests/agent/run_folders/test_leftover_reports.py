"""Metric reports that a dead task left on disk are sent in order, with the task's token, before its end is reported."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_master import FakeMaster, serving

from determined.core._spool import FILE_NAME, SENT_NAME
from determined.link.run_folder import RunFolder
from determined_agent.run_folders.leftover_reports import MAX_FAILURES, send_leftover_reports

ENVIRONMENT = {"DET_TRIAL_ID": "7", "DET_SESSION_TOKEN": "task.token"}


@pytest.fixture
def master() -> Iterator[FakeMaster]:
    with serving() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    created = RunFolder(tmp_path / "run")
    created.make()
    return created


def leave(folder: RunFolder, steps: range, sent: int = 0) -> list[dict[str, object]]:
    """Writes one report for each step, of which the first ``sent`` are marked as sent. Returns the others."""
    reports: list[dict[str, object]] = [{"metrics": {"stepsCompleted": step}, "group": "training"} for step in steps]
    lines = [json.dumps(report).encode() + b"\n" for report in reports]
    (folder.spool / FILE_NAME).write_bytes(b"".join(lines) + b'{"metrics": {"steps')
    (folder.spool / SENT_NAME).write_bytes(b"%020d" % sum(map(len, lines[:sent])))
    return reports[sent:]


async def send(folder: RunFolder, master: FakeMaster) -> int:
    return await send_leftover_reports(folder, ENVIRONMENT, master.url)


async def test_unsent_reports_are_sent_once_and_in_order(folder: RunFolder, master: FakeMaster) -> None:
    left = leave(folder, range(1, 9), sent=3)
    assert await send(folder, master) == 5
    assert master.bodies("/api/v1/trials/7/metrics") == left
    assert master.calls[0][4]["Authorization"] == "Bearer task.token"
    assert await send(folder, master) == 0
    assert len(master.calls) == 5


async def test_a_refused_report_is_skipped_and_a_503_is_retried(folder: RunFolder, master: FakeMaster) -> None:
    leave(folder, range(1, 4))
    answers = iter([(503, {}), (200, {}), (400, {}), (200, {})])
    master.on("POST", "/metrics", lambda _: next(answers))
    assert await send(folder, master) == 2
    steps = [body["metrics"]["stepsCompleted"] for body in master.bodies("/metrics")]
    assert steps == [1, 1, 2, 3]


async def test_no_further_report_is_sent_after_a_401(folder: RunFolder, master: FakeMaster) -> None:
    leave(folder, range(1, 4))
    master.on("POST", "/metrics", (401, {}))
    assert await send(folder, master) == 0
    assert len(master.calls) == 1


async def test_a_report_that_the_master_always_answers_with_500_is_dropped(
    folder: RunFolder, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("determined_agent.run_folders.leftover_reports._LAST_WAIT", 0.01)
    leave(folder, range(1, 3))
    master.on("POST", "/metrics", lambda body: (500 if body["metrics"]["stepsCompleted"] == 1 else 200, {}))
    assert await send(folder, master) == 1
    assert len(master.calls) == MAX_FAILURES + 2


async def test_missing_and_hostile_report_files_send_nothing_and_raise_nothing(
    folder: RunFolder, master: FakeMaster, tmp_path: Path
) -> None:
    assert await send(folder, master) == 0
    os.mkfifo(folder.spool / FILE_NAME)
    assert await send(folder, master) == 0
    (folder.spool / FILE_NAME).unlink()
    (tmp_path / "secret").write_text("{}\n")
    (folder.spool / FILE_NAME).symlink_to(tmp_path / "secret")
    (folder.spool / SENT_NAME).write_text("99999999999999999999")
    assert await send(folder, master) == 0
    assert await send_leftover_reports(folder, {"DET_TRIAL_ID": "7/../8", "DET_SESSION_TOKEN": "t"}, master.url) == 0
    assert master.calls == []


def test_the_agent_and_the_task_use_the_same_file_names(folder: RunFolder) -> None:
    assert (folder.reports.name, folder.reports_sent.name) == (FILE_NAME, SENT_NAME)
