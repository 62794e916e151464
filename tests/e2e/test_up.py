"""`det up`: one line when ready, a private password, a login for the CLI, one supervisor per folder, an orderly end."""

import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.new_database import put_database
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.budget(60, "starts and stops whole clusters")]


class Up:
    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.environment = {**os.environ, "XDG_CONFIG_HOME": str(folder / "config")}
        self.process: subprocess.Popen[str] | None = None

    def det(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "determined_cli", *arguments]
        return subprocess.run(argv, env=self.environment, capture_output=True, text=True, check=check, timeout=270)

    def start(self, *options: str) -> str:
        words = ["--port", "0", "--data", str(self.data), "--slots", "1", *options]
        argv = [sys.executable, "-m", "determined_cli", "up", *words]
        self.process = subprocess.Popen(
            argv, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def stop(self) -> int:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=180)
        return self.process.returncode

    def close(self) -> None:
        """Ends the cluster with its tasks."""
        self.det("down", "--now", "--data", str(self.data), check=False)
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    created = Up(tmp_path)
    yield created
    created.close()


@pytest.fixture
def database(up: Up) -> None:
    """Migrates no database, where the test makes no claim about a first start."""
    put_database(up.data)


def auth(up: Up) -> dict:
    return json.loads((Path(up.environment["XDG_CONFIG_HOME"]) / "detent" / "auth.json").read_text())


def test_det_up_prints_its_address_and_a_sign_in_link_and_ends_when_asked(up: Up):
    line = up.start()
    assert line.startswith("ready: http://127.0.0.1:")
    assert up.process is not None
    assert up.process.stderr is not None
    link = next(text for text in up.process.stderr if text.startswith("open: "))
    assert link.startswith(f"open: {line.split()[1]}/sign-in#")
    assert link.endswith(" (valid once, for 10 minutes)\n")
    assert link.split("#")[1].split()[0] not in "".join(log.read_text() for log in (up.data / "logs").iterdir())
    another = up.det("master", "open").stdout
    assert another.startswith(f"{line.split()[1]}/sign-in#")
    assert another.strip() not in link
    password = up.data / "password"
    assert stat.S_IMODE(password.stat().st_mode) == 0o600
    text = password.read_text().strip()
    assert len(text) >= 16
    assert any(c.isupper() for c in text)
    assert any(c.islower() for c in text)
    assert any(c.isdigit() for c in text)
    assert json.loads(up.det("agent", "list", "--json").stdout)[0]["slots"] == 1
    assert "'admin'" in up.det("user", "whoami").stdout
    assert auth(up)["default_master"] == line.split()[1]
    second = up.det("up", "--port", "0", "--data", str(up.data), check=False)
    assert second.returncode == 7
    assert f"pid {up.process.pid}" in second.stderr
    assert up.stop() == 0
    assert auth(up)["default_master"] is None


@pytest.mark.usefixtures("database")
def test_detached_det_up_outlives_its_starter_and_det_down_ends_it(up: Up):
    done = up.det("up", "--detach", "--port", "0", "--data", str(up.data))
    assert done.stdout.startswith("ready: ")
    assert "/sign-in#" in done.stderr
    assert "#" not in (up.data / "logs" / "up.log").read_text()
    assert up.det("experiment", "list").returncode == 0
    assert up.det("down", "--data", str(up.data)).returncode == 0
    assert "nothing runs" in up.det("down", "--data", str(up.data)).stderr


@pytest.mark.usefixtures("database")
def test_a_port_in_use_is_named_at_start(up: Up, tmp_path: Path):
    port = up.start().strip().rsplit(":", 1)[1]
    put_database(tmp_path / "other")
    other = up.det("up", "--port", port, "--data", str(tmp_path / "other"), check=False)
    assert other.returncode == 1
    assert "cannot listen" in other.stderr
    assert "Traceback" not in other.stderr


@pytest.mark.usefixtures("database")
def test_ctrl_c_saves_a_running_trial_and_the_next_start_goes_on(up: Up, tmp_path: Path):
    context = tmp_path / "context"
    context.mkdir()
    (context / "run.py").write_text(
        "import determined as det\n"
        "with det.core.init() as core:\n"
        "    info = det.get_cluster_info()\n"
        "    start = 0\n"
        "    if info.latest_checkpoint:\n"
        "        with core.checkpoint.restore_path(info.latest_checkpoint) as path:\n"
        "            start = int((path / 'step').read_text())\n"
        "        print('going on from', start, flush=True)\n"
        "        raise SystemExit(0)\n"
        "    step = 0\n"
        "    print('training', flush=True)\n"
        "    while not core.preempt.should_preempt():\n"
        "        step += 1\n"
        "    with core.checkpoint.store_path({'steps_completed': step}) as (path, uuid):\n"
        "        (path / 'step').write_text(str(step))\n"
    )
    (context / "config.yaml").write_text(
        "name: x\nentrypoint: python3 run.py\nsearcher: {name: single, metric: m}\nhyperparameters: {}\n"
    )
    up.start()
    up.det("experiment", "create", str(context / "config.yaml"), str(context))
    argv = [sys.executable, "-m", "determined_cli", "experiment", "logs", "-f", "1"]
    following = subprocess.Popen(argv, env=up.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert following.stdout is not None
    for line in following.stdout:
        if "training" in line:
            break
    assert up.stop() == 0
    assert following.poll() is None  # the trial has not ended: its follower waits for the master
    following.kill()
    following.communicate(timeout=90)
    up.start()
    assert up.det("experiment", "wait", "1").returncode == 0
    assert "going on from" in up.det("experiment", "logs", "1").stdout
    assert json.loads(up.det("trial", "describe", "1", "--json").stdout)["restarts"] == 0


def test_an_open_data_folder_is_closed_and_tasks_keep_the_users_umask(up: Up, tmp_path: Path):
    context = tmp_path / "context"
    context.mkdir()
    (context / "config.yaml").write_text(
        "name: x\nentrypoint: umask\nsearcher: {name: single, metric: m}\nhyperparameters: {}\n"
    )
    for folder in ("", "logs", "agent", "blobs", "backups"):
        (up.data / folder).mkdir(parents=True, exist_ok=True)
        (up.data / folder).chmod(0o755)
    for name in ("logs/master.log", "logs/up.log", "agent/agent.json", "backups/old", "old"):
        (up.data / name).touch()
        (up.data / name).chmod(0o644)
    before = os.umask(0o026)
    try:
        up.start()
    finally:
        os.umask(before)
    up.det("experiment", "create", str(context / "config.yaml"), str(context))
    up.det("experiment", "wait", "1")
    assert "0026" in up.det("experiment", "logs", "1").stdout
    (up.data / "checkpoints").mkdir(exist_ok=True)  # keeps its mode, since the parent folder is closed
    paths = [up.data, *up.data.iterdir(), *(up.data / "logs").iterdir(), *(up.data / "agent").rglob("*.json")]
    paths += [path for path in (up.data / "backups").iterdir() if path.is_file()]
    assert {"master.sqlite", "master.log", "agent.log", "master.lock", "agent"} <= {path.name for path in paths}
    open_ones = {path.name: oct(path.stat().st_mode) for path in paths if path.stat().st_mode & 0o077}
    assert open_ones.keys() <= {"checkpoints"}, open_ones


@pytest.mark.usefixtures("database")
def test_det_up_takes_the_settings_of_a_file_and_its_flags_win(up: Up, tmp_path: Path):
    settings = tmp_path / "master.yaml"
    settings.write_text("cluster_name: closet\nport: 1\n")
    done = up.det("up", "--detach", "--config", str(settings), "--port", "0", "--data", str(up.data))
    assert not done.stdout.strip().endswith(":1")
    assert "cluster_name: closet\n" in up.det("master", "info").stdout
    assert json.loads(up.det("master", "config", "--json").stdout)["cluster_name"] == "closet"


@pytest.mark.usefixtures("database")
def test_the_printed_command_adds_an_agent(up: Up, tmp_path: Path):
    """Runs the command in the environment of another machine, with another data folder and another name."""
    done = up.det("up", "--detach", "--port", "0", "--data", str(up.data), "--slots", "1")
    line = next(text for text in done.stderr.splitlines() if text.startswith("add an agent: "))
    words = shlex.split(line.removeprefix("add an agent: ").partition(" (")[0])
    assert words[0] == "det-agent"
    environment = {
        **up.environment,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "second"),
        "DET_AGENT_ID": "second",
        "DET_AGENT_SLOTS": "1",
    }
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            names = wait_until(lambda: "second" in up.det("agent", "list", "--json").stdout, within=30)
            assert names
        finally:
            agent.terminate()


PAGE = Path(__file__).parents[2] / "docs" / "operations" / "resource-pools.md"


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("number", "pool"),
    [(0, "gpu"), *(pytest.param(*each, marks=pytest.mark.long) for each in ((1, "default"), (2, "cloud")))],
)
def test_a_file_with_pools_as_documented_starts(up: Up, tmp_path: Path, number: int, pool: str) -> None:
    """The agent joins the default pool, whatever its name is."""
    files = re.findall(r"```yaml\n(# master\.yaml\n.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "master.yaml").write_text(files[number], encoding="utf-8")
    assert up.start("--config", str(tmp_path / "master.yaml")).startswith("ready: ")
    (agent,) = json.loads(up.det("agent", "list", "--json").stdout)
    assert agent["resource_pool"] == pool
    assert up.stop() == 0
