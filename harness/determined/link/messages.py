"""Messages between master and agent over the websocket, as JSON text frames.

Level-triggered: the master sends the *whole* desired state of an agent, the agent answers with its *whole* reported
state. The next message repairs a lost one; a restart of either side is no special case. See
docs/architecture/agent-protocol.md.

Order: the agent connects to ``WS /agents?id=…&pool=…&version=…`` with ``Authorization: Bearer <join token>`` and sends
:class:`Hello`; the master answers :class:`Welcome`, or :class:`Refuse` and closes. Then the agent sends
:class:`ReportedState` after every change (and at least every ``heartbeat_seconds``), and the master sends
:class:`DesiredState` after every change and once after each Welcome.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from determined.states import ContainerState

PROTOCOL = 1
"""Protocol version; a master supports this one and the one before."""
MAX_SLOTS = 4096
"""Maximum number of slots of an agent."""
MAX_CONTAINERS = 4096
"""Maximum number of containers in a report of an agent."""
MAX_LINES = 10_000
"""Maximum number of lines of a batch of output; an agent sends a tenth of it."""
MAX_RUNTIME_ID = 128
"""Maximum length of a container engine's id."""
MAX_START_NOTE = 1000
MAX_SSH_KEYS = 16
"""Maximum number of keys that are let into one stream."""


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


Name = Annotated[str, Field(max_length=255)]


class SlotFacts(_Message):
    """One slot of an agent. ``id`` is the device index, which is stable over restarts."""

    id: Annotated[int, Field(ge=0, lt=2**31)]
    type: Literal["cpu", "cuda", "rocm"] = "cpu"
    brand: Name = ""
    uuid: Name = ""


class SlotStatus(_Message):
    """What an agent sees of one of its slots. ``reason`` says in a sentence why a slot that is not ``free`` is not."""

    id: int
    status: Literal["free", "idle", "occupied", "unhealthy"] = "free"
    """``idle``: its task does not compute on it; ``occupied``: by a program outside the cluster."""
    reason: str = ""


class RankExit(_Message):
    """The end of one worker process inside a container, as its wrapper recorded it."""

    rank: int
    code: int | None = None
    signal: int | None = None
    host: str = ""
    last_lines: list[str] = Field(default_factory=list)
    time: float = 0.0
    """End time in seconds since the epoch; 0 if the wrapper did not record it."""
    cause: str = ""
    """``out_of_memory`` or ``hang`` if the wrapper detected one of them."""
    last_stderr: str = ""
    """Its last line on standard error; empty from earlier versions."""


class ContainerExit(_Message):
    """The end of a container.

    ``kind``: ``exited`` (by itself, with ``code`` or ``signal``), ``killed`` (because the master wanted it stopped),
    ``failed_to_start`` (caused by the task or its user: bad context, bad mount, no such environment; see ``message``),
    ``system`` (agent, engine or shim failed; not the task's fault).
    """

    kind: Literal["exited", "killed", "failed_to_start", "system"]
    code: int | None = None
    signal: int | None = None
    message: str = ""
    ranks: list[RankExit] = Field(default_factory=list)
    last_stderr: str = ""
    """Its last line on standard error; empty from earlier versions and if a rank has a record."""
    hint: str = ""
    """What the agent found out about the cause, for example that a missing file was left out of the context."""


class ReportedContainer(_Message):
    """The state of one container as its agent sees it."""

    container_id: str
    allocation_id: str
    state: ContainerState
    address: str = "127.0.0.1"
    exit: ContainerExit | None = None
    output_done: bool = False
    """True after the container has ended and every byte of its output was acknowledged."""
    is_ready: bool = False
    """True if the container needs no rendezvous: it was given its address, and nothing runs before its entrypoint."""
    runtime_id: str = Field(default="", max_length=MAX_RUNTIME_ID)
    """Id of the container on its engine; empty for a process and from earlier versions."""
    needed_environment: str = Field(default="", pattern="^([0-9a-f]{16})?$")
    """Key of the Python environment for which its start waits; the master starts a task that builds it there."""
    start_note: str = Field(default="", max_length=MAX_START_NOTE)
    """A reason why each start of it is slow; empty if none is known, from earlier versions, and after a restart of the
    agent."""


class Hello(_Message):
    kind: Literal["hello"] = "hello"
    protocol: int = PROTOCOL
    agent_id: Name
    pool: Name = "default"
    """Empty: the default pool of the cluster."""
    version: Annotated[str, Field(max_length=64)] = ""
    hostname: Name = ""
    slots: Annotated[list[SlotFacts], Field(max_length=MAX_SLOTS)]
    containers: Annotated[list[ReportedContainer], Field(max_length=MAX_CONTAINERS)] = Field(default_factory=list)
    master_epoch: int = 0
    """Newest epoch that this agent has obeyed; a master of the same cluster with an older one must step down."""
    cluster_id: str = ""
    """Cluster of that epoch; empty if the agent has obeyed none yet."""
    draining: str = ""
    container_runtime: Annotated[str, Field(max_length=16)] = "process"
    """``process``, or the engine whose containers this agent starts."""
    folder_id: str = Field(default="", max_length=64)
    """Random id of the agent's data folder, which tells it from another agent with the same id; empty from earlier
    versions."""
    sent_at: float = 0.0
    """Time of the agent's clock in seconds since the epoch; 0 from earlier versions."""
    takes_streams: bool = False
    """True if this agent connects streams when it gets :class:`OpenStream`; False from earlier versions."""
    takes_ssh: bool = False
    """True if it knows ``OpenStream.ssh``, with or without the packages for it; False from earlier versions."""


class OutputLine(_Message):
    """One line of a container's output. ``timestamp``: seconds since the epoch, UTC."""

    timestamp: float
    log: str
    level: str = ""
    """``INFO`` … without prefix; empty if the line has none."""
    rank_id: int | None = None
    stdtype: Literal["stdout", "stderr"] = "stdout"
    source: Literal["task", "agent"] = "task"


class OutputBatch(_Message):
    """``POST /detent/agents/{agent_id}/output``: lines of one container from byte ``start`` to byte ``end``.

    The master stores lines and offset in one transaction and answers :class:`OutputAck`. If ``start`` is not the
    committed offset, nothing is stored, and the answer has the offset to continue from.
    """

    container_id: str
    allocation_id: str
    task_id: str
    start: int
    end: int
    lines: Annotated[list[OutputLine], Field(max_length=MAX_LINES)]


class OutputAck(_Message):
    committed: int


class ReportedState(_Message):
    kind: Literal["truth"] = "truth"
    wish_sequence: int = 0
    """Sequence number of the newest desired state that this report takes into account."""
    containers: Annotated[list[ReportedContainer], Field(max_length=MAX_CONTAINERS)]
    slots: Annotated[list[SlotStatus], Field(max_length=MAX_SLOTS)] = Field(default_factory=list)
    """Slots that are not free; empty from agents that do not watch them."""
    last_output: list[OutputBatch] = Field(default_factory=list)
    """The end of the output of containers that have ended, which is stored with their end; sent once, to a master that
    ``takes_last_output``."""
    sent_at: float = 0.0
    """Time of the agent's clock in seconds since the epoch; 0 from earlier versions."""


class ContextRef(_Message):
    """A context in the master's blob folder: sha256 of the tar.zst, and its size in bytes."""

    hash: str
    size: int


class RunAs(_Message):
    """User and group of this machine as which a task runs. Names are those that the admin gave; they may be empty."""

    uid: int = Field(ge=0, lt=2**32 - 1)
    gid: int = Field(ge=0, lt=2**32 - 1)
    user: str = ""
    group: str = ""


class ContainerSpec(_Message):
    """All data that an agent needs to start a container, except for the content of the context."""

    task_id: str
    task_type: str = "TRIAL"
    owner: str = ""
    run_as: RunAs | None = None
    """Identity of the owner on agents that run as root; None for an owner without one."""
    rank: int = 0
    slots: list[int]
    environment: dict[str, str]
    """Variables of the master: ``DET_*`` and the ports; they override all others."""
    user_environment: list[str] = Field(default_factory=list)
    """``NAME=VALUE`` in order; may not override ``environment``."""
    entrypoint: str | list[str]
    image: str | None = None
    """``venv:PATH`` selects a Python environment; the process driver ignores other values with a warning."""
    venv: dict[str, Any] | None = None
    """``{requirements, python}``: the files of the context from which the task's Python environment is built.
    ``{pip}``: packages that are added to the Python of the task."""
    builds_environment: str = ""
    """Key of the Python environment that this task builds for others on its agent."""
    built_environments: list[tuple[str, str]] = Field(default_factory=list)
    """Agent and key of each environment whose build for this task has ended: an agent that still lacks it says why,
    and does not ask again."""
    harness: Literal["auto", "ours", "installed"] = "auto"
    context: ContextRef | None = None
    bind_mounts: list[dict[str, Any]] = Field(default_factory=list)
    checkpoint_storage: dict[str, Any] = Field(default_factory=dict)
    is_cluster_storage: bool = False
    """True if ``checkpoint_storage`` is the folder that the master itself chose, which every owner may use."""
    proxy_ports: list[int] = Field(default_factory=list)
    """Ports at which the task is reachable."""
    startup_hook: str = ""
    """Text of the pool's hook; sourced before the user's."""
    is_distributed: bool = False
    """True if the allocation has containers on several agents."""
    is_alone: bool = False
    """True if the allocation has this container only; False from earlier versions."""
    images: dict[str, str] = Field(default_factory=dict)
    """Image by type of slot (``cpu``, ``cuda``, ``rocm``), for agents that run containers."""
    device_environment: dict[str, list[str]] = Field(default_factory=dict)
    """``NAME=VALUE`` by type of slot, for agents that know which they have; others read ``user_environment``."""
    force_pull_image: bool = False
    registry_auth: dict[str, Any] | None = None
    shm_bytes: int | None = None
    devices: list[dict[str, Any]] = Field(default_factory=list)
    """``{host_path, container_path, mode}`` each."""
    add_capabilities: list[str] = Field(default_factory=list)
    drop_capabilities: list[str] = Field(default_factory=list)
    ports: dict[str, int] = Field(default_factory=dict)
    """Ports by name at which the containers of the allocation reach each other."""
    ignored: list[str] = Field(default_factory=list)
    """Settings that this driver ignores; the log has a warning for each."""


class DesiredContainer(_Message):
    """One container as the master wants it. ``stopped`` kills immediately; the task itself handles a graceful end."""

    container_id: str
    allocation_id: str
    state: Literal["running", "stopped"]
    spec: ContainerSpec | None = None
    """Present while ``state`` is ``running``."""


class Welcome(_Message):
    kind: Literal["welcome"] = "welcome"
    protocol: int = PROTOCOL
    master_epoch: int
    cluster_id: str
    heartbeat_seconds: float = 5.0
    reconnect_seconds: float = 25.0
    takes_last_output: bool = False
    """True if this master stores ``ReportedState.last_output``; False from earlier versions."""
    storage_folders: list[str] = Field(default_factory=list)
    """The cluster's own checkpoint storage, as folders of each agent's machine; empty from earlier versions."""
    data_folder: str = ""
    """Data folder of the master, by its path on the master's machine; empty from earlier versions."""


class Refuse(_Message):
    kind: Literal["refuse"] = "refuse"
    reason: str
    final: bool = False
    """True if another attempt with these settings is useless."""


class DesiredState(_Message):
    """All containers that the master knows on this agent.

    A container that only the agent has is stopped if it runs, and forgotten once it has ended and its output was
    acknowledged.
    """

    kind: Literal["wish"] = "wish"
    master_epoch: int
    sequence: int
    containers: list[DesiredContainer]
    stored_output: dict[str, int] = Field(default_factory=dict)
    """Answers to ``last_output``: offset up to which the output of a container is stored. The agent sends the rest as
    any other output."""


class Execution(_Message):
    """A program to run beside a task, with its environment, user and limits."""

    argv: list[str]
    """Empty: the user's shell."""
    terminal: tuple[int, int] | None = None
    """Rows and columns of its terminal; None for a program without one."""
    terminal_type: str = ""
    """Value of ``TERM``; empty without a terminal."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables beside those of the task, which they override."""


class SshAccess(_Message):
    """What an agent needs to be the SSH server of one stream. Keys are in the formats of OpenSSH."""

    host_key: str = Field(repr=False)
    """Private key of the task's host."""
    public_keys: Annotated[list[str], Field(min_length=1, max_length=MAX_SSH_KEYS)]
    """Keys that are let in."""


class OpenStream(_Message):
    """Asks the agent to connect a stream to ``WS /detent/streams/{stream_id}`` with this key, and to join it with a
    program or a port of a container. Sent once, and only to an agent that ``takes_streams``: a client whose stream is
    not connected within some seconds gets an error and asks again."""

    kind: Literal["open_stream"] = "open_stream"
    stream_id: str
    key: str
    session_id: str
    """The session on the agent, which outlives a connection; a new one unless ``is_resumed``."""
    is_resumed: bool = False
    container_id: str
    user: str
    """Who opened it; nobody else may resume it."""
    execution: Execution | None = None
    port: int = 0
    """Port to connect to if there is nothing to execute."""
    ssh: SshAccess | None = None
    """Present if the stream carries SSH, whose sessions are programs and ports of the container."""


AgentMessage = Annotated[Hello | ReportedState, Field(discriminator="kind")]
MasterMessage = Annotated[Welcome | Refuse | DesiredState | OpenStream, Field(discriminator="kind")]

AGENT_MESSAGE: TypeAdapter[Hello | ReportedState] = TypeAdapter(AgentMessage)
MASTER_MESSAGE: TypeAdapter[Welcome | Refuse | DesiredState | OpenStream] = TypeAdapter(MasterMessage)
