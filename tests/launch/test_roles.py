"""Real processes of roles on one machine: variables, ends, exit codes and what is on the screen."""

import json
import os
import subprocess
import sys

import pytest

TELLS = """
import json, os, pathlib
names = [n for n in os.environ if n.startswith(("DET_ROLE", "DET_PROCESS")) or n in (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "A")]
name = os.environ["DET_ROLE"] + os.environ["DET_ROLE_INDEX"]
pathlib.Path(name + ".json").write_text(json.dumps({n: os.environ[n] for n in names}))
"""


@pytest.fixture
def run(tmp_path):
    """Returns a function that runs the layer with these roles and scripts, off the cluster."""

    def run_roles(roles, scripts=None, *, preload=None, **environ):
        for name, text in {"tells.py": TELLS, **(scripts or {})}.items():
            (tmp_path / name).write_text(text)
        file = {"roles": roles} | ({"preload": preload} if preload else {})
        (tmp_path / "roles.json").write_text(json.dumps(file))
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "CUDA_"))}
        return subprocess.run(
            [sys.executable, "-m", "determined.launch.roles", "roles.json"],
            **{"env": {**inherited, **environ}, "cwd": tmp_path, "timeout": 60},
            **{"capture_output": True, "text": True, "check": False},
        )

    return run_roles


def role(name, script="tells.py", **more):
    return {"name": name, "command": ["python3", script], **more}


def told(tmp_path, name):
    return json.loads((tmp_path / f"{name}.json").read_text())


def test_each_process_gets_the_variables_of_its_role_and_of_the_trial(tmp_path, run):
    done = run([role("master"), role("trainer", count=2, slots=1, environment={"A": "b"})], DET_SLOT_IDS="[0, 1]")
    assert done.returncode == 0, done.stderr
    master, trainer = told(tmp_path, "master0"), told(tmp_path, "trainer1")
    assert "A" not in master
    assert trainer["A"] == "b"
    assert [master[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")] == ["0", "1", "0", "1"]
    assert [trainer[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")] == ["1", "2", "1", "2"]
    assert trainer["MASTER_PORT"] == told(tmp_path, "trainer0")["MASTER_PORT"] != master["MASTER_PORT"]
    numbers = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE")
    assert [trainer[f"DET_PROCESS_{name}"] for name in numbers] == ["2", "3", "2", "3", "0", "1"]
    roles = json.loads(trainer["DET_ROLES"])
    assert roles == json.loads(master["DET_ROLES"])
    assert [(role["name"], [each["rank"] for each in role["processes"]]) for role in roles] == [
        ("master", [0]),
        ("trainer", [1, 2]),
    ]
    ports = [each["port"] for role in roles for each in role["processes"]]
    assert len({*ports, int(master["MASTER_PORT"]), int(trainer["MASTER_PORT"])}) == 5
