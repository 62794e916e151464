"""``det task exec`` and ``det trial shell`` on real terminals: signals, sizes, codes, several at once, cut connections."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.live_cluster import python
from tests.support.live_trials import Experiment
from tests.support.terminal_program import TerminalProgram
from tests.support.waiting import wait_until

from determined_launch import process_table

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]
OnTerminal = Callable[[list[str]], TerminalProgram]


def test_a_shell_in_a_trial_is_a_real_terminal_with_the_trials_environment(
    waiting: Experiment, on_terminal: OnTerminal
):
    shell = on_terminal(["trial", "shell", str(waiting.trial_id)])
    shell.type("stty size; echo $DET_TRIAL_ID-$TERM; ls\n")
    shell.prints("40 100")
    shell.prints(f"{waiting.trial_id}-xterm-256color")
    shell.prints("run.py")
    shell.resize(50, 120)
    shell.type("while [ \"$(stty size)\" != '50 120' ]; do sleep 0.1; done; echo resi'zed'\n")
    shell.prints("resized")
    shell.type("(echo star'ted'; exec sleep 1000)\n")
    shell.prints("started")
    shell.type("\x03")
    shell.type("echo code=$?\n")
    shell.prints("code=130")
    shell.type("exit 7\n")
    assert shell.ended() == 7


def test_a_program_has_input_two_outputs_and_an_exit_code(stream_cluster: StreamCluster, waiting: Experiment):
    task, trial = waiting.task_id, str(waiting.trial_id)
    done = stream_cluster.det(
        "task", "exec", "-i", task[:12], "--", "sh", "-c", "wc -c; echo bad >&2; exit 5", input=bytes(300_000)
    )
    assert (done.stdout.strip(), done.stderr, done.returncode) == (b"300000", b"bad\n", 5)
    done = stream_cluster.det("trial", "exec", trial, "--", "sh", "-c", "kill -9 $$")
    assert (done.stdout, done.returncode) == (b"", 128 + signal.SIGKILL)
    done = stream_cluster.det("trial", "exec", trial, "--", "no-such-program")
    assert (done.stderr, done.returncode) == (
        b"det: cannot run 'no-such-program' in the task: No such file or directory\n",
        1,
    )
    done = stream_cluster.det("trial", "exec", "-t", trial)
    assert b"no program: put it behind --" in done.stderr


def test_several_programs_at_once_keep_their_outputs_apart(stream_cluster: StreamCluster, waiting: Experiment):
    argv = python("determined_cli", "trial", "exec", str(waiting.trial_id), "--", "sh", "-c")
    started = [
        subprocess.Popen(
            [*argv, f"for i in 1 2 3; do echo {number}; done"],
            env=stream_cluster.client_environment,
            stdout=subprocess.PIPE,
        )
        for number in range(4)
    ]
    outputs = [process.communicate(timeout=120)[0].split() for process in started]
    assert outputs == [[b"%d" % number] * 3 for number in range(4)]


def test_ctrl_c_without_a_terminal_ends_the_program_in_the_task(stream_cluster: StreamCluster, waiting: Experiment):
    argv = python(
        "determined_cli", "trial", "exec", str(waiting.trial_id), "--", "sh", "-c", "echo up; exec sleep 3333"
    )
    process = subprocess.Popen(argv, env=stream_cluster.client_environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 128 + signal.SIGINT
    waiting.running()


def test_a_rank_on_another_machine_is_entered(stream_cluster: StreamCluster, tmp_path: Path):
    experiment = stream_cluster.begin(tmp_path, slots=2)
    agents = [
        stream_cluster.det(
            "trial", "exec", str(experiment.trial_id), "--rank", rank, "--", "sh", "-c", "echo $DET_AGENT_ID"
        ).stdout
        for rank in ("0", "1")
    ]
    experiment.do("kill")
    experiment.nothing_left()
    assert sorted(agents) == [b"agent-1\n", b"agent-2\n"]


def test_a_session_continues_after_the_master_was_killed(
    stream_cluster: StreamCluster, waiting: Experiment, on_terminal: OnTerminal
):
    shell = on_terminal(["trial", "exec", "-it", str(waiting.trial_id), "--", "sh"])
    shell.type("kept=42; echo begin'ning'\n")
    shell.prints("beginning")
    stream_cluster.kill_master()
    shell.prints("the connection was lost; connecting again")
    stream_cluster.start_master()
    shell.type("echo still-$kept\n")
    shell.prints("still-42")
    shell.type("exit 3\n")
    assert shell.ended() == 3


def test_the_end_of_a_task_ends_its_sessions_and_says_so(
    stream_cluster: StreamCluster, tmp_path: Path, on_terminal: OnTerminal
):
    experiment = stream_cluster.begin(tmp_path)
    shell = on_terminal(["trial", "exec", "-it", str(experiment.trial_id), "--", "sh"])
    shell.type("echo begin'ning'\n")
    shell.prints("beginning")
    experiment.do("kill")
    shell.prints("det: the task has ended")
    assert shell.ended() == 1
    experiment.nothing_left()
    done = stream_cluster.det("trial", "exec", str(experiment.trial_id), "--", "true")
    assert b"does not run: it is paused, waits to be retried, or has ended" in done.stderr
    assert done.returncode == 7


def test_a_killed_agent_leaves_no_program_behind_and_its_sessions_say_so(
    stream_cluster: StreamCluster, waiting: Experiment, on_terminal: OnTerminal
):
    shell = on_terminal(["trial", "exec", "-it", str(waiting.trial_id), "--", "sh"])
    shell.type("echo on'-'$DET_AGENT_ID.\n")
    shell.prints("on-agent-")
    name = shell.prints(".")
    below = [pid for pid in waiting.processes if process_table.command_line(pid) == [b"sh", b""]]
    assert below
    agent = stream_cluster.agents[f"agent-{name}"]
    agent.end(signal.SIGKILL)
    shell.prints("the connection was lost; connecting again")
    wait_until(lambda: not set(below) & set(waiting.processes), what="the program is gone")
    stream_cluster.restart_agent(f"agent-{name}")
    shell.prints("det: the session has ended")
    assert shell.ended() == 1
    waiting.running()
