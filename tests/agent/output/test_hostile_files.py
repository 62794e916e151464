"""Hostile files in a run folder: they stop neither the end of their task nor the agent."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.test_daemon import ended, state_is
from tests.support.agents import agent_on, make_desired, outcome
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, ReportedState
from determined.link.run_folder import RunFolder
from determined_agent import container
from determined_agent.drivers.driver import RunEnd
from determined_agent.drivers.process import open_shim
from determined_agent.output import exit_report
from determined_agent.output.exit_report import exit_of
from determined_agent.task_process import processes

BAD_EXIT_RECORDS = {
    "fifo": 'mkfifo "$DET_RUN_DIR/exits/rank-0.json"',
    "link": 'mkfifo fifo; ln -s "$PWD/fifo" "$DET_RUN_DIR/exits/rank-0.json"',
    "large": """(printf '{"rank": 0, "code": 1, "last_lines": ["'; head -c 80000000 /dev/zero | tr '\\0' x; printf '"]}') """
    """> "$DET_RUN_DIR/exits/rank-0.json" """,
    "surrogate": r"""printf '{"rank": 0, "code": 1, "last_lines": ["\\ud800"]}' > "$DET_RUN_DIR/exits/rank-0.json" """,
    "not finite": """printf '{"rank": 0, "code": 1, "time": NaN}' > "$DET_RUN_DIR/exits/rank-0.json" """,
}


@pytest.mark.parametrize("kind", BAD_EXIT_RECORDS)
async def test_a_bad_exit_record_does_not_disturb_other_containers(tmp_path: Path, kind: str) -> None:
    master = FakeLinkMaster()
    bad, good = make_desired(f"{BAD_EXIT_RECORDS[kind]}; exit 3"), make_desired("echo fine; exit 4")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(bad)
        assert (await ended(master, bad)).code == 3
        await master.set_desired(bad, good)
        assert (await ended(master, good)).code == 4
        assert master.text_of(good.container_id)[:1] == ["fine"]


@pytest.mark.parametrize("record", ['{"code": "x"}', '{"signal": {}}'])
async def test_an_exit_record_that_a_task_wrote_before_it_killed_its_shim_keeps_no_slot(
    tmp_path: Path, record: str
) -> None:
    master, bad = FakeLinkMaster(), make_desired("sleep 1000")
    folder = RunFolder(tmp_path / "runs" / bad.container_id)
    async with serving(master.app()) as url, agent_on(url, tmp_path) as daemon:
        await master.set_desired(bad)
        await eventually(state_is(master, bad, "RUNNING"))
        shim = open_shim(folder)
        assert shim is not None
        folder.exit.write_text(record)
        os.kill(shim[0], signal.SIGKILL)
        os.close(shim[1])
        assert (await ended(master, bad)).kind == "system"
        assert daemon.held_slots == {}
    processes.kill_all(lambda: processes.marked("DET_CONTAINER_ID", bad.container_id))


async def test_an_end_that_cannot_be_described_is_a_system_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> ContainerExit:
        raise ValueError("no such exit")

    monkeypatch.setattr(container, "exit_of", fail)
    result, _, _ = await outcome(tmp_path, "true")
    assert (result.kind, result.message) == ("system", "the agent cannot describe how the container ended: ValueError")


def test_a_pid_file_with_a_number_that_no_process_has_is_no_shim(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "container")
    folder.make()
    folder.pid.write_text(json.dumps({"pid": 10**30, "started": 1}))
    assert open_shim(folder) is None


def test_the_exit_of_many_long_records_is_bounded(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "container")
    folder.exits.mkdir(parents=True)
    for rank in range(exit_report.MAX_RECORDS + 10):
        lines = ["x" * 10_000] * 20
        record = {"rank": rank, "code": 1, "signal": 10**30, "time": float(rank + 1), "last_lines": lines}
        (folder.exits / f"rank-{rank}.json").write_text(json.dumps(record))
    result = exit_of(RunEnd("exited", code=1), folder)
    assert len(result.ranks) == exit_report.MAX_RECORDS
    assert result.ranks[0].signal is None
    assert len(result.model_dump_json()) < 4 * exit_report.MAX_TEXT_CHARACTERS
    assert result.message.startswith("rank 0 exited with code 1:")


def test_an_exit_that_an_earlier_agent_stored_is_bounded_too() -> None:
    result = exit_report.bounded(ContainerExit(kind="exited", code=10**20, message="\ud800" + "x" * (1 << 20)))
    assert result.code is None
    assert (
        len(ReportedState(containers=[]).model_dump_json() + result.model_dump_json())
        < 2 * exit_report.MAX_TEXT_CHARACTERS
    )


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder.output / "notes.seg").write_text("mine"),
        lambda folder: os.mkfifo(folder.output / f"{10**19}.seg"),
        lambda folder: (folder.wake.unlink(), folder.wake.write_text("")),
    ],
    ids=["a file of the task's", "a fifo", "no bell"],
)
async def test_foreign_files_in_an_output_folder_do_not_disturb_other_containers(
    tmp_path: Path, spoil: Callable[[RunFolder], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("determined_agent.output.shipper.MAX_UNREADABLE", 2, raising=False)
    master, bad, good = FakeLinkMaster(), make_desired("sleep 1000"), make_desired("echo fine; exit 4")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(bad)
        await eventually(state_is(master, bad, "RUNNING"))
        spoil(RunFolder(tmp_path / "runs" / bad.container_id))
        await master.set_desired(bad.model_copy(update={"state": "stopped", "spec": None}), good)
        assert (await ended(master, good)).code == 4
        assert (await ended(master, bad)).kind == "killed"
