"""Forwarding of a launcher's signals to its child, before and after the child starts."""

import os
import signal
import subprocess
import sys

from tests.support.waiting import wait_until

from determined_launch import process, process_table


def test_a_signal_before_the_start_of_the_child_is_sent_when_the_child_is_known():
    received: list[int] = []
    with process.SignalForwarder() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        assert received == []
        signals.send_to(received.append)
        assert received == [signal.SIGTERM]
        os.kill(os.getpid(), signal.SIGUSR1)
    assert received == [signal.SIGTERM, signal.SIGUSR1]


def test_the_signal_forwarder_restores_the_previous_handlers():
    before = signal.getsignal(signal.SIGTERM)
    with process.SignalForwarder():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_ignored_signal_stays_ignored_in_the_child():
    show = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    code = f"import sys; from determined_launch import process; sys.exit(process.run([sys.executable, '-c', {show!r}]))"
    done = subprocess.run(["nohup", sys.executable, "-c", code], capture_output=True, text=True, timeout=180)
    assert (done.returncode, done.stdout.strip()) == (0, "True")


def test_a_variable_that_is_not_utf_8_is_read_so_that_it_can_be_passed_on():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={b"NAME": b"caf\xe9", **os.environb}) as child:
        # Linux shows it a moment after the program has begun.
        found = wait_until(lambda: process_table.environment(child.pid).get("NAME"))
        assert os.fsencode(found) == b"caf\xe9"
