"""The page about Slurm job scripts, followed as written on a real Slurm."""

import shutil
from pathlib import Path

import pytest
from tests.support.batch_project import BatchProject
from tests.support.document_runner import follow

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("slurm"), pytest.mark.budget(60, "follows a whole page")]
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "slurm-job-scripts.md"


def test_the_page_about_slurm_job_scripts_works_as_written(project: BatchProject) -> None:
    shutil.rmtree(project.root / "hpc_files")
    (project.root / "main.py").unlink()
    assert follow(PAGE, project.root, project.environment)
