"""MLflow's server with a few runs, from an environment of its own: `make mlflow`, or DETENT_MLFLOW=FOLDER."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.figure import Skipped
from bench.servers import ROOT

ROW = '[data-testid="experiment-list-item-link"]'
_QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"}


def program() -> Path:
    folder = Path(os.environ.get("DETENT_MLFLOW") or ROOT / ".cache" / "mlflow")
    if not (folder / "bin" / "mlflow").exists():
        raise Skipped("MLflow is not installed: make mlflow, or DETENT_MLFLOW=FOLDER")
    return folder / "bin" / "mlflow"


@contextmanager
def mlflow(folder: Path) -> Iterator[str]:
    """Yields the address of the server."""
    folder.mkdir()
    url = f"http://127.0.0.1:{_free_port()}"
    argv = [str(program()), "server", "--host", "127.0.0.1", "--port", url.rpartition(":")[2], "--workers", "1"]
    argv += [
        "--backend-store-uri",
        f"sqlite:///{folder}/store.sqlite",
        "--default-artifact-root",
        str(folder / "files"),
    ]
    with subprocess.Popen(
        argv, cwd=folder, env=os.environ | _QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _until_up(url, process)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def add_runs(url: str, names: list[str]) -> None:
    """Adds an experiment with two ended runs for each name."""
    with httpx.Client(base_url=f"{url}/api/2.0/mlflow/", timeout=60) as client:
        for name in names:
            experiment = client.post("experiments/create", json={"name": name}).raise_for_status().json()
            for number in range(2):
                now = int(time.time() * 1000)
                body = {"experiment_id": experiment["experiment_id"], "run_name": f"{name} {number}", "start_time": now}
                run = client.post("runs/create", json=body).raise_for_status().json()["run"]["info"]["run_id"]
                metrics = [{"key": "loss", "value": 0.1, "timestamp": now, "step": 1}]
                client.post("runs/log-batch", json={"run_id": run, "metrics": metrics}).raise_for_status()
                ended = {"run_id": run, "status": "FINISHED", "end_time": now + 1}
                client.post("runs/update", json=ended).raise_for_status()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if httpx.get(f"{url}/health").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.2)
    raise RuntimeError("MLflow's server did not start")
