"""Fixtures: checks that a test leaves no job in Slurm's queue."""

from collections.abc import Iterator

import pytest
from tests.support.slurm import Slurm


@pytest.fixture(autouse=True)
def nothing_left(slurm: Slurm) -> Iterator[None]:
    """Cancels the jobs that a test has left, those of others included."""
    yield
    slurm.cancel_all()
