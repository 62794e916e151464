"""Real worker processes: rank prefixes, exit records, exit codes, signals and arguments."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support.waiting import wait_until

from determined.link.messages import RankExit
from determined_agent.output.line_splitter import LineSplitter
from determined_launch.lines import Prefixer
from determined_launch.wrap_rank import find_rank


def run(argv, tmp_path, **options):
    environ = {**os.environ, "DET_RUN_DIR": str(tmp_path), **options.pop("environ", {})}
    return subprocess.run(
        [sys.executable, "-m", *argv], env=environ, capture_output=True, text=True, timeout=360, cwd=tmp_path, **options
    )


_SHORTENED = b"x" * 16384 + b" ... [7232 bytes cut here] ... " + b"y" * 16384


def test_a_long_line_is_shortened_equally_with_and_without_a_rank_prefix():
    data = bytes(97 + number % 26 for number in range(100_000)) + b"\n"
    agent, prefixer = LineSplitter(), Prefixer(1)
    (unprefixed,) = agent.feed(data, 0.0)
    (line,) = prefixer.feed(data)
    assert LineSplitter().feed(line, 0.0) == [b"[rank=1] " + unprefixed]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"a\nb\n"], [b"[rank=3] a\n", b"[rank=3] b\n"]),
        ([b"a", b"b\n"], [b"[rank=3] ab\n"]),
        ([b"10%\r20%\r", b"x"], [b"[rank=3] 10%\r", b"[rank=3] 20%\r", b"[rank=3] x\n"]),
        ([b"a\r", b"\nb"], [b"[rank=3] a\n", b"[rank=3] b\n"]),
        ([b"x" * 20000, b"y" * 20000], [b"[rank=3] " + _SHORTENED + b"\n"]),
        ([b"\n"], [b"[rank=3] \n"]),
        ([], []),
    ],
)
def test_output_is_split_into_lines_with_the_rank_prefix(chunks, lines):
    prefixer = Prefixer(3)
    prefixed = [line for chunk in chunks for line in prefixer.feed(chunk)]
    assert prefixed + prefixer.close() == lines


def test_find_rank_returns_the_number_or_the_first_variable_that_is_set():
    assert find_rank("4", {}) == 4
    assert find_rank("A,B", {"B": "2"}) == 2
    assert find_rank("A", {}) == 0


def test_an_exit_record_holds_code_and_last_lines(tmp_path):
    code = "import sys; [print(n) for n in range(30)]; print('bad', file=sys.stderr); sys.exit(5)"
    done = run(["determined_launch.wrap_rank", "2", "--", sys.executable, "-c", code], tmp_path)
    assert done.returncode == 5
    assert done.stdout.splitlines()[0] == "[rank=2] 0"
    assert done.stderr == "[rank=2] bad\n"
    record = json.loads((tmp_path / "exits" / "rank-2.json").read_text())
    assert (record["rank"], record["code"], record["signal"]) == (2, 5, None)
    assert len(record["last_lines"]) == 20
    assert record["last_stderr"] == "[rank=2] bad"
    assert (tmp_path / "exits" / "rank-2.json").stat().st_mtime == pytest.approx(record["time"], abs=0.01)


def test_the_text_of_sys_exit_is_recorded_as_the_last_line_of_standard_error(tmp_path):
    code = "import sys; print('loss 1', file=sys.stderr); print('x\\n' * 50); sys.exit('no key in data.yaml\\n ')"
    run(["determined_launch.wrap_rank", "0", "--", sys.executable, "-c", code], tmp_path)
    record = RankExit.model_validate(json.loads((tmp_path / "exits" / "rank-0.json").read_text()))
    assert record.last_stderr == "[rank=0] no key in data.yaml"


def test_a_killed_worker_exits_with_137_and_records_the_signal(tmp_path):
    code = "import os; os.kill(os.getpid(), 9)"
    done = run(["determined.launch.wrap_rank", "0", "--", sys.executable, "-c", code], tmp_path)
    assert done.returncode == 137
    assert json.loads((tmp_path / "exits" / "rank-0.json").read_text())["signal"] == 9


def test_the_agent_accepts_the_exit_record(tmp_path):
    """The agent's parser silently ignores a record of another shape."""
    run(
        ["determined_launch.wrap_rank", "0", "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], tmp_path
    )
    record = RankExit.model_validate(json.loads((tmp_path / "exits" / "rank-0.json").read_text()))
    assert (record.code, record.signal, record.cause, record.time > 1e9) == (137, 9, "", True)


def test_the_exit_record_of_an_earlier_run_is_removed_before_the_next_one(tmp_path):
    path = tmp_path / "exits" / "rank-0.json"
    path.parent.mkdir()
    path.write_text("{}")
    code = f"import pathlib; print(pathlib.Path({str(path)!r}).exists())"
    done = run(["determined_launch.wrap_rank", "0", "--", sys.executable, "-c", code], tmp_path)
    assert done.stdout == "[rank=0] False\n"
    assert json.loads(path.read_text())["code"] == 0


def test_a_program_that_does_not_exist_exits_with_127(tmp_path):
    done = run(["determined_launch.wrap_rank", "0", "--", "no-such-program"], tmp_path)
    assert done.returncode == 127
    assert "cannot start 'no-such-program': no such program" in done.stdout


def test_signals_are_forwarded_to_the_worker(tmp_path):
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print('up', flush=True); signal.pause()"
    child = subprocess.Popen(
        [sys.executable, "-m", "determined_launch.wrap_rank", "0", "--", sys.executable, "-c", code],
        env={**os.environ, "DET_RUN_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    assert child.stdout.readline() == b"[rank=0] up\n"
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=180)
    assert child.returncode == 7


def test_a_signal_after_the_end_of_a_worker_changes_neither_its_record_nor_its_code(tmp_path):
    record = tmp_path / "exits" / "rank-0.json"
    # Its child holds the output open, so that the wrapper waits for more of it.
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.exit(3)"
    wrapper = subprocess.Popen(
        [sys.executable, "-m", "determined_launch.wrap_rank", "0", "--", sys.executable, "-c", code],
        env={**os.environ, "DET_RUN_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
    )
    held = int(wrapper.stdout.readline().split()[1])
    try:
        wait_until(record.exists)
        wrapper.send_signal(signal.SIGTERM)
        assert wrapper.wait(60) == 3
        assert json.loads(record.read_text())["code"] == 3
    finally:
        os.kill(held, signal.SIGKILL)
        wrapper.stdout.close()


def test_the_autohorovod_layer_runs_a_plain_process_for_one_slot(tmp_path):
    (tmp_path / "show.py").write_text("import sys; print(sys.argv[1:])")
    done = run(["determined.launch.autohorovod", "show.py", "a b", "--", "é"], tmp_path)
    assert done.stdout == "['a b', '--', 'é']\n"


def test_the_tensorflow_layer_is_refused_with_the_alternative(tmp_path):
    done = run(["determined.launch.tensorflow", "--port", "1", "--", "train.py"], tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "determined.launch.tensorflow is not supported; start the program without a layer" in done.stderr
