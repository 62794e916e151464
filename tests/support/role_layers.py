"""Runs the layer for roles: off the cluster, or in several containers on this machine. It starts no foreign launcher."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.free_ports import free_block

from determined_launch import process_table, processes
from determined_launch.environment import RendezvousFacts

ARGV = [sys.executable, "-m", "determined.launch.roles", "roles.json"]
KEY = "5ec2e7" * 10 + "beef"
TELLS = """
import json, os, pathlib
names = [n for n in os.environ if n.startswith(("DET_ROLE", "DET_PROCESS")) or n in (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "A")]
name = os.environ["DET_ROLE"] + os.environ["DET_ROLE_INDEX"]
pathlib.Path(name + ".json").write_text(json.dumps({n: os.environ[n] for n in names}))
"""
"""A program that writes its variables to a file, which ``variables_of`` reads."""


def role(name: str, script: str = "tells.py", *words: str, **more: object) -> dict[str, object]:
    """Returns a role of Python programs."""
    return {"name": name, "command": ["python3", script, *words], **more}


def variables_of(folder: Path, name: str) -> dict[str, str]:
    """Returns the variables that a process wrote. ``name``: ``trainer0``."""
    found: dict[str, str] = json.loads((folder / f"{name}.json").read_text())
    return found


def write(folder: Path, roles: Sequence[object], scripts: Mapping[str, str], **more: object) -> None:
    """Writes roles.json and the scripts, one of which is ``tells.py``."""
    for name, text in {"tells.py": TELLS, **scripts}.items():
        (folder / name).write_text(text)
    (folder / "roles.json").write_text(json.dumps({"roles": roles, **more}))


def environment(**more: str) -> dict[str, str]:
    """Returns this process's environment without what a layer reads."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "CUDA_"))}
    return {**inherited, **more}


def start(folder: Path, **environ: str) -> "subprocess.Popen[str]":
    """Starts the layer off the cluster."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen(ARGV, env=environment(**environ), cwd=folder, **pipes)


def run(folder: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Runs the layer off the cluster to its end; its output has both streams."""
    layer = start(folder, **environ)
    try:
        output, _ = layer.communicate(timeout=60)
    finally:
        kill(layer)
    return subprocess.CompletedProcess(ARGV, layer.returncode, output)


def start_containers(folder: Path, slots: Sequence[int], **environ: str) -> "list[subprocess.Popen[str]]":
    """Starts the layer in one container for each number of slots, all on this machine."""
    count = len(slots)
    shared = {"DET_ALLOCATION_KEY": KEY, "DTRAIN_SSH_PORT": str(free_block(count)), "DET_ALLOCATION_ID": "a.1"}
    shared |= {"INTER_TRAIN_PROCESS_COMM_PORT_1": str(free_block(count))}
    layers = []
    for rank in range(len(slots)):
        run_folder = folder / f"container-{rank}"
        (run_folder / "info").mkdir(parents=True)
        facts = RendezvousFacts(("127.0.0.1",) * len(slots), rank, tuple(slots))
        (run_folder / "info" / "rendezvous.json").write_text(json.dumps(facts.to_json()))
        layers.append(start(folder, **shared, DET_RUN_DIR=str(run_folder), **environ))
    return layers


def finish(layers: "Sequence[subprocess.Popen[str]]") -> "list[tuple[int, str]]":
    """Returns code and output of each layer after its end."""
    try:
        outputs = [layer.communicate(timeout=60)[0] for layer in layers]
    finally:
        for layer in layers:
            kill(layer)
    return [(layer.returncode, output) for layer, output in zip(layers, outputs, strict=True)]


def kill(layer: "subprocess.Popen[str]") -> None:
    """Kills a layer and what is below it."""
    for pid in process_table.descendants(layer.pid):
        processes.send(pid, signal.SIGKILL)
    layer.kill()
