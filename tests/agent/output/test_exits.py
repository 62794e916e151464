"""The exit record of a container: the rank that failed first, its host, its code and its last lines."""

import json
from pathlib import Path

import pytest

from determined.link.messages import ContainerExit
from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import RunEnd
from determined_agent.output.exit_report import exit_of, log_text, masked
from determined_agent.output.log_segments import AGENT, STDERR, STDOUT, SegmentWriter


def record(folder: RunFolder, rank: int, **values: object) -> None:
    folder.exits.mkdir(parents=True, exist_ok=True)
    defaults = {"rank": rank, "code": 1, "signal": None, "host": "node-a", "last_lines": [], "time": 0.0, "cause": ""}
    (folder.exits / f"rank-{rank}.json").write_text(json.dumps(defaults | values))


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "container")


def test_the_rank_that_failed_first_is_the_cause(folder: RunFolder) -> None:
    record(folder, 0, code=1, time=20.4, last_lines=["lost its peer"])
    record(folder, 1, code=137, signal=9, time=20.0, last_lines=["step 7"])
    record(folder, 2, code=0, time=19.0)
    result = exit_of(RunEnd("exited", code=137), folder)
    assert result.message == "rank 1 on node-a was killed by signal 9 (SIGKILL):\nstep 7"
    assert [rank.rank for rank in result.ranks] == [2, 1, 0]


@pytest.mark.parametrize(
    ("cause", "text"),
    [("out_of_memory", "out of memory"), ("hang", "no rank completed a step in time")],
)
def test_the_message_names_the_cause_that_the_wrapper_recorded(folder: RunFolder, cause: str, text: str) -> None:
    record(folder, 0, code=137, signal=9, time=1.0, cause=cause)
    assert exit_of(RunEnd("exited", code=137), folder).message.endswith(f"(SIGKILL), {text}")


def test_an_exit_without_a_record_reports_the_code_of_the_container(folder: RunFolder) -> None:
    assert exit_of(RunEnd("exited", code=3), folder).message == "the process exited with code 3"
    assert exit_of(RunEnd("exited", code=0), folder).message == ""


def test_the_last_line_on_standard_error_is_reported(folder: RunFolder) -> None:
    folder.output.mkdir(parents=True)
    writer = SegmentWriter(folder.output)
    for stream, line in [(STDERR, b"no key in data.yaml"), (STDERR, b" "), (STDOUT, b"loss 1"), (AGENT, b"it ended")]:
        writer.add(stream, line)
    writer.flush()
    writer.close()
    result = exit_of(RunEnd("exited", code=1), folder)
    assert result.last_stderr == "no key in data.yaml"
    assert result.message == "the process exited with code 1:\nno key in data.yaml\n \nloss 1"
    assert masked(result, lambda text: text.replace("key", "****")).last_stderr == "no **** in data.yaml"


def test_the_exit_hints_at_a_missing_file_that_detignore_left_out(folder: RunFolder) -> None:
    folder.workdir.mkdir(parents=True)
    folder.ignored.write_text("*.csv")
    line = "FileNotFoundError: [Errno 2] No such file or directory: '/run/determined/workdir/x.csv'"
    record(folder, 0, last_lines=[f"[rank=0] {line}"])
    result = exit_of(RunEnd("exited", code=1), folder)
    assert result.hint == ".detignore leaves x.csv out of the context (line 1: *.csv)"
    assert log_text(result).splitlines()[-1] == result.hint
    folder.ignored.unlink()
    assert exit_of(RunEnd("exited", code=1), folder).hint == ""


def test_the_log_text_of_an_exit_does_not_repeat_the_output() -> None:
    message = "the process exited with code 1:\nTraceback\nthere is no module x in this task's environment"
    text = log_text(ContainerExit(kind="exited", code=1, message=message))
    assert text == "the process exited with code 1\nthere is no module x in this task's environment"
