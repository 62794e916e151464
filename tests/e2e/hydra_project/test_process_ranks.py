"""Processes of the Hydra example find their place among those of a launcher, of Slurm, or of the example itself."""

from pathlib import Path

import pytest
from mlstm.config_schema import ParallelConfig
from mlstm.devices import Place, find_place
from mlstm.errors import ConfigError

pytestmark = pytest.mark.torch

FOLDER = Path("/runs/1")
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_PROCID": "1",
    "SLURM_LOCALID": "0",
}


def placed(devices: int | None, environ: dict[str, str]) -> Place | None:
    return find_place(ParallelConfig("data", devices, threads_per_device=1), FOLDER, environ)


@pytest.mark.parametrize(
    ("devices", "environ", "expected"),
    [
        (None, {}, Place(0, 1)),
        (1, {}, Place(0, 1)),
        (2, {}, None),
        (2, SLURM | {"SLURM_STEP_NUM_TASKS": "1"}, None),
        (None, {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "8"}, Place(0, 1)),
        (None, TORCHRUN, Place(3, 4, 1, "env://")),
        (4, TORCHRUN, Place(3, 4, 1, "env://")),
        (None, SLURM, Place(1, 2, 0, "file:///runs/1/.rendezvous-7.0.0")),
        (None, SLURM | {"SLURM_RESTART_COUNT": "2"}, Place(1, 2, 0, "file:///runs/1/.rendezvous-7.0.2")),
    ],
)
def test_a_process_finds_its_place_in_the_environment(
    devices: int | None, environ: dict[str, str], expected: Place | None
) -> None:
    """A shell of a Slurm allocation is not a task of it. None: the example has to start processes."""
    assert placed(devices, environ) == expected


@pytest.mark.parametrize(("devices", "environ"), [(3, SLURM), (1, TORCHRUN), (0, {})])
def test_another_number_of_devices_than_that_of_the_processes_is_refused(devices: int, environ: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=rf"parallel\.devices: {devices}"):
        placed(devices, environ)
