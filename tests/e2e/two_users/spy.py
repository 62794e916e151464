"""A task of a second user that knows every path, pid and id of the first user's task and tries to access it."""

import ctypes
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import determined as det

info = det.get_cluster_info()
assert info is not None
assert info.trial is not None
at = info.trial.hparams["at"]


def read(path: str) -> str:
    if os.path.isdir(path):
        return str(os.listdir(path))
    return Path(path).read_bytes().decode(errors="replace")[:100]


def write(path: str) -> str:
    with open(path, "a") as file:
        file.write("changed by bob")
    return "written"


def connect(path: str) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        os.chdir(os.path.dirname(path))  # a path of a socket is limited to 107 bytes
        client.connect(os.path.basename(path))
    return "connected"


def trace(pid: int) -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, pid, None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    libc.ptrace(17, pid, None, None)
    return "attached"


def unshare() -> str:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0:
        raise PermissionError(ctypes.get_errno(), "unshare")
    return "unshared"


def end(pid: int) -> str:
    os.kill(pid, signal.SIGTERM)
    return "signalled"


def secrets_in(folder: str) -> str:
    """Searches all files below a folder that is visible in this task."""
    paths = []
    for base, _folders, files in os.walk(folder):
        for name in files:
            try:
                if b"secret of ada" in Path(base, name).read_bytes():
                    paths.append(os.path.join(base, name))
            except OSError:
                pass
    if not paths:
        raise PermissionError("nothing of ada's can be read")
    return str(paths)


def others() -> str:
    """Searches for processes of other users."""
    processes = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path("/proc", pid, "cmdline").read_bytes()
            environment = Path("/proc", pid, "environ").read_bytes()
        except OSError:
            continue
        if b"victim.py" in line or b"DET_USER=ada" in environment:
            processes[pid] = line.decode()
    if not processes:
        raise ProcessLookupError("no process of ada's is listed")
    return str(processes)


def ask(method: str, path: str, body: object = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {info.session_token}", "Content-Type": "application/json"}
    request = urllib.request.Request(info.master_url + path, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read(200))


def attempts() -> Iterator[tuple[str, Callable[[], str]]]:
    run, pid = at["run_folder"], at["pid"]
    for name, path in {
        "run folder": run,
        "task's run folder": f"{run}/run",
        "work folder": f"{run}/run/workdir/victim.py",
        "token file": f"{run}/run/info/cluster.json",
        "order file with the variables": f"{run}/shim.json",
        "record of the container": f"{run}/record.json",
        "output": f"{run}/output",
        "context": at["contexts"],
        "agent's state": f"{at['agent']}/agent.json",
        "master's data folder": at["master"],
        "master's key": f"{at['master']}/secret",
        "checkpoint folder on the machine": f"{at['storage']}/{at['uuid']}",
        "checkpoint folder": f"/determined_shared_fs/{at['uuid']}",
        "checkpoint file": f"/determined_shared_fs/{at['uuid']}/weights",
        "shared memory": "/dev/shm/secret",
        "temporary file": "/tmp/secret",
        "private /tmp on the machine": f"{run}/tmp/tmp/secret",
        "home folder": f"{run}/run/home/secret",
        **{
            f"/proc/PID/{name}": f"/proc/{pid}/{name}"
            for name in ("environ", "cmdline", "cwd", "root/tmp/secret", "fd", "maps", "mem")
        },
    }.items():
        yield f"read {name}", lambda path=path: read(path)
    yield "write checkpoint file", lambda: write(f"/determined_shared_fs/{at['uuid']}/weights")
    yield (
        "remove checkpoint",
        lambda: os.rename(f"/determined_shared_fs/{at['uuid']}", "/determined_shared_fs/x") or "moved",
    )
    yield "write exit record", lambda: write(f"{run}/exit.json")
    yield "connect to socket", lambda: connect(f"{run}/run/secret.sock")
    yield "list processes", others
    yield "search /dev/shm", lambda: secrets_in("/dev/shm")
    yield "search /tmp", lambda: secrets_in("/tmp")
    yield "search the checkpoint storage", lambda: secrets_in("/determined_shared_fs")
    yield "ptrace", lambda: trace(pid)
    yield "signal", lambda: end(pid)
    yield "become root", lambda: os.setuid(0) or "root"
    yield "become ada", lambda: os.setuid(at["uid"]) or "ada"
    yield "unshare mounts", unshare
    trial, experiment, task = at["trial"], at["experiment"], at["task"]
    for name, path in {
        "logs": f"/api/v1/trials/{trial}/logs",
        "logs of the task": f"/api/v1/tasks/{task}/logs",
        "logs in pages": f"/detent/trials/{trial}/logs",
        "log download": f"/detent/trials/{trial}/logs/download",
        "first error": f"/detent/trials/{trial}/logs/first-error",
        "log line": "/detent/logs/lines/1",
        "context of the experiment": f"/api/v1/experiments/{experiment}/model_def",
        "files of the experiment": f"/api/v1/experiments/{experiment}/file_tree",
        "file of the experiment": f"/detent/experiments/{experiment}/file?path=victim.py",
        "context of the task": f"/api/v1/tasks/{task}/context_directory",
        "context blob": f"/detent/contexts/{at['digest']}",
        "checkpoint": f"/checkpoints/{at['uuid']}",
    }.items():
        yield f"API: {name}", lambda path=path: ask("GET", path)
    metrics = {"trialId": trial, "trialRunId": 1, "stepsCompleted": 9, "metrics": {"avgMetrics": {"loss": 9.0}}}
    yield (
        "API: report metrics",
        lambda: ask("POST", f"/api/v1/trials/{trial}/metrics", {"metrics": metrics, "group": "training"}),
    )
    yield "API: write a log", lambda: ask("POST", "/api/v1/task/logs", {"logs": [{"taskId": task, "log": "x"}]})
    yield "API: preempt", lambda: ask("GET", f"/api/v1/allocations/{at['allocation']}/signals/preemption")
    yield "API: kill", lambda: ask("POST", f"/api/v1/experiments/{experiment}/kill", {})
    yield "API: delete the checkpoint", lambda: ask("DELETE", "/api/v1/checkpoints", {"checkpointUuids": [at["uuid"]]})


for name, attempt in attempts():
    try:
        found = "GOT " + attempt()
    except urllib.error.HTTPError as error:
        found = f"refused: {error.code}"
    except (
        PermissionError,
        FileNotFoundError,
        NotADirectoryError,
        ProcessLookupError,
        ConnectionRefusedError,
    ) as error:
        found = f"refused: {type(error).__name__}"
    except Exception as error:
        found = f"failed: {error!r}"
    print("TRY", json.dumps([name, found]), flush=True)
