"""Roles in several containers, which agree on ports and on the end."""

import json
import os
import signal

import pytest
from tests.support import role_layers
from tests.support.role_layers import role, variables_of
from tests.support.waiting import wait_until

from determined_launch import process_table

pytestmark = pytest.mark.budget(20, "starts several interpreters")
WAITS = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(600)"


def test_processes_are_placed_container_by_container_and_know_each_others_ports(tmp_path):
    role_layers.write(tmp_path, [role("actor", count=2, slots=1), role("master"), role("critic", slots=1)], {})
    layers = role_layers.start_containers(tmp_path, (1, 2))
    assert [code for code, _ in role_layers.finish(layers)] == [0, 0]
    environments = {name: variables_of(tmp_path, name) for name in ("actor0", "master0", "actor1", "critic0")}
    names = ("PROCESS_RANK", "PROCESS_LOCAL_RANK", "PROCESS_LOCAL_SIZE", "PROCESS_CROSS_RANK", "PROCESS_CROSS_SIZE")
    numbers = [[int(each[f"DET_{name}"]) for name in names] for each in environments.values()]
    assert numbers == [[0, 0, 2, 0, 2], [1, 1, 2, 0, 2], [2, 0, 2, 1, 2], [3, 1, 2, 1, 2]]
    assert len({each["DET_ROLES"] for each in environments.values()}) == 1
    roles = json.loads(environments["master0"]["DET_ROLES"])
    assert len({one["port"] for each in roles for one in each["processes"]}) == 4
    stores = {(each["MASTER_PORT"], each["WORLD_SIZE"]) for each in environments.values()}
    assert len(stores) == 3
    assert environments["actor0"]["MASTER_PORT"] == environments["actor1"]["MASTER_PORT"]
    assert [environments["actor1"][name] for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")] == ["1", "0", "1"]


def test_the_core_context_of_all_roles_spans_the_containers(tmp_path):
    exchanges = """
import os
from determined import core
with core.init(distributed=core.DistributedContext.from_roles()) as context:
    names = context.distributed.allgather(os.environ["DET_ROLE"])
    beside = context.distributed.allgather_local(context.distributed.rank)
print(names, beside)
"""
    role_layers.write(tmp_path, [role("a", "e.py", slots=1), role("b", "e.py", slots=1, count=2)], {"e.py": exchanges})
    ends = role_layers.finish(role_layers.start_containers(tmp_path, (1, 2)))
    assert [code for code, _ in ends] == [0, 0], ends
    assert sorted(line for _, output in ends for line in output.splitlines()) == [
        "[rank=0] ['a', 'b', 'b'] [0]",
        "[rank=1] ['a', 'b', 'b'] [1, 2]",
        "[rank=2] ['a', 'b', 'b'] [1, 2]",
    ]


@pytest.mark.parametrize("fails_at", ["0", "1"])
def test_a_failure_in_one_container_ends_the_others_with_its_code(tmp_path, fails_at):
    fails = f"import os, sys, time\nif os.environ['DET_ROLE_INDEX'] == '{fails_at}': sys.exit(7)\ntime.sleep(600)"
    role_layers.write(tmp_path, [role("actor", "fails.py", count=2, slots=1)], {"fails.py": fails})
    ends = role_layers.finish(role_layers.start_containers(tmp_path, (1, 1)))
    assert [code for code, _ in ends] == [7, 7]
    assert f"role actor[{fails_at}] (rank {fails_at}) failed: it exited with code 7" in ends[int(fails_at)][1]


def test_a_daemon_is_ended_when_the_processes_of_all_containers_have_ended(tmp_path):
    serves = """
import pathlib, time
pathlib.Path("up").touch()
try: time.sleep(600)
finally: assert pathlib.Path("done").exists()
"""
    trains = "import pathlib, time\nwhile not pathlib.Path('up').exists(): time.sleep(0.01)\ntime.sleep(0.3)\npathlib.Path('done').touch()"
    roles = [role("server", "serves.py", slots=1, daemon=True), role("trainer", "trains.py", slots=1)]
    role_layers.write(tmp_path, roles, {"serves.py": serves, "trains.py": trains})
    ends = role_layers.finish(role_layers.start_containers(tmp_path, (1, 1)))
    assert ends == [(0, ""), (0, "")]


def test_a_container_that_ends_before_a_slow_daemon_of_the_chief_is_not_lost(tmp_path):
    serves = """
import pathlib, signal, time
def end(*_):
    time.sleep(1.5)
    raise SystemExit
signal.signal(signal.SIGTERM, end)
pathlib.Path("up").touch()
time.sleep(600)
"""
    trains = "import pathlib, time\nwhile not pathlib.Path('up').exists(): time.sleep(0.01)"
    roles = [role("server", "serves.py", slots=1, daemon=True), role("trainer", "trains.py", slots=1)]
    role_layers.write(tmp_path, roles, {"serves.py": serves, "trains.py": trains})
    ends = role_layers.finish(role_layers.start_containers(tmp_path, (1, 1)))
    assert ends == [(0, ""), (0, "")]


def test_a_container_that_is_lost_ends_the_others(tmp_path):
    role_layers.write(tmp_path, [role("actor", "waits.py", count=2, slots=1)], {"waits.py": WAITS})
    chief, other = role_layers.start_containers(tmp_path, (1, 1))
    wait_until(lambda: (tmp_path / "pid").exists(), what="a process runs")
    for pid in [other.pid, *process_table.descendants(other.pid)]:
        os.kill(pid, signal.SIGKILL)
    (code, output), _ = role_layers.finish([chief, other])
    assert code == 1
    assert "lost the connection to container 1, 127.0.0.1" in output


def test_a_container_without_processes_waits_for_the_end_of_the_others(tmp_path):
    role_layers.write(tmp_path, [role("master"), role("actor", slots=1)], {})
    assert role_layers.finish(role_layers.start_containers(tmp_path, (1, 2))) == [(0, ""), (0, "")]
    assert variables_of(tmp_path, "actor0")["DET_PROCESS_CROSS_SIZE"] == "1"


def test_a_hang_of_all_roles_is_found_in_all_containers_and_ends_them(tmp_path):
    role_layers.write(tmp_path, [role("actor", "waits.py", count=2, slots=1)], {"waits.py": WAITS})
    config = json.dumps({"health": {"hang_timeout": "1s"}})
    ends = role_layers.finish(role_layers.start_containers(tmp_path, (1, 1), DET_EXPERIMENT_CONFIG=config))
    assert [code for code, _ in ends] == [1, 1], ends
    assert "no rank has completed a step for" in ends[0][1]
    assert "[rank=1] process" in ends[1][1]
