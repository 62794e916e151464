"""Streams under strain: a reader that stops, a terminal that is resized all the time, and keys that are guessed."""

import os
import subprocess
import threading
from collections.abc import Callable

import httpx
import pytest
from tests.e2e.streams.conftest import StreamCluster
from tests.support.latency import health_of, measured
from tests.support.live_cluster import python
from tests.support.live_trials import Experiment
from tests.support.terminal_program import TerminalProgram
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("streams")]
MAX_GROWTH_MIB = 40


def resident_mib(pid: int) -> float:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def written_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("wchar:"))


def test_a_reader_that_stops_stops_the_program_and_nothing_grows(stream_cluster: StreamCluster, waiting: Experiment):
    assert stream_cluster.master is not None
    servers = [stream_cluster.master.pid, *(agent.pid for agent in stream_cluster.agents.values())]
    before = {pid: resident_mib(pid) for pid in servers}
    argv = python("determined_cli", "trial", "exec", str(waiting.trial_id), "--", "head", "-c", "300M", "/dev/zero")
    reader = subprocess.Popen(argv, env=stream_cluster.client_environment, stdout=subprocess.PIPE)
    assert reader.stdout is not None
    with reader.stdout:
        reader.stdout.read(1)
        (program,) = wait_until(
            lambda: [pid for pid in waiting.processes if "300M" in os.fsdecode(cmdline(pid))], what="the program"
        )
        sizes: list[int] = []

        def stands() -> bool:
            sizes.append(written_bytes(program))
            return len(sizes) > 20 and len(set(sizes[-20:])) == 1

        wait_until(stands, what="the program waits")
        assert sizes[-1] < 30 << 20, "it wrote what nobody has read"
        assert {pid for pid in servers if resident_mib(pid) - before[pid] > MAX_GROWTH_MIB} == set()
        rest = 1
        while data := reader.stdout.read(1 << 20):
            rest += len(data)
    assert (rest, reader.wait(60)) == (300 << 20, 0)


def cmdline(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def test_a_terminal_that_is_resized_all_the_time_ends_with_the_last_size(
    waiting: Experiment, on_terminal: Callable[..., TerminalProgram]
):
    shell = on_terminal(["trial", "exec", "-it", str(waiting.trial_id), "--", "sh"])
    shell.type("echo begin'ning'\n")
    shell.prints("beginning")
    for number in range(1000):
        shell.resize(20 + number % 50, 60 + number % 70)
    shell.resize(31, 77)
    shell.type("while [ \"$(stty size)\" != '31 77' ]; do sleep 0.1; done; echo la'st'\n")
    shell.prints("last")
    shell.type("exit\n")
    assert shell.ended() == 0


def test_a_thousand_wrong_keys_are_refused_and_hold_nobody_up(stream_cluster: StreamCluster):
    path = f"{stream_cluster.url}/detent/streams/{'0' * 32}"
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    statuses: list[int] = []

    def guess(numbers: range) -> None:
        with httpx.Client(trust_env=False) as client:
            for number in numbers:
                key = {"Sec-WebSocket-Protocol": f"detent.stream.v1, guess-{number}"}
                statuses.append(client.get(path, headers=headers | key, timeout=60).status_code)

    with measured(health_of(stream_cluster.port)) as health:
        threads = [threading.Thread(target=guess, args=(range(first, first + 250),)) for first in range(0, 1000, 250)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [403] * 1000
    assert health.failures == []
    assert max(health.seconds) < 2
