"""A real master and agent, with the unmodified official client in an environment of its own."""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.support import ordinary_user
from tests.support.live_cluster import without_cluster
from tests.support.new_database import put_database
from tests.support.official_client import OFFICIAL, OfficialClient
from tests.support.recording_proxy import recording
from tests.support.waiting import wait_until

from determined.client.session import Session

ROOT = Path(__file__).resolve().parents[2]
USER = "admin"
START, ANSWER, END = 180.0, 90.0, 90.0
T = TypeVar("T")


@dataclass
class OfficialCluster:
    """A running cluster. ``url``: the address that the clients use; ``folder``: readable by the tasks."""

    url: str
    folder: Path
    password: str
    api: Session
    """Our own client, for checks of what the official client reports."""
    users: list[str] = field(default_factory=list)
    client: OfficialClient = field(default_factory=OfficialClient)

    @property
    def environment(self) -> dict[str, str]:
        """Returns the environment of the official client, without our variables."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "PYTHON"))}
        return inherited | {
            "DET_MASTER": self.url,
            "DET_USER": USER,
            "DET_PASS": self.password,
            "XDG_CONFIG_HOME": str(self.folder / "official-config"),
            "HOME": str(self.folder),
            "PATH": os.defpath,
        }

    def det(
        self, *arguments: object, user: str = USER, password: str | None = None, typed: str = "", fails: bool = False
    ) -> str:
        """Returns the output of the official ``det``. ``typed``: input for its questions."""
        environment = self.environment | {"DET_USER": user, "DET_PASS": password or self.password}
        done = self.client.det([str(word) for word in arguments], environment, self.folder, typed, within=3 * ANSWER)
        assert (done.returncode != 0) == fails, f"det {arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if fails else "")

    def python(self, program: Path, *arguments: object, python: Path = OFFICIAL / "bin" / "python") -> Any:
        """Returns the last line of a program's output, parsed as JSON. By default the official library's Python runs
        it."""
        argv = [python, "-W", "ignore", program, *map(str, arguments)]
        done = _run(argv, self.environment, self.folder)
        assert done.returncode == 0, f"{program}: {done.stdout}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    def create(self, config: dict[str, Any], context: Path, *arguments: str) -> int:
        """Creates an experiment with the official client and returns its id."""
        path = self.folder / f"{config['name']}.yaml"
        path.write_text(json.dumps(config))
        output = self.det("experiment", "create", path, context, *arguments)
        return int(output.split("Created experiment ")[1].split()[0])

    def experiment(self, number: int) -> Any:
        return self.api.get(f"/api/v1/experiments/{number}")["experiment"]

    def trial(self, experiment: int) -> Any:
        return self.api.get(f"/api/v1/experiments/{experiment}/trials")["trials"][0]

    def steps(self, experiment: int) -> int:
        return int(self.trial(experiment)["totalBatchesProcessed"])

    def held(self, experiment: int) -> bool:
        """Returns True if an allocation of this experiment holds slots."""
        running = self.api.get("/api/v1/tasks")["allocationIdToSummary"].values()
        return any(f"(Experiment {experiment})" in str(task["name"]) for task in running)

    def reaches(self, experiment: int, state: str) -> None:
        try:
            until(lambda: self.experiment(experiment)["state"] == f"STATE_{state}")
        except AssertionError:
            raise AssertionError(
                f"{self.experiment(experiment)['state']}, not {state}: {self.logs(experiment)}"
            ) from None

    def gets_past(self, experiment: int, steps: int) -> int:
        """Waits until more than ``steps`` steps are reported."""

        def past() -> int | None:
            state = self.experiment(experiment)["state"]
            assert state != "STATE_ERROR", self.logs(experiment)
            done = self.steps(experiment)
            return done if done > steps else None

        return until(past)

    def logs(self, experiment: int) -> str:
        trial = self.trial(experiment)["id"]
        return self.det("trial", "logs", trial)


def until(question: Callable[[], T | None], *, within: float = ANSWER) -> T:
    """Returns the first true answer. The official client and its library may take long."""
    return wait_until(question, within=within)


def _run(argv: Sequence[object], environment: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [str(word) for word in argv],
        env=environment,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=3 * ANSWER,
        check=False,
    )


@contextmanager
def official_cluster(
    *,
    as_ordinary_user: bool = False,
    slots: int = 2,
    container_runtime: str = "process",
    host_paths: Sequence[Path] = (),
) -> Iterator[OfficialCluster]:
    """Yields a ``det up`` in a folder of its own, and ends it. ``host_paths``: folders that containers may mount."""
    folder = Path(tempfile.mkdtemp(prefix="detent-official-"))
    folder.chmod(0o755)
    put_database(folder / "data")
    if as_ordinary_user:
        for path in (folder, folder / "data", folder / "data" / "master.sqlite"):
            os.chown(path, ordinary_user.USER, ordinary_user.GROUP)
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = without_cluster() | home
    if host_paths:
        environment["DET_AGENT_ALLOWED_HOST_PATHS"] = ",".join(map(str, host_paths))
    argv = [sys.executable, "-m", "determined_cli", "up", "--port", "0", "--data", str(folder / "data")]
    argv += ["--slots", str(slots), "--grace", "1", "--container-runtime", container_runtime]
    if as_ordinary_user:
        argv = [sys.executable, ordinary_user.__file__, *_reach(), "--", *argv]
    with open(folder / "up.log", "wb") as log:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log)
    try:
        url = _announced(process, folder)
        password = (folder / "data" / "password").read_text().strip()
        proxy = recording(url, _keep) if os.environ.get("DETENT_RECORD") else nullcontext(None)
        with proxy as through:
            cluster = OfficialCluster(through.url if through else url, folder, password, Session(url, timeout=90))
            cluster.api = Session(url, token=_token(cluster, url), timeout=90)
            yield cluster
            cluster.api.close()
            cluster.client.close()
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        shutil.rmtree(folder, ignore_errors=True)


def _reach() -> list[str]:
    ours = [Path(path) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    pythons = [Path(sys.executable), OFFICIAL / "bin" / "python"]
    folders = [*ours, ROOT, *(folder for python in pythons for folder in ordinary_user.environment_of(python))]
    return [word for folder in folders for word in ("--reach", str(folder))]


def _announced(process: "subprocess.Popen[bytes]", folder: Path) -> str:
    lines: queue.Queue[bytes] = queue.Queue()
    assert process.stdout is not None
    threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
    try:
        line = lines.get(timeout=START).decode()
    except queue.Empty:
        line = ""
    assert line.startswith("ready: "), f"det up: {line} {(folder / 'up.log').read_text()}"
    return line.removeprefix("ready: ").strip()


def _token(cluster: OfficialCluster, url: str) -> str:
    from determined_master.auth.passwords import client_hash

    session = Session(url, timeout=90)
    body = {"username": USER, "password": client_hash(cluster.password), "isHashed": True}
    token = str(session.post("/api/v1/auth/login", body)["token"])
    session.close()
    return token


def _keep(exchange: Any) -> None:
    """Appends to the file that DETENT_RECORD names; ``keep_recording`` makes test inputs from it."""
    with open(os.environ["DETENT_RECORD"], "a") as file:
        file.write(json.dumps(vars(exchange)) + "\n")
