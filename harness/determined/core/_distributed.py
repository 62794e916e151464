"""Ranks and sizes of the group of workers, and exchange of small objects between them."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.core import _collectives
from determined_launch import environment

DEFAULT_PORT = 12360


class DistributedContext:
    """Ranks of this worker, and gather, allgather and broadcast of picklable objects: ``core_context.distributed``.

    All workers call the same operations in the same order.

    Args:
        rank: number of this worker, 0 for the chief.
        size: number of workers.
        local_rank: number of this worker on its machine.
        local_size: number of workers on this machine.
        cross_rank: number of this worker's machine.
        cross_size: number of machines.
        chief_ip: address of the chief's machine; by default it comes from the environment.
        environ: environment variables; by default those of this process.

    Raises:
        ValueError: a rank is not below its size, or workers on several machines have no shared key.

    >>> alone = DummyDistributedContext()
    >>> alone.allgather("x")
    ['x']
    """

    def __init__(
        self,
        *,
        rank: int,
        size: int,
        local_rank: int,
        local_size: int,
        cross_rank: int,
        cross_size: int,
        chief_ip: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.rank = rank
        self.size = size
        self.local_rank = local_rank
        self.local_size = local_size
        self.cross_rank = cross_rank
        self.cross_size = cross_size
        if not (0 <= rank < size and 0 <= local_rank < local_size <= size and 0 <= cross_rank < cross_size):
            raise ValueError(
                f"ranks must be from 0 to size - 1: rank {rank} of {size}, local rank {local_rank} of "
                f"{local_size}, cross rank {cross_rank} of {cross_size}"
            )
        values = environment.current() if environ is None else environ
        key = bytes.fromhex(values.get(environment.ALLOCATION_KEY) or "")
        folder = _folder(values) if size > 1 else Path()
        if size > 1 and not key and local_size < size:
            raise ValueError(f"workers on several machines need {environment.ALLOCATION_KEY} in their environment")
        # a container uses a socket in its own folder: two runs on one machine could not share a port
        self._collectives: _collectives.Collectives = (
            _collectives.over_unix(rank, size, folder / "workers.sock", key)
            if local_size == size
            else _collectives.over_tcp(
                rank,
                size,
                chief_ip or values.get(environment.CHIEF_IP) or "127.0.0.1",
                int(values.get(environment.COMM_PORT_1) or DEFAULT_PORT),
                key,
            )
        )
        self._local: _collectives.Collectives = _collectives.over_unix(
            local_rank, local_size, folder / f"node-{cross_rank}.sock", key
        )

    @classmethod
    def from_torch_distributed(cls, chief_ip: str | None = None) -> "DistributedContext":
        """Returns the context for the environment of ``torch.distributed.run``; torch need not be initialized.

        Args:
            chief_ip: address of the chief's machine; by default it comes from the environment.
        """
        return _from_variables(cls, chief_ip, "torch_distributed")

    @classmethod
    def from_deepspeed(cls, chief_ip: str | None = None) -> "DistributedContext":
        """Returns the context for the environment of deepspeed's launcher; deepspeed need not be initialized.

        Args:
            chief_ip: address of the chief's machine; by default it comes from the environment.
        """
        return _from_variables(cls, chief_ip, "deepspeed")

    @classmethod
    def from_roles(cls) -> "DistributedContext":
        """Returns the context of all processes that ``determined.launch.roles`` started, of every role.

        Rank 0 is the first process of the chief's container, by the order of the roles in their file. A process learns
        its own role from ``DET_ROLE`` and ``DET_ROLE_INDEX``. :meth:`from_torch_distributed` is the context of the
        processes of one role.

        Raises:
            RuntimeError: the process was not started by that layer.

        Example::

            with det.core.init(distributed=det.core.DistributedContext.from_roles()) as core_context:
                roles = core_context.distributed.allgather(os.environ["DET_ROLE"])
        """
        values = environment.current()
        names = (
            *(environment.PROCESS_RANK, environment.PROCESS_SIZE),
            *(environment.PROCESS_LOCAL_RANK, environment.PROCESS_LOCAL_SIZE),
            *(environment.PROCESS_CROSS_RANK, environment.PROCESS_CROSS_SIZE),
        )
        missing = [name for name in names if not values.get(name)]
        if missing:
            raise RuntimeError(f"{missing[0]} is not set: start the program with python3 -m determined.launch.roles")
        rank, size, local_rank, local_size, cross_rank, cross_size = (int(values[name]) for name in names)
        return cls(
            rank=rank,
            size=size,
            local_rank=local_rank,
            local_size=local_size,
            cross_rank=cross_rank,
            cross_size=cross_size,
        )

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: str | None = None) -> "DistributedContext":  # noqa: ANN401  # any picklable object of the caller
        """Returns the context for a horovod module whose ``init()`` was called.

        Args:
            hvd: the module, for example ``horovod.torch``.
            chief_ip: address of the chief's machine; by default it comes from the environment.
        """
        return cls(
            rank=hvd.rank(),
            size=hvd.size(),
            local_rank=hvd.local_rank(),
            local_size=hvd.local_size(),
            cross_rank=hvd.cross_rank(),
            cross_size=hvd.cross_size(),
            chief_ip=chief_ip,
        )

    def get_rank(self) -> int:
        """Returns the number of this worker, 0 for the chief."""
        return self.rank

    def get_size(self) -> int:
        """Returns the number of workers."""
        return self.size

    def get_local_rank(self) -> int:
        """Returns the number of this worker on its machine."""
        return self.local_rank

    def get_local_size(self) -> int:
        """Returns the number of workers on this machine."""
        return self.local_size

    def get_cross_rank(self) -> int:
        """Returns the number of this worker's machine."""
        return self.cross_rank

    def get_cross_size(self) -> int:
        """Returns the number of machines."""
        return self.cross_size

    def get_num_agents(self) -> int:
        """Returns the number of machines, like :meth:`get_cross_size`."""
        return self.cross_size

    def gather(self, value: object) -> list[Any] | None:
        """Returns the values of all workers in rank order on the chief, None on the other workers.

        Args:
            value: this worker's object; it must be picklable.
        """
        return self._collectives.gather(value)

    def allgather(self, value: object) -> list[Any]:
        """Returns the values of all workers in rank order, on every worker.

        Args:
            value: this worker's object; it must be picklable.
        """
        return list(self._collectives.broadcast(self._collectives.gather(value)))

    def broadcast(self, value: object) -> Any:  # noqa: ANN401  # any picklable object of the caller
        """Returns the chief's value on every worker.

        Args:
            value: the chief's object; the values of the other workers are ignored.
        """
        return self._collectives.broadcast(value)

    def gather_local(self, value: object) -> list[Any] | None:
        """Returns the values of this machine's workers on its first worker, None on the others.

        Args:
            value: this worker's object; it must be picklable.
        """
        return self._local.gather(value)

    def allgather_local(self, value: object) -> list[Any]:
        """Returns the values of this machine's workers in rank order, on each of them.

        Args:
            value: this worker's object; it must be picklable.
        """
        return list(self._local.broadcast(self._local.gather(value)))

    def broadcast_local(self, value: object) -> Any:  # noqa: ANN401  # any picklable object of the caller
        """Returns the value of this machine's first worker on each worker of the machine.

        Args:
            value: the first worker's object; the values of the others are ignored.
        """
        return self._local.broadcast(value)

    def close(self) -> None:
        """Closes the sockets."""
        self._collectives.close()
        self._local.close()


class DummyDistributedContext(DistributedContext):
    """The distributed context of a single worker: all ranks are 0, all sizes 1."""

    def __init__(self) -> None:
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1, environ={})


def _from_variables(cls: type[DistributedContext], chief_ip: str | None, layer: str) -> DistributedContext:
    """Builds the context from environment variables. Torch and deepspeed differ in the names for machine ranks."""
    values = environment.current()

    def number(*names: str, default: int | None = None) -> int:
        text = next((values[name] for name in names if values.get(name)), default)
        if text is None:
            raise RuntimeError(
                f"{' and '.join(names)} not set: start the script with python3 -m determined.launch.{layer}"
            )
        return int(text)

    rank, size, local_rank = number("RANK"), number("WORLD_SIZE"), number("LOCAL_RANK")
    local_size = number("LOCAL_WORLD_SIZE", "LOCAL_SIZE")
    return cls(
        rank=rank,
        size=size,
        local_rank=local_rank,
        local_size=local_size,
        cross_rank=number("GROUP_RANK", "CROSS_RANK", default=rank // local_size),
        cross_size=number("GROUP_WORLD_SIZE", "CROSS_SIZE", default=-(-size // local_size)),
        chief_ip=chief_ip,
        environ=_of_role(values) if values.get(environment.ROLE) else values,
    )


def _of_role(values: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of the group of one role, whose chief and sockets are not those of another role."""
    folder = Path(values[environment.RUN_DIR], "roles", values[environment.ROLE])
    folder.mkdir(parents=True, exist_ok=True)
    chief = values.get("MASTER_ADDR") or values.get(environment.CHIEF_IP, "")
    return {**values, environment.RUN_DIR: str(folder), environment.CHIEF_IP: chief}


def _folder(environ: Mapping[str, str]) -> Path:
    """Returns the run folder; off the cluster a private folder whose name differs between launches."""
    if environ.get(environment.RUN_DIR):
        return Path(environ[environment.RUN_DIR])
    port = environ.get("MASTER_PORT") or environ.get("HOROVOD_GLOO_RENDEZVOUS_PORT") or "0"
    name = f"determined-{os.getuid()}-{environ.get('TORCHELASTIC_RUN_ID', 'none')}-{port}"
    folder = Path(tempfile.gettempdir(), name)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise RuntimeError(f"{folder} belongs to another user")
    return folder
