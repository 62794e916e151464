"""Packed data: once per content, and paths that are refused."""

import os
import tarfile
import time
from pathlib import Path

import pytest
from tests.support.recorded_jobs import project_in

from determined.errors import ConfigError
from determined_workflows.batch import data_archive
from determined_workflows.batch.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = project_in(tmp_path)
    for name in ("data/a.txt", "sets/one/b.txt", "sets/two/c.txt"):
        path = project.scratch_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return project


def test_the_archive_has_what_was_typed_and_is_packed_once(project: Project) -> None:
    said: list[str] = []
    first = data_archive.pack(project, ("data", "sets/one"), said.append)
    with tarfile.open(first.archive) as archive:
        assert set(archive.getnames()) == {"data", "data/a.txt", "sets/one", "sets/one/b.txt"}
    os.utime(project.scratch_dir / "data" / "a.txt", (1, 1))
    assert data_archive.pack(project, ("data", "sets/one"), said.append) == first
    size = Path(first.archive).stat().st_size / 1e6
    assert said == [
        "Packing data, sets/one",
        f"packed data kept for later jobs: 1, {size:.1f} MB in {project.archives}",
    ]


def test_packing_removes_the_drafts_of_killed_submissions_and_no_others(project: Project) -> None:
    project.archives.mkdir(parents=True)
    names = [f".{letter * 32}.tar.new-{number}" for letter, number in (("a", 1), ("b", 2))]
    for name in names:
        (project.archives / name).write_text("half")
    old = time.time() - data_archive.MAX_DRAFT_SECONDS - 60
    os.utime(project.archives / names[0], (old, old))
    data_archive.pack(project, ("data",), print)
    assert [path.name for path in project.archives.glob(".*.tar.new-*")] == names[1:]


def test_removed_archives_are_packed_again(project: Project) -> None:
    first = data_archive.pack(project, ("data",), print)
    Path(first.archive).unlink()
    assert data_archive.pack(project, ("data",), print) == first
    assert Path(first.archive).is_file()


def test_changed_content_is_packed_anew_also_with_its_old_time(project: Project) -> None:
    path = project.scratch_dir / "data" / "a.txt"
    first = data_archive.pack(project, ("data",), print)
    path.write_text("another text")
    assert data_archive.pack(project, ("data",), print).digest != first.digest
    path.write_text("data/a.txt")
    assert data_archive.pack(project, ("data",), print) == first


def test_a_link_to_data_is_packed_as_what_it_names(project: Project, tmp_path: Path) -> None:
    (project.scratch_dir / "link").symlink_to(project.scratch_dir / "sets")
    found = data_archive.pack(project, ("link",), print)
    with tarfile.open(found.archive) as archive:
        assert "link/one/b.txt" in archive.getnames()


@pytest.mark.parametrize(("typed", "sentence"), [("absent", "there is no"), ("../x", "are below"), (".", "are below")])
def test_a_path_that_is_not_below_the_scratch_folder_is_refused(project: Project, typed: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"--data {typed}: .*{sentence}"):
        data_archive.check(project, [typed])


def test_absolute_and_nested_paths_are_relative_and_packed_once(project: Project) -> None:
    typed = [str(project.scratch_dir / "data"), "sets", "sets/one", "data/"]
    assert data_archive.check(project, typed) == ("data", "sets")


def test_a_disk_without_room_leaves_no_archive(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "add", full)
    with pytest.raises(ConfigError, match="the disk is full; nothing was submitted"):
        data_archive.pack(project, ("data",), print)
    assert not list(project.archives.glob("*"))
