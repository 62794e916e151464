"""Processes that train together: those of a launcher or of a Slurm job, or ones that are started here.

Each process has a model of its own. Gradients are averaged over all of them, so that the models stay equal.
"""

import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh

from mlstm.config_schema import Config, ParallelConfig
from mlstm.errors import ConfigError


@dataclass(frozen=True)
class Place:
    """The place of this process among those that train together.

    ``rendezvous`` is the URL at which they meet; empty for a process that trains alone.
    """

    rank: int
    world_size: int
    local_rank: int = 0
    rendezvous: str = ""


def find_place(config: ParallelConfig, run_folder: Path, environ: Mapping[str, str]) -> Place | None:
    """Returns the place that a launcher or Slurm gave this process, or None if processes have to be started here.

    Raises:
        ConfigError: ``parallel.devices`` is another number than that of the processes that were started.
    """
    place = Place(0, 1)
    if int(environ.get("WORLD_SIZE", "1")) > 1:
        place = Place(int(environ["RANK"]), int(environ["WORLD_SIZE"]), int(environ.get("LOCAL_RANK", "0")), "env://")
    elif int(environ.get("SLURM_STEP_NUM_TASKS", "1")) > 1:
        # Tasks share the folder of the run, whereas names of nodes need not be known to each other.
        attempt = f"{environ['SLURM_JOB_ID']}.{environ['SLURM_STEP_ID']}.{environ.get('SLURM_RESTART_COUNT', '0')}"
        meeting = f"file://{run_folder}/.rendezvous-{attempt}"
        place = Place(
            int(environ["SLURM_PROCID"]),
            int(environ["SLURM_STEP_NUM_TASKS"]),
            int(environ["SLURM_LOCALID"]),
            meeting,
        )
    devices = config.devices if config.devices is not None else place.world_size
    if devices < 1:
        raise ConfigError(f"parallel.devices: {devices} is less than one")
    if place.world_size == 1:
        return place if devices == 1 else None
    if devices != place.world_size:
        raise ConfigError(
            f"parallel.devices: {devices}, but {place.world_size} processes were started; use null or the same number"
        )
    return place


def run_on_each(train: Callable[..., float | None], devices: int, *arguments: Any) -> float | None:
    """Runs ``train(place, *arguments)`` in this process and in ``devices - 1`` new ones, and waits for all of them.

    Returns what it returned here.
    """
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # all are on this machine; nobody else has to reach them
    with tempfile.TemporaryDirectory(prefix="rendezvous-") as folder:
        places = [Place(rank, devices, rank, f"file://{folder}/store") for rank in range(devices)]
        others = mp.start_processes(
            _run_other,
            args=(train, places[1:], arguments),
            nprocs=devices - 1,
            join=False,
            daemon=True,
            start_method="spawn",
        )
        assert others is not None
        try:
            result = train(places[0], *arguments)
        except RuntimeError:
            # The connection to a process that failed is lost here; its own error says why.
            while not others.join(timeout=5):
                time.sleep(0.1)
            raise
        while not others.join():
            pass
        return result


def _run_other(index: int, train: Callable[..., float | None], places: list[Place], arguments: tuple[Any, ...]) -> None:
    train(places[index], *arguments)


class Devices:
    """The device of this process and its connection to the others; a context manager.

    Example:
        >>> with Devices(config, Place(0, 1)) as devices:
        ...     devices.average(gradients)
    """

    def __init__(self, config: Config, place: Place) -> None:
        self.rank = place.rank
        self.world_size = place.world_size
        self._place = place
        self._group: Any = None
        if config.device == "gpu":
            torch.cuda.set_device(place.local_rank % torch.cuda.device_count())
        self.device = torch.device("cuda" if config.device == "gpu" else "cpu")
        # Sums in another number of threads differ in their last bits.
        torch.set_num_threads(config.parallel.threads_per_device)
        if place.world_size > 1:
            backend = "nccl" if config.device == "gpu" else "gloo"
            dist.init_process_group(backend, init_method=place.rendezvous, rank=place.rank, world_size=place.world_size)
            axis = config.parallel.data_axis_name
            self._group = init_device_mesh(self.device.type, (place.world_size,), mesh_dim_names=(axis,)).get_group(
                axis
            )

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def average(self, values: torch.Tensor) -> None:
        """Replaces values by their mean over all processes.

        One tensor in one call: the order of the sums, and so each bit, is the same in every step and after a resume.
        """
        if self._group is not None:
            dist.all_reduce(values, group=self._group)
            values /= self.world_size

    def agree(self, answer: bool) -> bool:
        """Returns the answer of the first process."""
        if self._group is None:
            return answer
        shared = torch.tensor([int(answer)], device=self.device)
        dist.broadcast(shared, src=0, group=self._group)
        return bool(shared.item())

    def share(self, state: dict[str, Any] | None) -> dict[str, Any]:
        """Returns the state that the first process has; the others give None."""
        if self._group is None:
            assert state is not None
            return state
        file = io.BytesIO()
        torch.save(state, file)
        size = torch.tensor([file.tell()], device=self.device)
        dist.broadcast(size, src=0, group=self._group)
        content = torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8).to(self.device)
        if not self.is_first:
            content = torch.empty(int(size.item()), dtype=torch.uint8, device=self.device)
        dist.broadcast(content, src=0, group=self._group)
        shared: dict[str, Any] = torch.load(
            io.BytesIO(content.cpu().numpy().tobytes()), map_location=self.device, weights_only=True
        )
        return shared

    def __enter__(self) -> "Devices":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._group is None:
            return
        if kind is None and self._place.rendezvous.startswith("file://"):
            dist.barrier(group=self._group)
            if self.is_first:
                Path(self._place.rendezvous.removeprefix("file://")).unlink(missing_ok=True)
        self._group = None  # its threads end here, and not while the process ends
        dist.destroy_process_group()
