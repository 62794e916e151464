"""Which worker this is among how many, and small exchanges between them."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.core import _star
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
        values = environment.current() if environ is None else environ
        key = bytes.fromhex(values.get(environment.ALLOCATION_KEY) or "")
        folder = _folder(values) if size > 1 else Path()
        if size > 1 and not key and local_size < size:
            raise ValueError(f"workers on several machines need {environment.ALLOCATION_KEY} in their environment")
        # without a key only the folder protects, which is this user's alone: then no port is opened
        self._star: _star.Star = (
            _star.over_tcp(
                rank,
                size,
                chief_ip or values.get(environment.CHIEF_IP) or "127.0.0.1",
                int(values.get(environment.COMM_PORT_1) or DEFAULT_PORT),
                key,
            )
            if key
            else _star.over_unix(rank, size, folder / "workers.sock", key)
        )
        self._local: _star.Star = _star.over_unix(local_rank, local_size, folder / f"node-{cross_rank}.sock", key)

    @classmethod
    def from_torch_distributed(cls, chief_ip: str | None = None) -> "DistributedContext":
        """From the environment that ``torch.distributed.run`` makes; torch itself need not be initialised."""
        values = environment.current()
        try:
            rank, size = int(values["RANK"]), int(values["WORLD_SIZE"])
            local_rank, local_size = int(values["LOCAL_RANK"]), int(values["LOCAL_WORLD_SIZE"])
        except KeyError as error:
            raise RuntimeError(
                f"{error.args[0]} is not set: start the script with python3 -m determined.launch.torch_distributed"
            ) from None
        return cls(
            rank=rank,
            size=size,
            local_rank=local_rank,
            local_size=local_size,
            cross_rank=int(values.get("GROUP_RANK") or rank // local_size),
            cross_size=int(values.get("GROUP_WORLD_SIZE") or size // local_size),
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

    def get_num_agents(self) -> int:
        """How many machines there are."""
        return self.cross_size

    def gather(self, value: Any) -> list[Any] | None:
        """All values in rank order at the chief; ``None`` elsewhere."""
        return self._star.gather(value)

    def allgather(self, value: Any) -> list[Any]:
        """All values in rank order, everywhere."""
        return list(self._star.broadcast(self._star.gather(value)))

    def broadcast(self, value: Any) -> Any:
        """The chief's value, everywhere."""
        return self._star.broadcast(value)

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
        self._star.close()
        self._local.close()


class DummyDistributedContext(DistributedContext):
    """One worker."""

    def __init__(self) -> None:
        super().__init__(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1, environ={})


def _folder(environ: Mapping[str, str]) -> Path:
    """The run folder; off the cluster one that this user alone may enter."""
    if environ.get(environment.RUN_DIR):
        return Path(environ[environment.RUN_DIR])
    name = f"determined-{os.getuid()}-{environ.get('TORCHELASTIC_RUN_ID', 'none')}-{environ.get('MASTER_PORT', '0')}"
    folder = Path(tempfile.gettempdir(), name)
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise RuntimeError(f"{folder} belongs to somebody else")
    return folder
