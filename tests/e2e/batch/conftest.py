"""Fixture: a project of ammunk/hpc on a real Slurm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.batch_project import BatchProject
from tests.support.slurm import Slurm


@pytest.fixture
def project(slurm: Slurm, tmp_path: Path) -> Iterator[BatchProject]:
    """Yields a project with the files of ``det batch init``; its jobs are cancelled at the end."""
    yield BatchProject(slurm, tmp_path)
    slurm.cancel_all()
