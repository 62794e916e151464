"""``det hydra run --on local`` and ``--on slurm``, and ``status``, ``logs``, ``stop`` and ``retry`` of its folder."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until
from tests.workflows.hydra.conftest import Det

from determined_workflows import supervised_run
from determined_workflows.hydra import run_record
from determined_workflows.hydra.run_record import Record

pytestmark = pytest.mark.budget(15, "composes and runs real Hydra projects")

HOLD = """
import os, signal, subprocess, sys, time
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig


@hydra.main(config_path=None, version_base="1.3")
def main(cfg):
    folder = Path(HydraConfig.get().runtime.output_dir)
    if cfg.stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        def save(*_):
            time.sleep(0.3)  # as saving takes a while
            sys.exit("saved before the end")

        signal.signal(signal.SIGTERM, save)
    child = subprocess.Popen(["sleep", "600"])
    print("devices", os.environ.get("CUDA_VISIBLE_DEVICES"))
    print("holds in", folder.name)
    (folder / "pids").write_text(f"{os.getpid()} {child.pid}")
    while not Path(cfg.gate).exists():
        time.sleep(0.01)
    child.kill()
    print("the gate is open")


main()
"""
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "hold.py").write_text(HOLD)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Yields a function that starts ``det hydra run --on local`` and waits until its job runs in the folder ``run``."""
    started: list[subprocess.Popen[str]] = []

    def start_one(*words: str) -> "subprocess.Popen[str]":
        argv = [sys.executable, "-m", "determined_cli", "hydra", "run", "hold.py", "--on", "local", "--python"]
        argv += [sys.executable, "+gate=go", "hydra.run.dir=run", *words]
        started.append(subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        wait_until(lambda: (folder / "run" / "pids").exists() and pids(folder), within=30, what="the job runs")
        return started[-1]

    yield start_one
    for process in started:
        process.kill()
        process.communicate()


def pids(folder: Path) -> list[int]:
    return [int(each) for each in (folder / "run" / "pids").read_text().split()]


def is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" in status.read_text()


def test_a_local_run_is_running_then_finished_and_its_output_is_kept(folder: Path, start: Start, det_here: Det) -> None:
    process = start("+stubborn=false")
    code, out, _ = det_here("status", "run")
    assert (code, out.splitlines()) == (0, ["running     run  (+gate=go +stubborn=false)", "Jobs: 1 (1 running)"])
    (folder / "go").touch()
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.splitlines()[-3:] == ["devices None", "holds in run", "the gate is open"]
    assert det_here("status", "run")[1].splitlines()[-1] == "Jobs: 1 (1 finished)"
    assert "holds in run\nthe gate is open\n" in det_here("logs", "run")[1]


def test_logs_with_follow_prints_to_the_end_of_the_run(folder: Path, start: Start) -> None:
    start("+stubborn=false")
    argv = [sys.executable, "-m", "determined_cli", "hydra", "logs", "-f", "run"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        wait_until(lambda: follower.stdout is not None and "holds in run" in follower.stdout.readline())
        (folder / "go").touch()
        assert follower.stdout.readline() == "the gate is open\n"
        assert follower.wait() == 0


def test_ctrl_c_while_following_ends_only_the_following(folder: Path, start: Start, det_here: Det) -> None:
    start("+stubborn=false")
    argv = [sys.executable, "-m", "determined_cli", "hydra", "logs", "-f", "run"]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as follower:
        assert follower.stdout is not None
        follower.stdout.readline()
        follower.send_signal(signal.SIGINT)
        _, message = follower.communicate()
        assert follower.returncode == 130
    assert message == "\ndetached; the run goes on. `det hydra logs -f run` shows it again\n"
    assert "(1 running)" in det_here("status", "run")[1]


@pytest.mark.parametrize(("words", "flags"), [("false", ()), ("true", ("--now",))])
def test_stop_ends_a_run_with_its_children(
    folder: Path, start: Start, det_here: Det, words: str, flags: tuple[str, ...]
) -> None:
    process = start(f"+stubborn={words}")
    running = pids(folder)
    code, _, err = det_here("stop", "run", *flags)
    assert code == 0
    assert err.splitlines()[-1] == "the run of run has ended"
    assert all(map(is_gone, running))
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert "the run was ended by a signal; `det hydra status run` shows its jobs" in output
    assert "(1 failed)" in det_here("status", "run")[1]


def test_what_a_job_prints_when_it_is_asked_to_end_is_kept(start: Start, det_here: Det) -> None:
    process = start("+stubborn=false")
    det_here("stop", "run")
    output, _ = process.communicate(timeout=30)
    assert "saved before the end\n" in output
    assert "saved before the end\n" in det_here("logs", "run")[1]


def test_after_a_stop_no_further_job_of_a_multirun_is_started(project: Path, det: Det) -> None:
    script = project / "scripts" / "train.py"
    hold = "(folder / 'begun').touch()\n    while not Path('go').exists(): time.sleep(0.01)\n    begin = 0\n"
    script.write_text("import time\n" + script.read_text().replace("begin = 0\n", hold))
    (project / "go").touch()
    words = ("run", "scripts/train.py", "--on", "local", "-m", "fail_at=0", "trainer.lr=1,2", "hydra.sweep.dir=sweep")
    assert det(*words)[0] == 1
    for path in [project / "go", *(project / "sweep").glob("*/begun")]:
        path.unlink()
    argv = [sys.executable, "-m", "determined_cli", "hydra", "retry", "sweep", "--python", sys.executable]
    with subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as retry:
        wait_until((project / "sweep" / "0" / "begun").exists, within=30)
        assert "Jobs: 2 (1 ended, 1 running)" in det("status", "sweep")[1]
        assert det("stop", "sweep")[0] == 0
        retry.communicate(timeout=30)
        assert retry.returncode == 128 + signal.SIGTERM
    assert not (project / "sweep" / "1" / "begun").exists()


def test_a_run_that_was_killed_is_interrupted(folder: Path, start: Start, det_here: Det) -> None:
    process = start("+stubborn=false")
    running = pids(folder)
    process.kill()
    wait_until(lambda: all(map(is_gone, running)), what="its supervisor ends the job")
    wait_until(lambda: supervised_run.process(run_record.kept_in(Path("run"))) is None)
    assert det_here("status", "run")[1].splitlines()[-1] == "Jobs: 1 (1 interrupted)"


def test_a_second_run_in_the_folder_of_a_running_one_is_refused(folder: Path, start: Start, det_here: Det) -> None:
    start("+stubborn=false")
    words = ("run", "hold.py", "--on", "local", "+gate=go", "+stubborn=false", "hydra.run.dir=run")
    code, _, err = det_here(*words)
    assert code == 7
    assert "runs in " in err
    assert "run; wait, or end it by `det hydra stop" in err


def test_retry_of_a_running_run_is_refused(folder: Path, start: Start, det_here: Det) -> None:
    start("+stubborn=false")
    code, _, err = det_here("retry", "run")
    assert code == 7
    assert err.endswith(" still runs in run; wait, or end it by `det hydra stop run`\n")


def test_stop_of_a_run_that_has_ended_is_refused(folder: Path, det_here: Det) -> None:
    (folder / "go").touch()
    words = ("run", "hold.py", "--on", "local", "+gate=go", "+stubborn=false", "hydra.run.dir=run")
    assert det_here(*words)[0] == 0
    code, _, err = det_here("stop", "run")
    assert (code, err) == (7, "det: no run uses run; `det hydra status run` prints how its jobs ended\n")


def test_a_dry_run_prints_the_command_with_the_folder_and_writes_nothing(folder: Path, det_here: Det) -> None:
    code, out, _ = det_here("run", "hold.py", "--on", "local", "+gate=go", "+stubborn=false", "--dry-run")
    assert code == 0
    assert out.startswith(f"cd {folder} && ")
    assert "hold.py +gate=go +stubborn=false hydra.run.dir=outputs/" in out
    assert [path.name for path in folder.iterdir()] == ["hold.py"]


@pytest.mark.parametrize("flags", [("--paused",), ("-f",), ("--config", "max_restarts=1")])
@pytest.mark.parametrize("target", ["local", "slurm"])
def test_flags_of_the_cluster_are_refused_for_other_targets(
    folder: Path, det_here: Det, target: str, flags: tuple[str, ...]
) -> None:
    code, _, err = det_here("run", "hold.py", "--on", target, *flags)
    assert (code, err) == (4, "det: --config, --follow and --paused need --on det\n")


def test_run_by_slurm_without_slurm_is_refused_before_anything_is_written(
    folder: Path, det_here: Det, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    code, out, err = det_here("run", "hold.py", "--use_slurm")
    assert (code, out) == (4, "")
    assert err == "det: Slurm is not installed on this machine (no sbatch); use --on local or --on det\n"


@pytest.mark.parametrize("verb", ["status", "logs", "stop"])
def test_a_folder_that_is_missing_or_of_no_run_is_refused(folder: Path, det_here: Det, verb: str) -> None:
    code, _, err = det_here(verb, "nowhere")
    assert (code, err) == (3, "det: nowhere: no such folder\n")
    code, _, err = det_here(verb, "hold.py")
    assert (code, err) == (3, "det: hold.py is not a folder\n")
    (folder / "empty").mkdir()
    code, _, err = det_here(verb, "empty")
    assert code == 4
    assert "empty is no folder of a Hydra run" in err


@pytest.mark.parametrize("text", ["", "[]", '{"target": "local"}', '{"target": "local", "jobs": 1, "more": 2}'])
def test_a_damaged_record_is_named_with_what_to_do(folder: Path, det_here: Det, text: str) -> None:
    Record("local", 1).write(folder / "run")
    path = run_record.kept_in(Path("run")) / run_record.FILE
    path.write_text(text)
    code, _, err = det_here("status", "run")
    assert code == 4
    assert err.startswith(f"det: {path} cannot be read (")
    assert "remove it" in err
