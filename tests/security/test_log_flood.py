"""A task that floods its log: its lines are stored in order or named as missing, and other tasks are served."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.latency import health_of, measured
from tests.support.live_cluster import LiveCluster, live_cluster
from tests.support.live_models import SCRIPT
from tests.support.live_trials import Experiment, create
from tests.support.process_memory import forget_peak, peak_mib
from tests.support.waiting import wait_until

pytestmark = pytest.mark.budget(15, "sends very many lines")

WIDTH = 200
MAX_GROWTH_MIB = 150
FLOOD = f"""
import os
from gates import gate

gate("flood")
rest = b" " + b"x" * {WIDTH} + b"\\n"
lines = int(os.environ["FLOOD_LINES"])
for first in range(0, lines, 1000):
    text = b"".join(b"%d" % number + rest for number in range(first, min(lines, first + 1000)))
    while text:
        text = text[os.write(1, text):]
"""
CHATTER = """
from gates import gate

print("the other one begins", flush=True)
gate("chatter")
print("the other one ends", flush=True)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LiveCluster]:
    with live_cluster(tmp_path / "cluster", slots=2) as created:
        yield created


def scripted(cluster: LiveCluster, folder: Path, name: str, text: str, lines: int = 0) -> Experiment:
    command = f"FLOOD_LINES={lines} python3 {name}.py"
    return create(cluster, SCRIPT, folder, files={f"{name}.py": text}, held=(name,), entrypoint=command)


def stored(cluster: LiveCluster, task_id: str) -> tuple[list[str], list[str]]:
    """Returns the first words of the task's lines in order, and the agent's lines about missing output."""
    query = "SELECT substr(log, 1, 200), source FROM task_logs WHERE task_id = ? ORDER BY id"
    with closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        rows = connection.execute(query, (task_id,)).fetchall()
    words = [text.partition(" ")[0] for text, source in rows if source == "task"]
    return words, [text for text, source in rows if source == "agent" and "missing" in text]


@pytest.mark.parametrize("mebibytes", [5, pytest.param(100, marks=pytest.mark.long)], ids=["sample", "all"])
def test_a_flood_of_log_lines_is_stored_in_order_while_other_tasks_are_served(
    cluster: LiveCluster, tmp_path: Path, mebibytes: int
):
    assert cluster.master is not None
    lines = (mebibytes << 20) // (WIDTH + 8)
    flood = scripted(cluster, tmp_path / "flood", "flood", FLOOD, lines)
    chatter = scripted(cluster, tmp_path / "chatter", "chatter", CHATTER)
    flood.at_gate("flood")
    chatter.at_gate("chatter")
    task_id, page = flood.task_id, f"/detent/trials/{flood.trial_id}/logs"
    before = forget_peak(cluster.master.pid)
    with measured(health_of(cluster.port)) as health:
        flood.open_gate("flood")
        wait_until(lambda: stored_lines(cluster, task_id) > lines // 20, what="the flood")
        chatter.open_gate("chatter")
        wait_until(lambda: "the other one ends" in chatter.log, within=60, what="the line of the other trial")
        arrived = stored_lines(cluster, task_id)
        answer = cluster.session.get(page, {"limit": 100})
        assert len(answer["lines"]) == 100
        flood.ended(within=240)
        chatter.ended()
        wait_until(lambda: has_all_output(cluster), within=120, what="all output")
    grown = peak_mib(cluster.master.pid) - before
    numbers, missing = stored(cluster, task_id)
    print(
        f"{mebibytes} MiB in {lines} lines: {len(numbers)} are stored, {len(missing)} gaps are named; the other trial's "
        f"line came after {arrived} of them; the master's memory grew by {grown:.0f} MiB; "
        f"/health {len(health.seconds)} times, {health.median * 1000:.0f} ms in the median"
    )
    assert health.failures == []
    assert grown < MAX_GROWTH_MIB
    line_numbers = [int(number) for number in numbers if number.isdigit()]
    assert line_numbers == sorted(set(line_numbers))
    assert missing or line_numbers == list(range(lines))
    assert line_numbers[0] == 0
    assert line_numbers[-1] == lines - 1


def stored_lines(cluster: LiveCluster, task_id: str) -> int:
    query = "SELECT count(*) FROM task_logs WHERE task_id = ?"
    with closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        return int(connection.execute(query, (task_id,)).fetchone()[0])


def has_all_output(cluster: LiveCluster) -> bool:
    with closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        return connection.execute("SELECT count(*) FROM containers WHERE NOT output_done").fetchone() == (0,)
