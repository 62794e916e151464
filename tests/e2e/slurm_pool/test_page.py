"""The page about a pool on Slurm, followed as written on a real Slurm."""

from pathlib import Path

import pytest
from tests.e2e.test_up_slurm import det, own_address
from tests.support.document_reader import reader_environment
from tests.support.document_runner import follow
from tests.support.slurm import Slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.long,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(180, "follows a whole page, with five pilots"),
]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "slurm-pool.md"


def test_the_page_about_a_pool_on_slurm_works_as_written(slurm: Slurm, tmp_path: Path):
    environ = reader_environment(tmp_path) | slurm.environment | {"SCRATCH": str(tmp_path / "scratch")}
    del environ["PYTHONPATH"]  # `det hydra` warns of modules that do not travel with the project
    # Other masters of this machine may have the usual port.
    host = {"--host login1": f"--host {own_address()} --port 0"}

    def prepare(command: str) -> str:
        if command == "det experiment pause 1":
            wait_until(lambda: "from step 0" in det(environ, "trial", "logs", "1").stdout, what="the trial runs")
        if command == "det experiment activate 1":
            wait_until(lambda: "saved step" in det(environ, "trial", "logs", "1").stdout, what="the trial has saved")
        for written, real in host.items():
            command = command.replace(written, real)
        return command

    try:
        follow(PAGE, tmp_path, environ, prepare=prepare)
    finally:
        det(environ, "down", "--now")
