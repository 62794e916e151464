"""Submission against programs in place of Slurm's that record their arguments."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from tests.support.recorded_jobs import project_in

from determined import environments
from determined.errors import ConfigError
from determined_workflows.batch import environment_job, job_record, settings, slurm_client, submission
from determined_workflows.batch.environment_job import Build
from determined_workflows.batch.project import Project
from determined_workflows.batch.submission import PreparedJob, Request
from determined_workflows.site_profile import SiteProfile

SCONTROL = """\
#!/bin/bash
case "$*" in
*partition*) echo PartitionName=compute Default=YES MaxTime=UNLIMITED State=UP ;;
*) printf 'KillWait = 7 sec\\nMaxArraySize = 1001\\n' ;;
esac
"""
SBATCH = '#!/bin/bash\nprintf "%s\\n" "$*" >> "$(dirname "$0")/calls"\necho 31\n'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("scontrol", SCONTROL), ("sbatch", SBATCH)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def project(tmp_path: Path, programs: Path) -> Project:
    found = project_in(tmp_path)
    found.scratch_dir.rmdir()
    return found


def prepare(
    project: Project, command: str = "python main.py", count: int | None = None, **flags: object
) -> PreparedJob:
    found, _ = settings.read(flags)
    sweep = "ab12" if count else None
    asked = Request(found, project, command, ["det"], (), SiteProfile(), sweep_id=sweep, count=count, max_parallel=None)
    return submission.prepare(asked, {}, lambda _line: None)


def test_a_sweep_of_200_runs_is_one_call_of_sbatch(project: Project, programs: Path) -> None:
    prepared = prepare(project, "wandb agent --count 1 a/b/SWEEP_ID", kind="sweep", count=200)
    record, job = submission.submit(prepared)
    assert job == "31"
    (call,) = (programs / "calls").read_text().splitlines()
    assert "--array=1-200" in call
    assert job_record.read(record.folder).jobs[-1].elements == tuple(range(1, 201))


def test_a_sweep_above_the_largest_array_is_refused(project: Project) -> None:
    with pytest.raises(ConfigError, match="--count 2000: an array of this Slurm has at most 1000 elements"):
        prepare(project, "wandb agent --count 1 a/b/SWEEP_ID", kind="sweep", count=2000)


def test_the_time_between_term_and_kill_is_that_of_slurm(project: Project) -> None:
    record, _ = submission.submit(prepare(project))
    assert json.loads((record.folder / "task" / "job.json").read_text())["kill_wait"] == 7


def test_preparing_writes_nothing(project: Project) -> None:
    prepare(project)
    assert not project.scratch_dir.exists()


def test_a_submission_that_slurm_refuses_leaves_nothing_behind(project: Project, programs: Path) -> None:
    (programs / "sbatch").write_text("#!/bin/bash\necho 'sbatch: error: no such qos' >&2\nexit 1\n")
    with pytest.raises(slurm_client.SlurmError, match="sbatch: no such qos"):
        submission.submit(prepare(project))
    assert not project.scratch_dir.exists()


def test_a_submission_without_an_answer_keeps_its_record(
    project: Project, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = prepare(project)
    (programs / "sbatch").write_text("#!/bin/bash\nexec sleep 60\n")
    monkeypatch.setattr(slurm_client, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(slurm_client.NoAnswer, match="the job may be in the queue all the same"):
        submission.submit(prepared)
    (record,) = job_record.all_of(project)
    assert [job.id for job in record.jobs] == [""]


def test_a_folder_that_cannot_be_written_is_named(project: Project) -> None:
    prepared = prepare(project)
    project.scratch_dir.touch()
    with pytest.raises(ConfigError, match=r"scratch/project.*nothing was submitted"):
        submission.submit(prepared)


@pytest.mark.parametrize(
    ("present", "main"), [(("requirements.txt",), "requirements.txt"), (("Pipfile", "requirements.txt"), "Pipfile")]
)
def test_the_pipfile_wins(project: Project, present: tuple[str, ...], main: str) -> None:
    for name in present:
        (project.root / name).write_text("")
    found = environment_job.find(project.root, print)
    assert isinstance(found, Build)
    assert found.inputs.main == main


def test_an_environment_of_the_users_own_is_used_as_it_is(project: Project) -> None:
    said: list[str] = []
    (project.root / "requirements.txt").write_text("numpy\n")
    assert environment_job.find(project_without_list(project), said.append) is None
    (project.root / "virtual_env").mkdir()
    assert environment_job.find(project.root, said.append) == project.root / "virtual_env"
    assert said == [f"{project.root / 'virtual_env'} is your own environment; it is used as it is"]


def project_without_list(project: Project) -> Path:
    folder = project.root.parent / "plain"
    folder.mkdir()
    return folder


def build_of(project: Project) -> Build:
    (project.root / "requirements.txt").write_text("")
    found = environment_job.find(project.root, print)
    assert isinstance(found, Build)
    return found


def test_an_environment_that_another_submission_has_built_meanwhile_is_not_built_again(project: Project) -> None:
    build = build_of(project)
    (build.folder / "venv").mkdir(parents=True)
    result = build.folder / environments.RESULT
    result.write_text(json.dumps(asdict(environments.Result(True))))
    assert environment_job.build_by_job(build, (), SiteProfile(), None, print) == build.folder / "venv"
    assert result.exists()


def test_an_environment_whose_folder_was_removed_is_built_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = build_of(project)
    build.folder.mkdir(parents=True)
    (build.folder / environments.RESULT).write_text(json.dumps(asdict(environments.Result(True))))
    seen = []
    monkeypatch.setattr(environments, "build", lambda *_, **__: seen.append(environments.read_result(build.folder)))
    assert isinstance(environment_job.find(project.root, print), Build)
    environment_job.build_here(build, print)
    assert seen == [None]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("requirements.txt", "numpy\n-e .\n", "requirements.txt:2: . is a path"),
        ("requirements.txt", "./wheels/own-1-py3-none-any.whl\n", "requirements.txt:1: ./wheels/own"),
        ("Pipfile", '[packages]\nown = {path = ".", editable = true}\n', "Pipfile:2: . is a path"),
    ],
)
def test_a_package_of_the_project_itself_is_refused_with_what_to_do_here(
    project: Project, name: str, text: str, place: str
) -> None:
    (project.root / name).write_text(text)
    with pytest.raises(ConfigError) as refused:
        environment_job.find(project.root, print)
    assert str(refused.value).startswith(place)
    assert "PYTHONPATH below `environment:` of SITE.yaml" in str(refused.value)
    assert "startup-hook.sh" not in str(refused.value)


def test_an_included_list_that_is_missing_is_named_with_the_folder_of_the_project(project: Project) -> None:
    (project.root / "requirements.txt").write_text("numpy\n-r base.txt\n")
    with pytest.raises(ConfigError, match=f"^requirements.txt:2: base.txt is not in {project.root}$"):
        environment_job.find(project.root, print)


def test_the_environment_of_a_project_that_was_copied_is_not_the_copys_own(tmp_path: Path) -> None:
    environment = tmp_path / "a" / environment_job.FOLDER / "key" / "venv"
    environment.mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / environment_job.LINK).symlink_to(environment)
        assert not environment_job.is_own(tmp_path / name / environment_job.LINK)
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    assert environment_job.is_own(tmp_path / "link")
