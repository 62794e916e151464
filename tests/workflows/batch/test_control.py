"""``retry`` and ``stop`` against programs in place of Slurm's that record their arguments."""

import json
import os
from pathlib import Path

import pytest
from tests.support.recorded_jobs import end, project_in, record_in

from determined.errors import ConfigError, Conflict
from determined_workflows.batch import control, job_record, slurm_client

RECORDING = '#!/bin/bash\nprintf "%s\\n" "$(basename "$0") $*" >> "$(dirname "$0")/calls"\n'


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Puts programs with the names of Slurm's into PATH; ``squeue`` prints the file ``queue``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "queue").touch()
    for name, more in (("sbatch", "echo 31"), ("scancel", ""), ("squeue", f"cat {folder}/queue"), ("scontrol", "")):
        (folder / name).write_text(RECORDING + more + "\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def calls(programs: Path, name: str) -> list[str]:
    return [line for line in (programs / "calls").read_text().splitlines() if line.startswith(f"{name} ")]


def test_retry_submits_the_failed_elements_with_the_same_options(programs: Path, tmp_path: Path) -> None:
    record = record_in(project_in(tmp_path), elements=(1, 2, 3, 4))
    for element, code in ((1, 0), (2, 1), (3, 1), (4, 0)):
        end(record, f"25_{element}", code=code)
    again = control.prepare_retry(record)
    assert again.elements == (2, 3)
    assert not calls(programs, "sbatch")
    assert control.retry(again) == "31"
    (call,) = calls(programs, "sbatch")
    assert f"--comment=detent:{record.nonce}" in call
    assert "--array=2-3" in call
    assert call.endswith(str(record.script))
    assert job_record.read(record.folder).jobs[-1].elements == (2, 3)


def test_retry_refuses_a_submission_in_which_nothing_failed(programs: Path, tmp_path: Path) -> None:
    record = record_in(project_in(tmp_path))
    end(record, "25")
    with pytest.raises(Conflict, match="has failed: COMPLETED"):
        control.prepare_retry(record)
    assert not [line for line in (programs / "calls").read_text().splitlines() if line.startswith("sbatch")]


@pytest.mark.parametrize("gone", ["archive", "environment"])
def test_retry_names_what_was_removed_since_the_submission(programs: Path, tmp_path: Path, gone: str) -> None:
    record = record_in(project_in(tmp_path))
    end(record, "25", code=3)
    paths = {name: tmp_path / name for name in ("archive", "environment")}
    for path in paths.values():
        path.touch()
    plan = {"data": {"archive": str(paths["archive"])}, "environment": str(paths["environment"])}
    (record.folder / job_record.PLAN).write_text(json.dumps(plan))
    assert control.prepare_retry(record).elements == ()
    paths[gone].unlink()
    with pytest.raises(ConfigError, match=f"{gone} is gone; submit again: det"):
        control.prepare_retry(record)


def test_stop_cancels_by_nonce_and_name(programs: Path, tmp_path: Path) -> None:
    record = record_in(project_in(tmp_path))
    lines = [f"25|25|N/A|RUNNING|None|node1|detent:{record.nonce}|x", "26|26|N/A|RUNNING|None|node1|detent:other|x"]
    (programs / "queue").write_text("\n".join(lines) + "\n")
    assert control.stop(record) == ["25"]
    assert calls(programs, "scancel") == ["scancel --jobname=standard-project-x 25"]
    (programs / "queue").write_text(lines[1] + "\n")
    with pytest.raises(Conflict, match="nothing of"):
        control.stop(record)


def test_a_client_that_hangs_is_ended_after_its_timeout(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "squeue").write_text("#!/bin/bash\nexec sleep 60\n")
    monkeypatch.setattr(slurm_client, "TIMEOUT_SECONDS", 0.2)
    with pytest.raises(slurm_client.NoAnswer, match=r"Slurm does not answer: squeue took longer than 0.2 s"):
        slurm_client.queue()


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        (
            "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job submission failed: Invalid partition",
            slurm_client.SlurmError,
            "sbatch: invalid partition specified: x; Batch job submission failed: Invalid partition",
        ),
        (
            "sbatch: error: Unable to contact slurm controller (connect failure)",
            slurm_client.NoAnswer,
            "Slurm does not answer: Unable to contact slurm controller",
        ),
    ],
)
def test_the_reason_of_slurm_is_one_sentence(
    programs: Path, message: str, kind: type[slurm_client.SlurmError], text: str
) -> None:
    (programs / "sbatch").write_text(f"#!/bin/bash\ncat >&2 <<'END'\n{message}\nEND\nexit 1\n")
    with pytest.raises(kind) as refused:
        slurm_client.submit(["x"])
    assert str(refused.value).startswith(text)


def test_a_machine_without_sbatch_is_told_of_the_other_targets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"no sbatch on this machine.*--on local"):
        slurm_client.require()


def test_one_element_is_stopped_and_retried_alone(programs: Path, tmp_path: Path) -> None:
    record = record_in(project_in(tmp_path), elements=(1, 2, 3))
    for element in (1, 3):
        end(record, f"25_{element}", code=1)
    waiting = f"25_2|25|2|RUNNING|None|node1|detent:{record.nonce}|x"
    (programs / "queue").write_text(f"{waiting}\n")
    assert control.stop(record, 2) == ["25_2"]
    (call,) = calls(programs, "scancel")
    assert call.endswith(" 25_2")
    with pytest.raises(Conflict):
        control.stop(record, 1)
    assert control.prepare_retry(record, 3).elements == (3,)
