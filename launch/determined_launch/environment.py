"""Names of a task's environment variables, and frozen dataclasses that are read from and written to a mapping.

Only this module reads the environment inside a task. The master (through the container spec) and the agent set the
values; a user's own variables never override a ``DET_*`` variable.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

MASTER = "DET_MASTER"
CLUSTER_ID = "DET_CLUSTER_ID"
AGENT_ID = "DET_AGENT_ID"
TASK_ID = "DET_TASK_ID"
TASK_TYPE = "DET_TASK_TYPE"
ALLOCATION_ID = "DET_ALLOCATION_ID"
ALLOCATION_KEY = "DET_ALLOCATION_KEY"
"""Hex key shared by the containers of one allocation; a peer proves it before its data is unpickled."""
RESOURCES_ID = "DET_RESOURCES_ID"
CONTAINER_ID = "DET_CONTAINER_ID"
SESSION_TOKEN = "DET_SESSION_TOKEN"
USER = "DET_USER"
USER_TOKEN = "DET_USER_TOKEN"
SLOT_IDS = "DET_SLOT_IDS"
RUN_DIR = "DET_RUN_DIR"
"""Folder of this container's run: ``info/``, ``workdir/``, ``exits/``, ``spool/``; ``/run/determined`` by default."""
WORKDIR = "DET_WORKDIR"
SHARED_FS = "DET_SHARED_FS"
"""Path of ``checkpoint_storage.host_path`` as the task sees it, by default ``/determined_shared_fs``."""
EXPERIMENT_ID = "DET_EXPERIMENT_ID"
TRIAL_ID = "DET_TRIAL_ID"
TRIAL_RUN_ID = "DET_TRIAL_RUN_ID"
TRIAL_SEED = "DET_TRIAL_SEED"
STEPS_COMPLETED = "DET_STEPS_COMPLETED"
LATEST_CHECKPOINT = "DET_LATEST_CHECKPOINT"
LATEST_OUTPUTS = "DETENT_LATEST_OUTPUTS"
"""The checkpoint that holds the ``outputs`` of the trial's attempts before."""
KEPT_OUTPUTS = "kept-outputs.json"
"""File in the run folder: the folders that the task has kept at its end, as a JSON list."""
CHECKPOINTS_TO_REMOVE = "DETENT_CHECKPOINTS_TO_REMOVE"
"""JSON of ``storage`` and ``uuids``, for a task that removes checkpoints."""
ENVIRONMENT_TO_BUILD = "DETENT_ENVIRONMENT_TO_BUILD"
EXPERIMENT_CONFIG = "DET_EXPERIMENT_CONFIG"
"""Read it with :func:`value_of`: a long one is in a file."""
HPARAMS = "DET_HPARAMS"
"""Read it with :func:`value_of`: a long one is in a file."""
CHIEF_IP = "DET_CHIEF_IP"
PYTHON_EXECUTABLE = "DET_PYTHON_EXECUTABLE"
COMM_PORT_1 = "INTER_TRAIN_PROCESS_COMM_PORT_1"
COMM_PORT_2 = "INTER_TRAIN_PROCESS_COMM_PORT_2"
C10D_PORT = "C10D_PORT"
SSH_PORT = "DTRAIN_SSH_PORT"
"""Port of the command channel, or of sshd, of the first container on a machine; further ones use the next ports."""
NETWORK_INTERFACE = "DET_INTER_NODE_NETWORK_INTERFACE"
GLOO_INTERFACE = "GLOO_SOCKET_IFNAME"
NCCL_INTERFACE = "NCCL_SOCKET_IFNAME"
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"

ENTRYPOINT_JSON = "DET_ENTRYPOINT_JSON"
"""The configured entrypoint as JSON: a string or a list of strings. Read it with :func:`value_of`."""
TASK_PYTHON = "DET_TASK_PYTHON"
"""The Python of the task's own environment; the agent puts its folder first on ``PATH`` as well."""
LOG_METRICS = "DET_LOG_METRICS"
"""``false`` keeps reported metrics out of the task's log."""
USER_SETTABLE = frozenset({LOG_METRICS})
"""The ``DET_`` variables that ``environment_variables`` of a configuration may set."""
TEST_MODE = "DET_TEST_MODE"
"""Set by ``--test-mode``: one batch of training, one of validation, a checkpoint round trip."""
LOCAL_RUN = "DET_LOCAL_RUN"
"""``1`` in a trial of ``det experiment create --local``, which has no master."""
STOP_FILE = "DET_TEST_STOP_FILE"
"""Set by a local test of a script: the chief creates this file at its first validation, then its process ends."""
PAUSE_SIGNAL = "DET_PAUSE_SIGNAL"
"""Name of the signal that asks a script to save and end; set if its configuration has the section ``pause``."""
USE_TORCH_DISTRIBUTED = "USE_TORCH_DISTRIBUTED"
USE_HOROVOD = "USE_HOROVOD"
USE_DEEPSPEED = "USE_DEEPSPEED"

STEP_FILE = "DET_STEP_FILE"
"""Path of the step file of a worker; set only if the hang watchdog is on."""
HANG_TIMEOUT = "DET_HANG_TIMEOUT"
"""Set by a layer for its workers' wrappers if ``launch.hang_timeout`` is configured."""
LAUNCH_ID = "DET_LAUNCH_ID"
"""Identifies the exit records of one start of a layer."""
WORKER_OF = "DET_WORKER_OF"
"""Worker of this process, as a path (``rank-3``, ``rank-3/rank-0``), because layers can be nested."""
ROLE = "DET_ROLE"
"""Name of the role of a process that ``determined.launch.roles`` started."""
ROLE_INDEX = "DET_ROLE_INDEX"
"""Number of the process in its role, from 0."""
ROLES = "DET_ROLES"
"""JSON list of the roles: ``name`` and ``processes``, each with ``rank``, ``address`` and a ``port`` of its own."""
PROCESS_RANK = "DET_PROCESS_RANK"
"""Number of the process among those of all roles; likewise the next five. ``RANK`` and so on count within its role."""
PROCESS_SIZE = "DET_PROCESS_SIZE"
PROCESS_LOCAL_RANK = "DET_PROCESS_LOCAL_RANK"
PROCESS_LOCAL_SIZE = "DET_PROCESS_LOCAL_SIZE"
PROCESS_CROSS_RANK = "DET_PROCESS_CROSS_RANK"
PROCESS_CROSS_SIZE = "DET_PROCESS_CROSS_SIZE"
END_MARK = "DET_ROLE_END_MARK"
"""Path of a file of a daemon role: an end of the process while it exists is no failure."""
CONTAINER_DEVICES = "DET_CONTAINER_DEVICES"
"""The container's own CUDA_VISIBLE_DEVICES, for workers of a launcher that numbers devices from 0."""

FILE_SUFFIX = "_FILE"
"""``DET_X_FILE`` is the path of a file with the value of ``DET_X`` if that is too long for a variable."""
MAX_VARIABLE_BYTES = (128 << 10) - 1
"""Linux's limit for ``NAME=VALUE``."""

DEFAULT_RUN_DIR = "/run/determined"
DEFAULT_SHARED_FS = "/determined_shared_fs"


def current() -> dict[str, str]:
    """Returns a copy of this process's environment; all other modules in a task receive their environment from here."""
    return dict(os.environ)


def value_of(environ: Mapping[str, str], name: str) -> str:
    """Returns the value of a variable, or of the file that replaces it; empty if neither exists. Raises OSError."""
    if name not in environ and (file := environ.get(name + FILE_SUFFIX)):
        return Path(file).read_text(encoding="utf-8")
    return environ.get(name, "")


def is_too_long(name: str, value: str) -> bool:
    """Returns True if Linux refuses to start a program with this variable."""
    return len(os.fsencode(name)) + 1 + len(os.fsencode(value)) > MAX_VARIABLE_BYTES


def move_to_file(environ: dict[str, str], name: str, folder: Path, seen_as: Path | None = None) -> None:
    """Replaces a variable by a private file in ``folder``, which the task sees as ``seen_as``."""
    file = folder / name
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
        opened.write(environ.pop(name))
    environ[name + FILE_SUFFIX] = str((seen_as or folder) / name)


def put(values: Mapping[str, str]) -> None:
    """Adds variables to this process's environment, for libraries that read it directly."""
    os.environ.update(values)


@dataclass(frozen=True)
class RendezvousFacts:
    """The containers of an allocation, in rank order.

    ``addresses[i]`` and ``slots[i]`` belong to the container of rank ``i``; ``slots`` counts slots and is 0 for an
    auxiliary task.
    """

    addresses: tuple[str, ...]
    rank: int
    slots: tuple[int, ...]

    @property
    def chief(self) -> str:
        return self.addresses[0]

    @property
    def is_chief(self) -> bool:
        return self.rank == 0

    @property
    def nodes(self) -> int:
        return len(self.addresses)

    @property
    def local_slots(self) -> int:
        return self.slots[self.rank]

    @property
    def total_slots(self) -> int:
        return sum(self.slots)

    def to_json(self) -> dict[str, object]:
        return {
            "container_addrs": list(self.addresses),
            "container_rank": self.rank,
            "container_slot_counts": list(self.slots),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> "RendezvousFacts":
        """Parses the result of :meth:`to_json`. Raises KeyError, TypeError or ValueError for anything else."""
        addresses = value["container_addrs"]
        slots = value["container_slot_counts"]
        rank = value["container_rank"]
        if not isinstance(addresses, list) or not isinstance(slots, list) or not isinstance(rank, int):
            raise TypeError(
                "rendezvous facts: container_addrs and container_slot_counts are lists, container_rank an int"
            )
        return cls(tuple(str(a) for a in addresses), rank, tuple(int(s) for s in slots))


@dataclass(frozen=True)
class TaskFacts:
    """Properties of a task, read once from the environment. One whose variable is absent is empty or a default."""

    master: str
    cluster_id: str
    agent_id: str
    task_id: str
    task_type: str
    allocation_id: str
    resources_id: str
    container_id: str
    session_token: str
    run_dir: str
    slot_ids: tuple[int, ...] = field(default=())

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "TaskFacts | None":
        """Returns None off the cluster, where ``DET_ALLOCATION_ID`` or ``DET_MASTER`` is not set."""
        if not environ.get(ALLOCATION_ID) or not environ.get(MASTER):
            return None
        return cls(
            master=environ[MASTER],
            cluster_id=environ.get(CLUSTER_ID, ""),
            agent_id=environ.get(AGENT_ID, ""),
            task_id=environ.get(TASK_ID, ""),
            task_type=environ.get(TASK_TYPE, "TRIAL"),
            allocation_id=environ[ALLOCATION_ID],
            resources_id=environ.get(RESOURCES_ID, ""),
            container_id=environ.get(CONTAINER_ID, ""),
            session_token=environ.get(SESSION_TOKEN, ""),
            run_dir=environ.get(RUN_DIR, DEFAULT_RUN_DIR),
            slot_ids=tuple(json.loads(environ.get(SLOT_IDS) or "[]")),
        )
