"""Exit records that a task has written, and exit records on a full disk."""

import json
from pathlib import Path

import pytest
from tests.support.small_disk import SmallDisk, disk_fixture

from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import RunEnd
from determined_agent.drivers.exit_record import has_ended, read_end
from determined_agent.output.exit_report import exit_of

disk = disk_fixture("1m")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "container")
    made.make()
    made.shim.mkdir()
    return made


@pytest.mark.parametrize(
    "text",
    [
        '{"code": "x"}',
        '{"code": 1.5}',
        '{"code": 1e400}',
        '{"code": true}',
        '{"code": 256}',
        '{"code": -1}',
        '{"signal": {}}',
        '{"signal": 0}',
        '{"signal": 65}',
        '{"code": 0, "signal": "9"}',
        "{}",
        "[]",
        "{",
    ],
)
@pytest.mark.parametrize("is_own_user", [False, True])
def test_an_exit_record_without_a_real_code_or_signal_counts_as_lost(
    folder: RunFolder, text: str, is_own_user: bool
) -> None:
    (folder.shim / folder.exit.name if is_own_user else folder.exit).write_text(text)
    assert has_ended(folder)
    ended = read_end(folder)
    assert ended == RunEnd("system", message="the task's shim ended without an exit record")
    assert exit_of(ended, folder).kind == "system"


@pytest.mark.parametrize("status", [{"code": 0}, {"code": 255}, {"signal": 1}, {"signal": 64}])
def test_an_exit_record_with_a_real_code_or_signal_is_the_end(folder: RunFolder, status: dict[str, int]) -> None:
    folder.exit.write_text(json.dumps({"format": 1, **status}))
    assert read_end(folder) == RunEnd("exited", **status)


def test_the_record_of_a_shim_of_the_tasks_own_user_is_read_on_a_full_disk(disk: SmallDisk) -> None:
    folder = RunFolder(disk.path / "container")
    folder.make()
    folder.shim.mkdir()
    assert not has_ended(folder)
    (folder.shim / folder.exit.name).write_text('{"format": 1, "code": 3}')
    disk.fill()
    assert has_ended(folder)
    assert read_end(folder) == RunEnd("exited", code=3)
