"""What ``det batch run --on local`` and ``--on det`` refuse: one sentence, and nothing is left."""

import io
from pathlib import Path

import pytest
from tests.support.recorded_jobs import project_in

from determined_cli.main import main
from determined_workflows.batch.project import Project

TORCHRUN = ("-j", "distributed", "-W", "torchrun")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    found = project_in(tmp_path)
    found.scratch_dir.rmdir()
    (found.files / "experiment_configurations.txt").write_text("python main.py\n")
    monkeypatch.setenv("SCRATCH", str(found.scratch))
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    monkeypatch.setenv("DET_USER_TOKEN", "any")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(found.files)
    return found


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--on", "local", "--", "--qos=high"), "options behind `--` (--qos=high) are for sbatch"),
        (("--on", "det", "--", "--qos=high"), "options behind `--` (--qos=high) are for sbatch"),
        (("--on", "local", *TORCHRUN, "-N", "2"), "--on local has this machine alone"),
        (("--on", "local", "--data", "absent"), "--data absent: there is no"),
        (("--on", "local", "-w", "absent"), "--workdir absent: there is no folder"),
        (("--on", "local", "-s", "absent.sif"), "there is no image"),
        (("--on", "local", "-j", "sweep", "--sweep-id", "a"), "the command of a sweep is a line such as"),
        (("--on", "local", "--searcher", "grid"), "--searcher has an effect with --on det only"),
        (("--on", "det", "-s", "a.sif"), "environment.image=NAME"),
        (
            (
                "--on",
                "det",
            ),
            "the master at http://127.0.0.1:1 does not answer",
        ),
        (("--on", "det", "-j", "sweep", "--searcher", "grid", "--sweep-id", "a"), "leave --sweep-id out"),
        (
            (
                "--on",
                "moon",
            ),
            "has no target",
        ),
    ],
)
def test_a_refusal_is_one_sentence_and_leaves_nothing(
    project: Project, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = words if "--" in words else (*words, "-y")
    assert main(["batch", "submit", *own]) != 0
    messages = capsys.readouterr().err
    assert sentence in messages
    assert "Traceback" not in messages
    assert not project.scratch_dir.exists()


def test_the_end_of_input_means_no(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "submit", "--on", "local"]) == 1
    assert "nothing was started" in capsys.readouterr().err
    assert not project.scratch_dir.exists()


def test_scratch_has_to_be_set(
    project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("SCRATCH")
    assert main(["batch", "submit", "--on", "local", "-y"]) == 4
    assert "SCRATCH is not set" in capsys.readouterr().err


def test_options_without_effect_are_named_before_the_job_runs(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    (project.files / "experiment_configurations.txt").write_text("echo ran\n")
    assert main(["batch", "submit", "--on", "local", "-y", "-a", "me", "-c", "4", "--max-parallel", "2"]) == 0
    captured = capfd.readouterr()
    assert "ran" in captured.out
    warned = [line for line in captured.err.splitlines() if line.startswith("warning: ")]
    assert [line.split()[1] for line in warned] == ["--max-parallel", "--account", "--cpus"]
