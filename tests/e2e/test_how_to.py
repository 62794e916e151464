"""The how-to pages and the README work as written, on one cluster with two slots and with a second agent."""

import contextlib
import json
import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.document_reader import end_cluster, on_any_port, reader_environment, renumber, start_cluster
from tests.support.document_runner import follow, steps
from tests.support.fake_nvml import FakeNvml, Gpu
from tests.support.free_ports import free_port
from tests.support.packages import make_wheel
from tests.support.waiting import wait_until

# One worker runs all of them on one cluster.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("how-to"), pytest.mark.budget(90, "follows whole pages")]

README = Path(__file__).parents[2] / "README.md"
PAGES = README.parent / "docs" / "how-to"

ON_SHARED_CLUSTER = (
    "several-slots",
    "roles",
    "deepspeed",
    "scripts",
    "run-without-a-configuration",
    "hyperparameter-search",
    "debugging",
    "keep-outputs",
    "data",
    "local",
    "commands",
    "users-of-tasks",
    "rlhf",
)
LONG = ("deepspeed", "hyperparameter-search", "rlhf", "several-slots")
WITH_MORE_PARTS = {
    "shell-in-a-trial",
    "shells",
    "pages-of-a-task",
    "horovod",
    "environments",
    "several-machines",
    "gpus",
    "coming-from-determined",
}
IN_OTHER_FILES = {
    "keras",
    "lightning",
    "hugging-face",
    "common-mistakes",
    "python-sdk",
    "web-page",
    "containers",
    "grid-runner",
    "hydra",
    "slurm-job-scripts",
    "slurm-pool",
    "pausing-scripts",
}
"""Covered by ``test_tutorial.py``, ``test_hydra.py``, ``test_pause_signal.py``, ``batch/test_page.py``, ``containers/test_page.py``,
``tests/workflows/runner/test_page.py`` and, in a browser, ``web/test_web_page.py``."""


def test_every_how_to_page_is_followed_by_a_test() -> None:
    assert {path.stem for path in PAGES.glob("*.md")} == {*ON_SHARED_CLUSTER, *WITH_MORE_PARTS, *IN_OTHER_FILES}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def environ(home: Path) -> Iterator[dict[str, str]]:
    """Yields the environment of a reader whose cluster has two slots."""
    variables = reader_environment(home)
    try:
        start_cluster(variables, slots=2)
        yield variables
    finally:
        end_cluster(variables)


@pytest.fixture
def read(home: Path, tmp_path: Path, environ: dict[str, str]) -> Callable[..., list[str]]:
    """Returns a function that follows a page as if its experiments were the first of the cluster."""

    def read_page(name: str, *, prepare: Callable[[str], str] = lambda command: command) -> list[str]:
        used = ids(home)
        return follow(
            PAGES / f"{name}.md",
            tmp_path,
            environ,
            prepare=lambda command: prepare(renumber(command, *used)),
            expect=lambda expected: renumber(expected, *used),
        )

    return read_page


def ids(home: Path) -> tuple[int, int]:
    """Returns the newest ids of experiments and trials."""
    with contextlib.closing(sqlite3.connect(home / "data" / "detent" / "master.sqlite")) as database:
        newest = "SELECT (SELECT coalesce(max(id), 0) FROM experiments), (SELECT coalesce(max(id), 0) FROM trials)"
        experiments, trials = database.execute(newest).fetchone()
    return experiments, trials


# launchers/test_matrix.py trains under each layer in less time.
@pytest.mark.parametrize(
    "page", [pytest.param(each, marks=pytest.mark.long) if each in LONG else each for each in ON_SHARED_CLUSTER]
)
def test_the_page_works_as_written(read: Callable[..., list[str]], page: str) -> None:
    assert read(page)


def test_the_page_about_shells_works_on_a_trial_that_runs(
    read: Callable[..., list[str]], environ: dict[str, str], home: Path
) -> None:
    def when_it_runs(command: str) -> str:
        if "det trial exec" in command:
            trial = str(ids(home)[1])
            wait_until(lambda: "waiting" in det(environ, "trial", "logs", trial), what="the trial runs")
        # ssh looks for its files in the home folder of the machine's user, whatever HOME is.
        config = f"{environ['HOME']}/.ssh/config"
        if command.startswith("rsync"):
            return command.replace("rsync ", f"rsync -e 'ssh -F {config}' ", 1)
        return command.replace("ssh ", f"ssh -F {config} ", 1) if command.startswith("ssh ") else command

    assert read("shell-in-a-trial", prepare=when_it_runs)


def test_the_page_about_shells_of_their_own_works_once_the_shell_is_ready(
    read: Callable[..., list[str]], environ: dict[str, str], tmp_path: Path
) -> None:
    def once_ready(command: str) -> str:
        if "det task exec" in command:
            shell = (tmp_path / "id.txt").read_text().strip()
            path = f"/api/v1/tasks/{shell}"
            is_ready = '"isReady":true'
            wait_until(
                lambda: is_ready in det(environ, "dev", "curl", path).replace(" ", ""), what="the shell is ready"
            )
        return command

    assert read("shells", prepare=once_ready)


def test_the_page_about_pages_works_on_a_trial_that_serves_one(
    read: Callable[..., list[str]], environ: dict[str, str], home: Path
) -> None:
    def when_it_serves(command: str) -> str:
        if "det trial open" in command:
            trial = str(ids(home)[1])
            wait_until(lambda: "serves" in det(environ, "trial", "logs", trial), what="the trial serves")
        return command

    assert read("pages-of-a-task", prepare=when_it_serves)


@pytest.mark.long  # like the page about DeepSpeed
def test_the_page_about_horovod_works_with_the_model_of_the_page_about_slots(
    read: Callable[..., list[str]], tmp_path: Path
) -> None:
    (model,) = [step for step in steps(PAGES / "several-slots.md") if step.name == "model/model_def.py"]
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model_def.py").write_text(model.text, encoding="utf-8")
    outputs = read("horovod")
    assert sum("the mean rank is 0.5" in line for line in outputs[-1].splitlines()) == 2


@pytest.mark.long  # test_environments.py builds and shares one
def test_the_page_about_environments_works_as_written(read: Callable[..., list[str]], tmp_path: Path) -> None:
    wheels = make_wheel(tmp_path / "wheels", "einops", "0.8").parent
    offline = f"--config environment.environment_variables='[PIP_NO_INDEX=1, PIP_FIND_LINKS={wheels}]'"
    folders = ("packages/", "hook/", "listed/")
    outputs = read(
        "environments", prepare=lambda line: f"{line} {offline}" if any(folder in line for folder in folders) else line
    )
    assert "|| einops 0.8" in outputs[0]
    assert "|| hello einops" in outputs[1]
    assert "|| einops 0.8" in outputs[2]


def readme_commands() -> list[str]:
    """Returns the commands of the README's first experiment, without comments."""
    block = README.read_text(encoding="utf-8").partition("## A first experiment\n")[2].split("```")[1]
    return [line.partition("  ")[0].removeprefix(".venv/bin/") for line in block.splitlines() if line]


@pytest.mark.long  # the tutorial covers the same in less time
def test_the_first_experiment_of_the_readme_is_paused_and_resumed(home: Path, environ: dict[str, str]) -> None:
    up, create, *commands = readme_commands()
    assert (up, len(commands)) == ("det up", 2)
    experiments, trials = ids(home)
    trial, root = trials + 1, README.parent
    # A reader follows the log in one terminal and runs the other commands in another.
    with subprocess.Popen(shlex.split(create), cwd=root, env=environ) as following:
        try:
            wait_until(lambda: reports(environ, trial), within=120, what="a step of the trial")
            for command in commands:
                if "activate" in command:
                    wait_until(lambda: "PAUSED" in det(environ, "trial", "describe", str(trial)), within=60)
                subprocess.run(shlex.split(renumber(command, experiments, trials)), env=environ, check=True)
            assert following.wait(timeout=180) == 0
        finally:
            following.terminate()
    attempts = json.loads(det(environ, "trial", "describe", str(trial), "--json"))["attempts"]
    assert [attempt["run_id"] for attempt in attempts] == [1, 2]


def reports(environ: dict[str, str], trial: int) -> bool:
    """Returns True if the trial has reported metrics, and False if it does not exist yet."""
    words = ["det", "trial", "describe", str(trial), "--metrics", "--json"]
    done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    return done.returncode == 0 and bool(json.loads(done.stdout)["workloads"])


@pytest.mark.long  # launchers/test_pause.py trains on two machines
def test_the_page_about_several_machines_works_with_a_second_agent(tmp_path: Path) -> None:
    environ = reader_environment(tmp_path)
    port = free_port()
    agents: list[subprocess.Popen[bytes]] = []

    def prepare(command: str) -> str:
        if command.startswith("det up"):
            return f"{command} --port {port} --no-browser"
        if not command.startswith("det-agent"):
            return command
        words = shlex.split(command.replace("MASTER:8080", f"127.0.0.1:{port}"))
        shutil.copy(tmp_path / "data" / "detent" / "agent-token", tmp_path)
        own = ["--id", "gpu-2", "--slots", "1", "--data", str(tmp_path / "gpu-2")]
        agents.append(subprocess.Popen([*words, *own], cwd=tmp_path, env=environ))
        wait_until(lambda: "gpu-2" in det(environ, "agent", "list"), within=60, what="the second agent")
        return "true"

    try:
        follow(PAGES / "several-machines.md", tmp_path, environ, prepare=prepare)
    finally:
        end_cluster(environ)
        for agent in agents:
            agent.terminate()
            agent.wait(timeout=90)


@pytest.mark.long  # tests/agent/accelerators has the driver
def test_the_page_about_gpus_works_with_a_scripted_driver(tmp_path: Path) -> None:
    environ = reader_environment(tmp_path)
    environ["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "fake"), environ.get("PYTHONPATH", "")])
    nvml = FakeNvml(tmp_path / "fake")
    free, used = Gpu("GPU-a"), Gpu("GPU-b", "00000000:5E:00.0", processes=[os.getpid()])
    nvml.show(free, used)

    def prepare(command: str) -> str:
        if command == "det slot list":
            wait_until(lambda: "occupied" in det(environ, "slot", "list"), what="the second GPU is watched")
        return on_any_port(command)

    try:
        follow(PAGES / "gpus.md", tmp_path, environ, prepare=prepare)
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "show.py").write_text("import os; print('sees', os.environ['CUDA_VISIBLE_DEVICES'])")
        config = "{name: sees, entrypoint: python3 show.py, searcher: {name: single, metric: loss, max_length: 1}"
        (tmp_path / "two.yaml").write_text(f"{config}, resources: {{slots_per_trial: 2}}}}")
        det(environ, "experiment", "create", "two.yaml", "model", cwd=tmp_path)
        reason = f"slot 1 of {socket.gethostname()}: process {os.getpid()} of"
        wait_until(lambda: reason in waiting(tmp_path), what="it says why it waits")
        nvml.show(free, Gpu("GPU-b", "00000000:5E:00.0"))
        det(environ, "experiment", "wait", "1")
        assert "sees GPU-a,GPU-b" in det(environ, "trial", "logs", "1")
    finally:
        end_cluster(environ)


def waiting(home: Path) -> str:
    """Returns the waiting reason of the newest attempt."""
    with contextlib.closing(sqlite3.connect(home / "data" / "detent" / "master.sqlite")) as database:
        row = database.execute("SELECT waiting FROM allocations ORDER BY created_at DESC LIMIT 1").fetchone()
        return row[0] if row else ""


def det(environ: dict[str, str], *words: str, cwd: Path | None = None) -> str:
    """Runs one command and returns its output."""
    return subprocess.run(["det", *words], env=environ, cwd=cwd, capture_output=True, text=True, check=True).stdout


def test_the_page_for_users_of_determined_works_as_written(tmp_path: Path) -> None:
    environ = reader_environment(tmp_path)
    try:
        follow(PAGES / "coming-from-determined.md", tmp_path, environ, prepare=on_any_port)
    finally:
        end_cluster(environ)


def missing_verbs() -> list[str]:
    """Returns the commands of the page's table of missing verbs."""
    text = (PAGES / "coming-from-determined.md").read_text(encoding="utf-8")
    table = text.partition("| verb | instead |\n|---|---|\n")[2].partition("\n\n")[0]
    cells = [row.split("|")[1] for row in table.splitlines()]
    return [verb for cell in cells for verb in re.findall(r"`([^`]+)`", cell) if " --" not in verb]


@pytest.mark.parametrize("verb", missing_verbs())
def test_a_missing_verb_of_det_names_the_replacement(verb: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["det", *verb.split(), "1"], env=reader_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "is not supported yet" in done.stderr, done.stderr
