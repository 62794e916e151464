"""``det hydra continue``: reading the run folder, choosing the checkpoint, and running only unfinished jobs."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from determined.errors import ConfigError
from determined_workflows.hydra import resume, run_folder
from determined_workflows.hydra.composer import secrets

pytestmark = pytest.mark.budget(10, "composes and runs real Hydra projects")

SCRIPT = "scripts/train.py"


@pytest.fixture
def run_script(project):
    """Returns a function that runs the script as its user does. It returns the folder of the results."""

    def run(*words):
        subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, check=False)
        (folder,) = project.glob("outputs/*/*") if "-m" not in words else project.glob("multirun/*/*")
        return folder

    return run


def test_a_run_continues_from_its_newest_or_a_named_checkpoint(det, run_script):
    folder = run_script("fail_at=2", "first='a b'")
    code, out, err = det("continue", str(folder), "--new_overrides", "fail_at=-1 trainer.steps=4")
    assert code == 0
    assert "continues from step_2" in err
    assert "begins at 2 with lr 0.2" in out
    code, out, err = det("continue", str(folder), "--checkpoint_step", "7")
    assert code == 3
    assert f"{folder} has no checkpoint of step 7; it has those of the steps 1, 2" in err
    code, _, err = det("continue", str(folder), "--new_overrides", "first='a")
    assert (code, '--new_overrides "first=\'a": No closing quotation' in err) == (4, True)
    code, out, _ = det("continue", str(folder), "--checkpoint_step", "1", "--dry-run")
    assert code == 0
    assert "begins at" not in out
    assert "checkpoint_step=1" in out


def test_only_the_unfinished_jobs_of_a_multirun_continue_in_their_folders(det, run_script):
    folder = run_script("-m", "fail_at=-1,1", "trainer.lr=1,2")
    shutil.rmtree(folder / "3")  # as after an interruption before this job
    code, out, err = det("continue", str(folder), "--new_overrides", "fail_at=-1")
    assert code == 0
    assert [line for line in err.splitlines() if str(folder) in line] == [
        f"{folder}/2: continues from step_1",
        f"{folder}/3: begins from the start",
    ]
    assert out.count("begins at 1 with lr 1") == 1
    assert out.count("begins at 0 with lr 2") == 1
    assert all((folder / str(number) / "result.json").is_file() for number in range(4))
    code, _, err = det("continue", str(folder))
    assert code == 7
    assert f"every job of {folder} is finished" in err


def test_each_job_of_a_multirun_on_slurm_is_one_command_that_hydra_reads(det, run_script, tmp_path, monkeypatch):
    folder = run_script("-m", "fail_at=-1,1", "trainer.lr=1")
    program = tmp_path / "sbatch"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    code, out, _ = det("retry", str(folder), "--on", "slurm", "--dry-run", "--new_overrides", "fail_at=-1")
    assert code == 0
    (line,) = out.splitlines()
    # argparse, which Hydra uses, takes no flag between two overrides.
    assert f" {SCRIPT} --multirun " in line
    assert f"hydra/launcher=slurm_launcher hydra.sweep.dir={folder}" in line


def test_an_application_without_the_keys_for_resuming_is_refused(det, run_script, project):
    script = project / SCRIPT
    folder = run_script("fail_at=2")
    text = (
        script.read_text().replace("    checkpoint_step: int = -1\n", "").replace("cfg.checkpoint_step == -1", "True")
    )
    script.write_text(text)
    code, _, err = det("continue", str(folder))
    assert code == 4
    assert "its configuration has no keys resume_from_folder and checkpoint_step" in err


def test_use_slurm_without_slurm_is_refused_before_any_job_runs(det, run_script, monkeypatch):
    folder = run_script("fail_at=2")
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    code, out, err = det("continue", str(folder), "--use_slurm")
    assert code == 4
    assert out == ""
    assert "Slurm is not installed on this machine" in err


def test_a_missing_folder_and_a_folder_of_no_run_are_refused(det, project):
    code, _, err = det("continue", "nowhere")
    assert (code, "nowhere: no such folder" in err) == (3, True)
    code, _, err = det("continue", "configs")
    assert code == 4
    assert "is no folder of a Hydra run" in err


def make_run_folder(project, hydra="", config="", overrides=""):
    folder = project / "outputs" / "run"
    (folder / ".hydra").mkdir(parents=True)
    text = f"""\
hydra:
  job: {{name: train, config_name: config}}
  runtime:
    cwd: {project}
    config_sources: [{{path: {project}/configs, provider: main}}]
  overrides: {{hydra: [hydra.mode=RUN, hydra.job.chdir=true, hydra/launcher=det], task: []}}
{hydra}"""
    (folder / ".hydra" / "hydra.yaml").write_text(text)
    (folder / ".hydra" / "config.yaml").write_text(config or "{}")
    (folder / ".hydra" / "overrides.yaml").write_text(overrides or "[]")
    return folder


def test_the_configuration_may_name_the_folder_of_checkpoints(project):
    folder = make_run_folder(project, config="checkpointing: {folder: saved}")
    for name in ("saved/step_2", "saved/step_10", "saved/step_x", "checkpoints/step_99"):
        (folder / name).mkdir(parents=True)
    assert list(run_folder.checkpoints(folder)) == [2, 10]
    assert run_folder.find_checkpoint(folder, -1) == folder / "saved" / "step_10"


def test_hydra_overrides_of_a_single_run_are_left_out(project):
    run = run_folder.read(make_run_folder(project))
    assert run.hydra_overrides == ["hydra.job.chdir=true"]
    assert list(run.flags("config")) == []
    assert list(run.flags("other")) == ["--config-name", "config"]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        (".hydra/hydra.yaml", "", "it has no hydra.runtime, hydra.overrides, hydra.job"),
        (".hydra/hydra.yaml", "- hydra", "it has no hydra.runtime"),
        (".hydra/hydra.yaml", "hydra: {runtime: {}, overrides: {}, job: {}}", "it has no hydra.runtime.cwd"),
        (
            ".hydra/hydra.yaml",
            "hydra: {runtime: {cwd: a, config_sources: [b]}, overrides: {}, job: {}}",
            "config_sources is no list of sources",
        ),
        (
            ".hydra/hydra.yaml",
            "hydra: {runtime: {cwd: a}, overrides: {hydra: [1]}, job: {}}",
            "the overrides are no list of texts",
        ),
        (".hydra/overrides.yaml", "3", "the overrides are no list of texts"),
        ("multirun.yaml", "", "it has no hydra.runtime"),
        ("multirun.yaml", "hydra: {runtime: {cwd: a}, overrides: {task: lr=1}, job: {}}", "are no list of texts"),
    ],
)
def test_a_damaged_file_of_hydra_is_named(project, det, name, text, problem):
    folder = make_run_folder(project)
    (folder / name).write_text(text)
    with pytest.raises(ConfigError, match=problem) as raised:
        run_folder.read(folder)
    assert str(raised.value).startswith(f"{folder / name} is damaged")
    assert det("continue", str(folder))[0] == ConfigError.exit_code


def test_a_composed_list_has_the_default_folder_of_checkpoints(project):
    folder = make_run_folder(project, config="[1]")
    (folder / "checkpoints" / "step_3").mkdir(parents=True)
    assert list(run_folder.checkpoints(folder)) == [3]


def test_find_script_finds_the_script_by_its_configuration(project):
    run = run_folder.read(make_run_folder(project))
    (project / "scripts" / ".#train.py").symlink_to("somebody@host.1234")  # Emacs locks a file so
    (project / "gone.py").symlink_to("nowhere.py")
    (project / "scripts" / "check.py").write_text((project / SCRIPT).read_text())
    (project / "other.py").write_text("import hydra\n@hydra.main(config_path='elsewhere')\ndef main(cfg): ...\n")
    assert run_folder.find_script(run) == project / SCRIPT


def test_find_script_names_several_matching_scripts(project):
    run = run_folder.read(make_run_folder(project))
    for name in ("a.py", "b.py"):
        (project / "scripts" / name).write_text((project / SCRIPT).read_text())
    (project / SCRIPT).unlink()
    with pytest.raises(
        run_folder.NotFound, match=r"2 scripts below .*: scripts/a.py, scripts/b.py; name it with --script"
    ):
        run_folder.find_script(run)


def test_checkpoints_of_nested_job_folders_with_one_name_stay_apart(tmp_path):
    run = run_folder.RunFolder(tmp_path / "run", {}, [], is_multirun=True)
    jobs = []
    for number in range(2):
        source = run.path / f"lr={number}" / "seed=1"
        (source / ".hydra").mkdir(parents=True)
        (source / "step_1").write_text(str(number))
        job = resume.Job([], [], number, f"lr={number}/seed=1")
        jobs.append(resume.Continuation(None, [], source, source / "step_1", job))
    kept = resume.copy_checkpoints(resume.ResumePlan(jobs, run, [], None), tmp_path)
    assert [path.read_text() for path in sorted(kept.glob("*/*/step_1"))] == ["0", "1"]


def test_a_secret_that_contains_another_is_masked_whole():
    assert secrets.without("a" * 20, {"a" * length for length in range(4, 21)}) == secrets.MASK


def test_a_secret_inside_a_mapping_of_an_override_is_masked():
    shown = secrets.without_in_override("+logger={api_key: 'a, b', more: {hf_token: x}, name: y}")
    assert shown == "+logger={api_key: ********, more: {hf_token: ********}, name: y}"


def test_a_long_value_of_an_override_is_read_once():
    began = time.process_time()
    assert secrets.without_in_override("x=" + "a" * 200_000).endswith("a")
    assert time.process_time() - began < 2
