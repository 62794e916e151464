"""``--outputs`` of the downloads: what scripts of trials wrote, with its links, and never over a link."""

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from .conftest import Det, FakeMaster, Request

UUIDS = ("3f2b8c1e-0000-4000-8000-000000000001", "3f2b8c1e-0000-4000-8000-000000000002")
OUTPUTS = "GET /detent/experiments/7/outputs"
METADATA = {"links": {"runs/latest": "one", "runs/out": "../../secret"}, "executables": ["runs/one/a.sh"]}


def archive(**more: bytes) -> bytes:
    buffer = io.BytesIO()
    files = {"metadata.json": json.dumps(METADATA).encode(), "runs/one/a.sh": b"echo", **more}
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def entry(number: int) -> dict[str, Any]:
    return {"trialId": number, "uuid": UUIDS[number - 1], "files": 1, "size": 9, "folders": ["runs"], "time": None}


@pytest.fixture
def served(fake: FakeMaster, home: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMaster:
    def page(request: Request) -> Any:
        if request.query.get("trialId"):
            return {"outputs": [entry(int(request.query["trialId"][0]))], "next": None}
        last = "before" in request.query
        return {"outputs": [entry(1 if last else 2)], "next": None if last else "5-x"}

    monkeypatch.chdir(home)
    fake.answers[OUTPUTS] = page
    fake.answers["GET /api/v1/trials/1"] = {"trial": {"id": 1, "experimentId": 7, "state": "STATE_COMPLETED"}}
    fake.answers |= {f"GET /checkpoints/{uuid}": archive() for uuid in UUIDS}
    return fake


def test_the_outputs_of_all_trials_are_downloaded_page_after_page(served: FakeMaster, det: Det, home: Path) -> None:
    outcome = det("e", "download", "7", "--outputs")
    assert (outcome.code, outcome.out) == (0, "outputs/trial-2\noutputs/trial-1\n")
    runs = home / "outputs" / "trial-1" / "runs"
    assert os.readlink(runs / "latest") == "one"
    assert os.access(runs / "latest" / "a.sh", os.X_OK)
    assert sorted(path.name for path in runs.iterdir()) == ["latest", "one"]
    assert [path.name for path in (home / "outputs" / "trial-1").iterdir()] == ["runs"]
    assert det("e", "download", "7", "--outputs", "-o", "there").out == "there/trial-2\nthere/trial-1\n"


def test_a_second_download_replaces_files_and_keeps_those_of_the_user(served: FakeMaster, det: Det, home: Path) -> None:
    (home / "metadata.json").write_text("mine")
    for _ in range(2):
        assert det("t", "download", "1", "--outputs", "-o", ".").code == 0
    assert (home / "metadata.json").read_text() == "mine"
    assert (home / "runs" / "one" / "a.sh").read_bytes() == b"echo"
    assert not list(home.glob(".outputs-*"))


def test_no_output_is_written_through_a_link(served: FakeMaster, det: Det, home: Path) -> None:
    (home / "elsewhere").mkdir()
    (home / "got").mkdir()
    (home / "got" / "runs").symlink_to(home / "elsewhere")
    outcome = det("t", "download", "1", "--outputs", "-o", "got")
    assert outcome.code == 1
    assert "link" in outcome.err or "in the way" in outcome.err
    assert list((home / "elsewhere").iterdir()) == []


def test_something_in_the_way_of_an_output_is_named(served: FakeMaster, det: Det, home: Path) -> None:
    (home / "got" / "runs" / "one" / "a.sh").mkdir(parents=True)
    outcome = det("t", "download", "1", "--outputs", "-o", "got")
    assert outcome.code == 1
    assert "got/runs/one/a.sh is in the way of an output; move it" in outcome.err


def test_an_experiment_without_outputs_and_excluding_flags_are_errors(served: FakeMaster, det: Det) -> None:
    served.answers[OUTPUTS] = {"outputs": [], "next": None}
    for words, text in [
        (("e", "download", "7"), "experiment 7 has no outputs: its configuration names none"),
        (("t", "download", "1"), "trial 1 has no outputs: its configuration names none"),
    ]:
        outcome = det(*words, "--outputs")
        assert (outcome.code, outcome.out) == (3, "")
        assert text in outcome.err
    assert "exclude" in det("e", "download", "7", "--outputs", "--latest").err
    assert "exclude" in det("t", "download", "1", "--outputs", "--best").err


def test_an_archive_that_is_no_outputs_is_named(served: FakeMaster, det: Det, home: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz"):
        pass
    served.answers[f"GET /checkpoints/{UUIDS[0]}"] = buffer.getvalue()
    outcome = det("t", "download", "1", "--outputs", "-o", "got")
    assert outcome.code == 1
    assert "metadata.json is missing" in outcome.err
    assert list((home / "got").iterdir()) == []
