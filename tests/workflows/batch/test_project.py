"""The folders of a project, and the files that ``det batch init`` writes."""

import subprocess
from pathlib import Path

import pytest

from determined.errors import ConfigError, Conflict
from determined_cli.main import main
from determined_workflows.batch import command_file, example, project


def test_the_root_is_above_hpc_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hpc_files").mkdir()
    for folder in (tmp_path, tmp_path / "hpc_files"):
        monkeypatch.chdir(folder)
        assert project.root(None) == tmp_path
    assert project.root(str(tmp_path / "hpc_files" / "..")) == tmp_path


def test_the_scratch_disk_is_that_of_the_variable_else_of_the_site(tmp_path: Path) -> None:
    found = project.find(str(tmp_path), {"SCRATCH": "/a"}, "/b")
    assert found.outputs == Path("/a", tmp_path.name, "hpc_outputs")
    assert project.find(str(tmp_path), {}, "/b").scratch == Path("/b")


@pytest.mark.parametrize(
    ("environ", "sentence"), [({}, "SCRATCH is not set"), ({"SCRATCH": "here"}, '"here" is not an absolute path')]
)
def test_a_missing_scratch_disk_is_refused(environ: dict[str, str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        project.find(str(tmp_path), environ, None)


def test_an_output_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"outputs cannot be written: .*file is not a folder"):
        project.check_writable(tmp_path / "file" / "outputs")
    project.check_writable(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()


def test_the_example_is_valid_and_is_not_overwritten(tmp_path: Path) -> None:
    folder = example.init(tmp_path)
    assert command_file.read(folder / command_file.FILE_NAME) == "python main.py --train --batch_size 6"
    subprocess.run(["bash", "-n", str(folder / example.SUBMITTER)], check=True)
    (folder / example.SUBMITTER).unlink()
    with pytest.raises(Conflict, match="exists already; nothing was written"):
        example.init(tmp_path)
    assert not (folder / example.SUBMITTER).exists()


def test_the_root_is_found_from_a_folder_below_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hpc_files").mkdir()
    below = tmp_path / "src" / "models"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert project.root(None) == tmp_path


def test_a_command_file_is_also_looked_for_in_hpc_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = tmp_path / "hpc_files"
    files.mkdir()
    (files / "mine.txt").touch()
    monkeypatch.chdir(tmp_path)
    assert command_file.find("mine.txt", files) == files / "mine.txt"
    assert command_file.find(None, files) == files / "experiment_configurations.txt"
    assert command_file.find("absent.txt", files) == Path("absent.txt")


def test_init_writes_into_the_working_folder_also_below_another_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "other"
    for folder in (tmp_path / "hpc_files", below):
        folder.mkdir()
    monkeypatch.chdir(below)
    assert main(["batch", "init"]) == 0
    assert (below / "hpc_files" / "job_submitter.sh").exists()
