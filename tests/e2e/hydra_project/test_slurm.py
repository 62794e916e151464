"""The Hydra example on a real Slurm with the real launcher: the same loss, setup lines, and failing jobs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.hydra_project.project import ENVIRONMENT, EXAMPLE, EXPERIMENT, continued, result, script, train
from tests.support.slurm import Slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(90, "runs jobs of a real Slurm"),
]

MULTIRUN = ("--multirun", "hydra/launcher=slurm_launcher")


@pytest.fixture
def idle(slurm: Slurm) -> Iterator[Slurm]:
    """Yields a Slurm and cancels the jobs of this test at its end."""
    yield slurm
    slurm.cancel_all()


def test_a_slurm_job_has_the_loss_of_plain_python_and_the_variables_of_setup(
    idle: Slurm, tmp_path: Path, plain_run: Path
) -> None:
    """Setup lines that are not shell commands, as in files of real users, do not stop the job."""
    text = tmp_path / "exported.txt"
    text.write_bytes((EXAMPLE / "data" / "sample.txt").read_bytes())
    lines = ("gpu-bind=none", "wait-all-nodes=1", "time=2-00:00:00", "exclusive", f"export SAMPLE_TEXT={text}")
    setup = "[" + ",".join(f"'{line}'" for line in lines) + "]"
    words = (EXPERIMENT, "data.path=${oc.env:SAMPLE_TEXT}", f"hydra.launcher.setup={setup}")
    done = script(
        "train_with_hydra.py", *MULTIRUN, *words, f"hydra.sweep.dir={tmp_path}/sweep", cwd=tmp_path, **idle.environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert result(tmp_path / "sweep" / "0") == result(plain_run)
    (log,) = (tmp_path / "sweep" / ".submitit").glob("*/*_log.err")
    assert "exclusive: command not found" in log.read_text()


@pytest.mark.long  # test_scripts.py continues a run
def test_a_run_is_continued_on_slurm_with_the_same_loss(idle: Slurm, tmp_path: Path, plain_run: Path) -> None:
    sweep = continued(plain_run, 30, tmp_path / "sweep", "--on", "slurm", **idle.environment)
    assert list((sweep / ".submitit").glob("*/*_log.out"))
    assert result(sweep / "0") == result(plain_run)


def test_failed_and_killed_slurm_jobs_are_reported_while_others_run(idle: Slurm, tmp_path: Path) -> None:
    """The first job, on which the launcher waits, runs forever. The second fails, and the third is killed."""
    sweep = tmp_path / "sweep"
    argv = [sys.executable, str(EXAMPLE / "scripts" / "train_with_hydra.py"), *MULTIRUN, "num_epochs=1000000"]
    argv += ["num_train_steps=1000000", "model.num_heads=1,3,2", f"hydra.sweep.dir={sweep}"]
    output = tmp_path / "output.txt"
    with output.open("w") as file:
        submitter = subprocess.Popen(argv, cwd=tmp_path, env=ENVIRONMENT | idle.environment, stdout=file, stderr=file)
    try:
        failed = "error: job #1 failed: ConfigError: model.num_heads: 3 does not divide model.embedding_dim 32"
        wait_until(lambda: failed in output.read_text(), what=output.read_text)
        assert submitter.poll() is None
        _kill(idle, sweep, 2)
        wait_until(lambda: "_2 ended without a result: " in output.read_text(), what=output.read_text)
        assert submitter.poll() is None
        _kill(idle, sweep, 0)
        assert submitter.wait(timeout=120) == 1
    finally:
        submitter.kill()
        submitter.wait()
    assert "_0 ended without a result: " in output.read_text()
    assert "Traceback" not in output.read_text()


@pytest.mark.long  # tests/workflows/hydra has the commands
def test_the_jobs_of_a_run_folder_are_shown_stopped_and_retried_on_slurm(idle: Slurm, tmp_path: Path) -> None:
    """Another user's job, whose script is elsewhere, is left alone."""
    environment = ENVIRONMENT | idle.environment | {"VIRTUAL_ENV": sys.prefix}

    def det(*words: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "determined_cli", "hydra", *words]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    other = idle.command("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600").strip()
    assert det("init")[0] == 0
    script = tmp_path / "train.py"
    script.write_text(
        script.read_text().replace("loss = 0.0\n", "import time; time.sleep(max(0, cfg.fail_at))\n    loss = 0.0\n")
    )
    argv = [sys.executable, "-m", "determined_cli", "hydra", "run", "train.py", "--on", "slurm", "hydra.sweep.dir=s"]
    output = tmp_path / "output.txt"
    with output.open("w") as file:
        argv += ["optimizer=fast", "fail_at=-1,0,500"]
        submitter = subprocess.Popen(argv, cwd=tmp_path, env=environment, stdout=file, stderr=file)
    try:
        wait_until(
            lambda: "(1 failed, 1 finished, 1 running)" in det("status", "s")[1],
            within=15,
            what=lambda: det("status", "s")[1],
        )
        code, text = det("stop", "s")
        assert code == 0, text
        assert "ended jobs of Slurm: " in text
        assert submitter.wait(timeout=60) == 128 + signal.SIGTERM, output.read_text()
    finally:
        submitter.kill()
        submitter.wait()
    wait_until(lambda: "(2 failed, 1 finished)" in det("status", "s")[1], within=15, what=lambda: det("status", "s")[1])
    assert idle.command("squeue", "--noheader", "--format=%i").split() == [other]
    assert "step 100 of 100" in det("logs", "s", "--job", "0")[1]
    code, text = det("retry", "s", "--new_overrides", "fail_at=-1")
    assert code == 0, text
    assert "hydra/launcher=slurm_launcher" in text
    assert "(3 finished)" in det("status", "s")[1]


def test_jobs_on_slurm_see_the_lines_variables_and_options_of_the_site(idle: Slurm, tmp_path: Path) -> None:
    """The lines run in the shell of the job, before those of the project."""
    environment = ENVIRONMENT | idle.environment | {"VIRTUAL_ENV": sys.prefix, "XDG_CONFIG_HOME": str(tmp_path)}

    def det(*words: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "determined_cli", "hydra", *words]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout + done.stderr

    assert det("init")[0] == 0
    train = tmp_path / "train.py"
    sees = "import os; print(*(os.environ.get(name) for name in ('IN_JOB', 'LINE', 'SITE', 'BOTH')), sep='|')\n    "
    train.write_text(train.read_text().replace("loss = 0.0\n", f"{sees}loss = 0.0\n"))
    with (tmp_path / "configs/hydra/launcher/slurm_launcher.yaml").open("a") as file:
        file.write("qos: null\nsetup: ['export BOTH=$BOTH,project']\n")
    (tmp_path / "SITE.yaml").write_text("""\
setup: ['if [ -n "${SLURM_JOB_ID}" ]; then', '  export IN_JOB=yes LINE="it\'\'s \\ $((1 + 1))"', fi]
sbatch: {comment: of the site, nice: 5, time: 7}
environment: {SITE: "${IN_JOB} *", BOTH: site}
""")
    code, text = det("run", "train.py", "--on", "slurm", "hydra.sweep.dir=s")
    gives = "gives the jobs of Slurm 3 set-up lines, SITE, BOTH, comment=of the site, nice=5; time: as the project or"
    assert (code, f"{tmp_path}/SITE.yaml {gives}" in text) == (0, True), text
    assert "yes|it's \\ 2|${IN_JOB} *|site,project\n" in det("logs", "s")[1]
    (written,) = (tmp_path / "s" / ".submitit").glob("*/*.sh")
    options = [line for line in written.read_text().splitlines() if line.startswith("#SBATCH")]
    assert {"#SBATCH --comment='of the site'", "#SBATCH --nice=5", "#SBATCH --time=10"} <= set(options)


def _kill(slurm: Slurm, sweep: Path, number: int) -> None:
    """Kills the training of a job after it has begun."""
    wait_until((sweep / str(number) / "metrics.jsonl").exists, what=f"job {number} trains")
    (folder,) = (sweep / ".submitit").glob(f"*_{number}")
    for pid in wait_until(lambda: slurm.pids(folder.name), what=f"a process of job {folder.name}"):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_tasks_of_a_slurm_job_train_together_like_processes_of_this_machine(idle: Slurm, tmp_path: Path) -> None:
    """Uses two nodes and the resources that a job on GPUs requests."""
    launcher = ("nodes=2", "tasks_per_node=2", "cpus_per_task=28", "gpus_per_node=8")
    words = (EXPERIMENT, "batch_size_per_device=2", *(f"hydra.launcher.{setting}" for setting in launcher))
    done = script(
        "train_with_hydra.py", *MULTIRUN, *words, f"hydra.sweep.dir={tmp_path}/sweep", cwd=tmp_path, **idle.environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    plain = train(tmp_path / "plain", EXPERIMENT, "batch_size_per_device=2", "parallel.devices=4")
    assert result(tmp_path / "sweep" / "0") == result(plain)
