"""Jobs that slurmctld forgets because it is killed, and whose ids it gives to others."""

import json
from collections.abc import Iterator

import pytest
from tests.support.batch_project import BatchProject
from tests.support.slurm import Slurm, running_slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm that is killed"),
    pytest.mark.budget(90, "starts a Slurm of its own and kills its controller"),
]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yields a Slurm whose controller the tests kill."""
    with running_slurm(tmp_path_factory.mktemp("s")) as running:
        yield running


def lose(project: BatchProject, job: str) -> None:
    """Kills slurmctld before it has stored a job, and starts it again.

    It stores its jobs some seconds after a change; a folder in the place of its file keeps it from that.
    """
    project.slurm.kill_controller()
    (project.slurm.folder / "state" / "job_state.new").rmdir()
    project.slurm.start_controller()
    assert job not in project.slurm.command("squeue", "--noheader", "--states=all", "--format=%i").split()
    # Its end would otherwise be taken for that of the next job with its id, by Slurm itself.
    sockets = project.slurm.folder / "spool"
    wait_until(lambda: not list(sockets.glob(f"*/*_{job}.*")), what="the nodes have ended the lost job")


@pytest.mark.parametrize("is_running", [False, pytest.param(True, marks=pytest.mark.long)], ids=["waiting", "running"])
def test_a_job_lost_by_slurmctld_is_lost_and_the_next_owner_of_its_id_is_left_alone(
    project: BatchProject, is_running: bool
) -> None:
    (project.slurm.folder / "state" / "job_state.new").mkdir()
    project.command("echo ours; sleep 60")
    lost = project.submit(*(() if is_running else ("--", "--hold")))
    if is_running:
        wait_until(lambda: "\nours\n" in project.output(lost), what="the program runs")
    (record,) = (path.parent.name for path in (project.outputs / ".batch").glob("*/record.json"))
    lose(project, lost)
    foreign = project.slurm.command("sbatch", "--parsable", "--wrap", "sleep 60").strip()
    assert foreign == lost
    state = project.state(lost)
    sentence = "it started, and ended without a record" if is_running else "it never started"
    assert (state["state"], sentence in state["detail"]) == ("LOST", True), state
    assert project.det("status").stdout.split()[:3] == [lost, "LOST", record]
    refused = project.det("stop", lost)
    assert refused.returncode == 7, refused.stderr
    assert f"nothing of {record} waits or runs" in refused.stderr
    queue = ["squeue", "--noheader", f"--jobs={foreign}", "--format=%T"]
    assert project.slurm.command(*queue).strip() in ("PENDING", "RUNNING")
    shown = project.det("logs", lost)
    assert shown.stdout.startswith("COMMANDS GIVEN: ") if is_running else shown.returncode != 0


@pytest.mark.long
def test_the_output_of_a_lost_job_is_not_that_of_a_later_job_with_its_id(project: BatchProject) -> None:
    (project.slurm.folder / "state" / "job_state.new").mkdir()
    project.command("echo ours; sleep 60")
    lost = project.submit()
    wait_until(lambda: "\nours\n" in project.output(lost), what="the program runs")
    (record,) = (path.parent.name for path in (project.outputs / ".batch").glob("*/record.json"))
    lose(project, lost)
    project.command("echo theirs")
    later = project.run()
    assert later == lost
    assert "theirs" in project.det("logs", later).stdout
    for words in (("logs", record), ("logs", "-f", record)):
        shown = project.det(*words)
        assert (shown.returncode != 0, "theirs" in shown.stdout) == (True, False), shown
    states = json.loads(project.det("status", "--json").stdout)
    assert [each["jobs"][0]["state"] for each in states] == ["LOST", "COMPLETED"]
