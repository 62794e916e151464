"""Fixtures: checks that a test leaves no job in Slurm's queue."""

from collections.abc import Iterator

import pytest
from tests.support.machines import Machine, machines
from tests.support.slurm import Slurm, running_slurm


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[Machine]]:
    """Yields two machines with addresses of their own."""
    with machines(2, gateway=True) as created:
        yield created


@pytest.fixture(scope="module")
def slurm_of_machines(nodes: list[Machine], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Yields a Slurm whose nodes are these machines."""
    with running_slurm(tmp_path_factory.mktemp("s"), nodes) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_left(slurm: Slurm) -> Iterator[None]:
    """Cancels the jobs that a test has left, those of others included."""
    yield
    slurm.cancel_all()
