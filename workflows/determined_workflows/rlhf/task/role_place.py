"""The place of this process in the set of workers, from the variables of ``determined.launch.roles``."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

MASTER_WORKER, DATA_WORKER = "master_worker", "data_worker"
_ROLE, _ROLE_INDEX, _ROLES, _KEY = "DET_ROLE", "DET_ROLE_INDEX", "DET_ROLES", "DET_ALLOCATION_KEY"


def role_name(model_name: str) -> str:
    """Returns the name of the role of a model: names of roles have lower-case letters, digits, ``-`` and ``_``.

    >>> role_name("Actor.7B")
    'actor-7b'
    """
    text = re.sub(r"[^a-z0-9_-]+", "-", model_name.lower()).strip("-")
    return text if text[:1].isalpha() else f"model-{text}"


def worker_name(role: str, index: int) -> str:
    """Returns the name of a worker in messages: its role with its number in it.

    >>> worker_name("actor", 1)
    'actor[1]'
    """
    return f"{role}[{index}]"


@dataclass(frozen=True)
class RoleProcess:
    """One process of a role: its rank among all processes, and where it may listen."""

    rank: int
    address: str
    port: int


@dataclass(frozen=True)
class RolePlace:
    """The role of this process, its number in the role, and the processes of all roles.

    ``key`` is the key of the allocation: both ends of a stream prove with it that they belong to the trial.
    """

    role: str
    index: int
    roles: Mapping[str, tuple[RoleProcess, ...]]
    key: bytes

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "RolePlace":
        """Returns the place. Raises RuntimeError if ``determined.launch.roles`` did not start this process."""
        missing = [name for name in (_ROLE, _ROLE_INDEX, _ROLES, _KEY) if not environ.get(name)]
        if missing:
            raise RuntimeError(
                f"{' and '.join(missing)} not set: workers are started by python3 -m determined.launch.roles roles.json"
            )
        roles = {
            str(role["name"]): tuple(
                RoleProcess(int(process["rank"]), str(process["address"]), int(process["port"]))
                for process in role["processes"]
            )
            for role in json.loads(environ[_ROLES])
        }
        return cls(environ[_ROLE], int(environ[_ROLE_INDEX]), roles, bytes.fromhex(environ[_KEY]))

    @property
    def name(self) -> str:
        """Returns the name of this worker, for example ``actor[0]``."""
        return worker_name(self.role, self.index)

    @property
    def master(self) -> RoleProcess:
        """Returns the process of the master worker, to which the streams of all others lead."""
        return self.roles[MASTER_WORKER][0]

    def workers(self, role: str) -> list[str]:
        """Returns the names of a role's workers, in order."""
        return [worker_name(role, index) for index in range(len(self.roles.get(role, ())))]
