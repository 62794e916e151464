"""Real processes of roles on one machine: their variables, their end, and what is on the screen."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.support import role_layers
from tests.support.role_layers import role, variables_of
from tests.support.waiting import wait_until

from determined_launch import process_table
from determined_launch.role_plan import ProcessPlan, RolePlan

pytestmark = pytest.mark.budget(20, "starts several interpreters")
WAITS = "import pathlib, time; pathlib.Path('up').touch(); time.sleep(600)"
SERVES = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path("ended").touch()
    sys.exit(3)
signal.signal(signal.SIGTERM, end)
pathlib.Path("up").touch()
time.sleep(600)
"""
USES_SERVER = "import pathlib, time\nwhile not pathlib.Path('up').exists(): time.sleep(0.01)\nassert not pathlib.Path('ended').exists()"


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs the layer with these roles and scripts."""

    def run_roles(roles, scripts=(), *, file=None, **environ):
        role_layers.write(tmp_path, roles, dict(scripts), **(file or {}))
        return role_layers.run(tmp_path, **environ)

    return run_roles


def test_each_process_gets_the_variables_of_its_role_and_of_the_trial(tmp_path, run):
    roles = [role("master"), role("trainer", count=2, slots=1, environment={"A": "b"})]
    assert run(roles, DET_SLOT_IDS="[0, 1]").returncode == 0
    master, trainer = variables_of(tmp_path, "master0"), variables_of(tmp_path, "trainer1")
    assert (master.get("A"), trainer["A"]) == (None, "b")
    group = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")
    assert [master[name] for name in group] == ["0", "1", "0", "1", "127.0.0.1"]
    assert [trainer[name] for name in group] == ["1", "2", "1", "2", "127.0.0.1"]
    assert trainer["MASTER_PORT"] == variables_of(tmp_path, "trainer0")["MASTER_PORT"]
    numbers = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
    assert [trainer[f"DET_PROCESS_{name}"] for name in numbers] == ["2", "3", "2", "3", "0", "1"]


def test_each_process_knows_all_roles_with_a_port_of_its_own_for_each_process(tmp_path, run):
    assert run([role("master"), role("trainer", count=2)]).returncode == 0
    master, trainer = variables_of(tmp_path, "master0"), variables_of(tmp_path, "trainer0")
    roles = json.loads(trainer["DET_ROLES"])
    assert roles == json.loads(master["DET_ROLES"])
    assert [(each["name"], [one["rank"] for one in each["processes"]]) for each in roles] == [
        ("master", [0]),
        ("trainer", [1, 2]),
    ]
    ports = [one["port"] for each in roles for one in each["processes"]]
    assert len({*ports, int(master["MASTER_PORT"]), int(trainer["MASTER_PORT"])}) == 5


def test_each_process_sees_the_gpus_of_its_slots_and_shares_them_in_turn(tmp_path, run):
    roles = [role("master"), role("actor", slots=2), role("reward", count=2, slots=1)]
    done = run(roles, CUDA_VISIBLE_DEVICES="GPU-a,GPU-b")
    assert done.returncode == 0, done.stdout
    names = ("master0", "actor0", "reward0", "reward1")
    seen = [variables_of(tmp_path, name)["CUDA_VISIBLE_DEVICES"] for name in names]
    assert seen == ["", "GPU-a,GPU-b", "GPU-a", "GPU-b"]
    assert done.stdout.splitlines() == [
        "determined.launch.roles: the roles ask for 4 slots and the trial has 2 slots: up to 2 processes share a slot"
    ]


def test_the_first_failure_is_named_with_its_role_and_place_and_ends_the_others(tmp_path, run):
    fails = "def check():\n    raise ValueError('bad shape')\n\ncheck()\n"
    done = run(
        [role("waiting", "waits.py", count=2), role("reward", "fails.py")], {"waits.py": WAITS, "fails.py": fails}
    )
    assert done.returncode == 1
    errors = [line for line in done.stdout.splitlines() if not line.startswith("[rank=")]
    assert errors == [
        "determined.launch.roles: role reward[0] (rank 2) failed: ValueError: bad shape (fails.py:2)",
    ]


@pytest.mark.parametrize(
    ("code", "returned", "words"),
    [
        ("import os; os.kill(os.getpid(), 9)", 137, "it was killed by signal 9 (SIGKILL)"),
        ("import sys; sys.exit('no data')", 1, "it exited with code 1; its last line on standard error: no data"),
        ("import sys; sys.exit(7)", 7, "it exited with code 7"),
        (
            "import sys, traceback\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()\nsys.exit(7)",
            *(7, "it exited with code 7; its last line on standard error: ZeroDivisionError: division by zero"),
        ),
    ],
)
def test_a_process_that_ends_without_a_traceback_is_named_with_its_code(run, code, returned, words):
    done = run([role("waiting", "waits.py"), role("data", "ends.py")], {"waits.py": WAITS, "ends.py": code})
    assert done.returncode == returned
    assert f"role data[0] (rank 1) failed: {words}\n" in done.stdout


def test_a_program_that_does_not_exist_is_named_with_its_role(run):
    done = run([{"name": "data", "command": ["no-such-program"]}])
    assert done.returncode == 127
    assert "role data[0] (rank 0) failed: it exited with code 127; its last line" in done.stdout


def test_the_record_of_a_failure_names_the_role_beside_the_machine(tmp_path, run):
    (tmp_path / "run").mkdir()
    run([role("data", "ends.py")], {"ends.py": "1 / 0"}, DET_RUN_DIR=str(tmp_path / "run"))
    record = json.loads((tmp_path / "run" / "exits" / "rank-0.json").read_text())
    assert record["host"] == f"{os.uname().nodename}, data[0]"
    assert (record["error"], record["place"]) == ("ZeroDivisionError: division by zero", "ends.py:1")


def test_a_daemon_is_ended_after_the_others_and_its_end_is_no_failure(tmp_path, run):
    roles = [role("server", "serves.py", daemon=True), role("trainer", "uses.py")]
    done = run(roles, {"serves.py": SERVES, "uses.py": USES_SERVER})
    assert (done.returncode, done.stdout) == (0, "")
    assert (tmp_path / "ended").exists()


def test_a_daemon_that_fails_ends_the_trial(run):
    roles = [role("server", "fails.py", daemon=True), role("trainer", "waits.py")]
    done = run(roles, {"fails.py": "raise OSError('no port')", "waits.py": WAITS})
    assert done.returncode == 1
    assert "role server[0] (rank 0) failed: OSError: no port (fails.py:1)" in done.stdout


def test_a_signal_reaches_each_process_once_and_the_daemon_only_after_them(tmp_path):
    leaves = """
import os, pathlib, signal, sys, time
count = []
signal.signal(signal.SIGINT, lambda *_: count.append(1))
pathlib.Path(os.environ["DET_ROLE_INDEX"]).touch()
while not count: time.sleep(0.01)
time.sleep(0.3)
assert not pathlib.Path("ended").exists()
print("signals", len(count))
"""
    roles = [role("server", "serves.py", daemon=True), role("trainer", "leaves.py", count=2)]
    role_layers.write(tmp_path, roles, {"serves.py": SERVES, "leaves.py": leaves})
    layer = role_layers.start(tmp_path)
    wait_until(lambda: all((tmp_path / name).exists() for name in ("up", "0", "1")), what="all processes run")
    layer.send_signal(signal.SIGINT)
    ((code, output),) = role_layers.finish([layer])
    assert code == 0, output
    assert sorted(output.splitlines()) == ["[rank=1] signals 1", "[rank=2] signals 1"]
    assert (tmp_path / "ended").exists()


def test_a_daemon_that_ignores_the_end_is_killed_and_that_is_no_failure(tmp_path):
    """The limit of ten seconds is shortened, which the layer's own line cannot do."""
    ignores = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
    )
    planned = ProcessPlan("server[0]", 0, (sys.executable, "-c", ignores), is_daemon=True)
    RolePlan.clear(tmp_path)
    RolePlan((planned, ProcessPlan("trainer[0]", 1, ("sleep", "1")))).write(tmp_path)
    code = "from determined_launch import role_processes as r; r.DAEMON_SECONDS = 0.2; print(r.main(['.']))"
    environ = role_layers.environment(DET_RUN_DIR=str(tmp_path / "run"))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == ["[rank=0] up", "0"]
    assert done.stderr == "determined.launch.roles: server[0] still ran 0.2 s after SIGTERM and is killed\n"
    assert json.loads((tmp_path / "run" / "exits" / "rank-0.json").read_text())["code"] == 0


def test_no_process_is_left_if_the_layer_is_killed(tmp_path):
    role_layers.write(tmp_path, [role("waiting", "waits.py", count=2)], {"waits.py": WAITS})
    with role_layers.start(tmp_path) as layer:
        wait_until((tmp_path / "up").exists, what="a process runs")
        below = process_table.descendants(layer.pid)
        layer.kill()
    wait_until(lambda: not [pid for pid in below if is_alive(pid)], within=5, what="the processes are gone")


def is_alive(pid):
    process = process_table.find(pid)
    return process is not None and process.is_alive
