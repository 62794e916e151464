"""``scripts/slurm.sh``: a repeated start, the end of all jobs, and folders that it must not remove."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.slurm import SCRIPT, Slurm, running_slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.xdist_group("slurm"),
    pytest.mark.skipif(os.geteuid() != 0, reason="starting Slurm needs root"),
]


def script(verb: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", SCRIPT, verb, folder], capture_output=True, text=True, check=False)


def test_a_second_start_keeps_the_daemons_and_the_end_leaves_no_process(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("again")
    with running_slurm(folder) as slurm:
        daemons = _pids(folder)
        assert script("up", folder).stdout == f"{folder}/slurm.conf\n"
        assert _pids(folder) == daemons
        task = _long_task(slurm)
    assert not folder.exists()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in [*daemons, task]), what="all have ended")


def test_slurm_down_does_not_remove_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    refused = script("down", tmp_path)
    assert (refused.returncode, "is not a folder that slurm.sh made" in refused.stderr) == (1, True)
    assert (tmp_path / "thesis.tex").exists()
    assert script("down", tmp_path / "absent").returncode == 0


def test_slurm_up_refuses_a_folder_whose_path_is_too_long_for_sockets(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20)
    refused = script("up", folder)
    assert (refused.returncode, "has more than 70 characters" in refused.stderr) == (1, True)
    assert not folder.exists()


def _pids(folder: Path) -> list[int]:
    return sorted(int(path.read_text()) for path in (folder / "run").glob("*.pid"))


def _long_task(slurm: Slurm) -> int:
    """Returns the pid of a task that would run for an hour."""
    job = slurm.command("sbatch", "--parsable", "--output=/dev/null", "--wrap", "srun sleep 3600").strip()
    # Slurm also lists its own process while the task starts.
    (pid,) = wait_until(lambda: [pid for pid in slurm.pids(job) if _name(pid) == "sleep"], what="the task")
    return pid


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
