"""Rank and size of the group of workers, and small exchanges between them."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.core import _collectives
from determined_launch import environment

DEFAULT_PORT = 12360


class DistributedContext:
    """``core_context.distributed``: ranks, and gather, allgather and broadcast of any picklable object.

    All workers call the same operations in the same order.

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
                f"ranks begin at 0 and lie below their sizes: rank {rank} of {size}, local rank {local_rank} of "
                f"{local_size}, cross rank {cross_rank} of {cross_size}"
            )
        values = environment.current() if environ is None else environ
        key = bytes.fromhex(values.get(environment.ALLOCATION_KEY) or "")
        folder = _folder(values) if size > 1 else Path()
        if size > 1 and not key and local_size < size:
            raise ValueError(f"workers on several machines need {environment.ALLOCATION_KEY} in their environment")
        # in one container no port is opened: two runs on one machine could not share it, their folders differ
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
        """From the environment that ``torch.distributed.run`` makes; torch itself need not be initialised."""
        return _from_variables(cls, chief_ip, "torch_distributed")

    @classmethod
    def from_deepspeed(cls, chief_ip: str | None = None) -> "DistributedContext":
        """From the environment that deepspeed's launcher makes; deepspeed itself need not be initialised."""
        return _from_variables(cls, chief_ip, "deepspeed")

    @classmethod
    def from_horovod(cls, hvd: Any, chief_ip: str | None = None) -> "DistributedContext":
        """From a horovod module, for example ``horovod.torch``, after its ``init()``."""
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
        """This worker's number, 0 for the chief."""
        return self.rank

    def get_size(self) -> int:
        """How many workers there are."""
        return self.size

    def get_local_rank(self) -> int:
        """This worker's number on its machine."""
        return self.local_rank

    def get_local_size(self) -> int:
        """How many workers this machine has."""
        return self.local_size

    def get_cross_rank(self) -> int:
        """The number of this worker's machine."""
        return self.cross_rank

    def get_cross_size(self) -> int:
        """How many machines there are."""
        return self.cross_size

    def get_num_agents(self) -> int:
        """How many machines there are."""
        return self.cross_size

    def gather(self, value: Any) -> list[Any] | None:
        """All values in rank order at the chief; ``None`` elsewhere."""
        return self._collectives.gather(value)

    def allgather(self, value: Any) -> list[Any]:
        """All values in rank order, everywhere."""
        return list(self._collectives.broadcast(self._collectives.gather(value)))

    def broadcast(self, value: Any) -> Any:
        """The chief's value, everywhere."""
        return self._collectives.broadcast(value)

    def gather_local(self, value: Any) -> list[Any] | None:
        """Like gather, on this machine."""
        return self._local.gather(value)

    def allgather_local(self, value: Any) -> list[Any]:
        """Like allgather, on this machine."""
        return list(self._local.broadcast(self._local.gather(value)))

    def broadcast_local(self, value: Any) -> Any:
        """Like broadcast, on this machine."""
        return self._local.broadcast(value)

    def close(self) -> None:
        """Closes the sockets."""
        self._collectives.close()
        self._local.close()


class DummyDistributedContext(DistributedContext):
    """One worker."""

    def __init__(self) -> None:
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1, environ={})


def _from_variables(cls: type[DistributedContext], chief_ip: str | None, layer: str) -> DistributedContext:
    """The launchers agree on most names; torch counts machines as groups, deepspeed as crossings."""
    values = environment.current()

    def number(*names: str, default: int | None = None) -> int:
        found = next((values[name] for name in names if values.get(name)), None)
        if found is None and default is None:
            raise RuntimeError(
                f"{' and '.join(names)} not set: start the script with python3 -m determined.launch.{layer}"
            )
        return int(default if found is None else found)  # type: ignore[arg-type]

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
    )


def _folder(environ: Mapping[str, str]) -> Path:
    """The run folder; off the cluster one that this user alone may enter, named by what tells launches apart."""
    if environ.get(environment.RUN_DIR):
        return Path(environ[environment.RUN_DIR])
    port = environ.get("MASTER_PORT") or environ.get("HOROVOD_GLOO_RENDEZVOUS_PORT") or "0"
    name = f"determined-{os.getuid()}-{environ.get('TORCHELASTIC_RUN_ID', 'none')}-{port}"
    folder = Path(tempfile.gettempdir(), name)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise RuntimeError(f"{folder} belongs to somebody else")
    return folder
