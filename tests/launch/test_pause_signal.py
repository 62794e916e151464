"""Which processes of a script get the signal of a pause, and what a rank's end after it counts as."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support.waiting import wait_until

from determined_launch import pause_signal, process_table

USR1 = int(signal.SIGUSR1)
HANDLING = 'bash -c "trap exit USR1; touch {name}; while :; do sleep 0.05; done" &'


@pytest.fixture
def start(tmp_path):
    """Returns a function that starts bash with a script and waits for the files that it makes."""
    started = []

    def run(script, *files):
        process = subprocess.Popen(["bash", "-c", script], cwd=tmp_path, start_new_session=True)
        started.append(process)
        wait_until(lambda: all((tmp_path / name).exists() for name in files))
        return process.pid

    yield run
    for process in started:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_the_outermost_processes_with_a_handler_get_the_signal_and_no_others(start):
    root = start(f"{HANDLING.format(name='one')} {HANDLING.format(name='two')} wait; true", "one", "two")
    found = pause_signal.receivers(root, USR1, ())
    assert root not in found
    assert sorted(found) == sorted(process_table.children(root))


PYTHON = (
    f"{sys.executable} -c 'import signal, pathlib, time; signal.signal(signal.SIGUSR1, print);"
    ' pathlib.Path("one").touch(); time.sleep(600)\''
)


@pytest.mark.parametrize("script", ["trap 'rm -f tmp' EXIT; {}; true", "trap : USR1; {} & wait; true"])
def test_a_shell_that_handles_the_signal_gets_it_only_if_nothing_below_does(start, script):
    root = start(script.format(PYTHON), "one")
    assert process_table.catches(root, USR1)
    assert pause_signal.receivers(root, USR1, ()) == process_table.children(root)


def test_a_waiting_shell_does_not_keep_ctrl_c_from_the_script(start):
    root = start(f"{PYTHON}; true", "one")
    assert pause_signal.receivers(root, int(signal.SIGINT), ()) == process_table.children(root)


def test_a_shell_with_a_trap_around_programs_without_handlers_gets_the_signal(start):
    root = start("trap : USR1; sleep 600 & touch one; wait; true", "one")
    assert pause_signal.receivers(root, USR1, ()) == [root]


def test_all_processes_of_a_script_without_a_handler_get_the_signal(start):
    root = start("sleep 600 & touch one; wait; true", "one")
    assert pause_signal.receivers(root, USR1, ()) == [root, *process_table.descendants(root)]


def test_a_script_that_saves_by_itself_gets_no_signal_without_a_handler(start):
    root = start("sleep 600 & touch one; wait; true", "one")
    assert pause_signal.receivers(root, USR1, process_table.descendants(root)) == []
    assert pause_signal.receivers(root, USR1, [os.getpid()]) != []


def test_the_mark_of_a_process_with_the_core_api_is_removed_with_its_context(tmp_path):
    environ = {"DET_RUN_DIR": str(tmp_path), "DET_PAUSE_SIGNAL": "SIGUSR1"}
    with pause_signal.saves_without_signal(environ):
        assert pause_signal.savers(environ) == {os.getpid()}
    assert pause_signal.savers(environ) == set()


@pytest.mark.parametrize(("is_asked", "code"), [(True, 0), (False, 5)])
def test_the_end_of_a_rank_after_the_signal_is_no_failure(tmp_path, is_asked, code):
    environ = {**os.environ, "DET_RUN_DIR": str(tmp_path), "DET_PAUSE_SIGNAL": "SIGUSR1"}
    if is_asked:
        pause_signal.mark_as_sent(environ)
    argv = [sys.executable, "-m", "determined_launch.wrap_rank", "1", "--", "sh", "-c", "exit 5"]
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == code
    record = json.loads((tmp_path / "exits" / "rank-1.json").read_text())
    assert (record["code"], record["signal"]) == (code, None)
    assert ("[rank=1] ended with code 5 after the pause signal" in done.stdout) is is_asked


@pytest.mark.parametrize("name", pause_signal.NAMES)
def test_each_name_is_a_signal_of_this_machine_that_a_process_can_handle(name):
    number = pause_signal.number_of(name)
    assert signal.Signals(number).name == name
    assert number not in (signal.SIGKILL, signal.SIGSTOP)
