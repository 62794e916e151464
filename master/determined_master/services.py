"""The services of one running master, made once and passed down."""

import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar, TypeVarTuple

from determined.errors import Forbidden, NotFound
from determined_master.agents.registry import Registry
from determined_master.agents.service import Agents
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.containers import Containers
from determined_master.allocations.service import Allocations
from determined_master.authentication import COOKIE, Authenticator
from determined_master.blobs import Blobs
from determined_master.checkpoints.storage import allowed_roots
from determined_master.clock import Clock, SystemClock
from determined_master.cluster import repository as cluster_rows
from determined_master.db.group_commit import GroupWriter
from determined_master.db.migrate import bring_up
from determined_master.db.models import AllocationRow
from determined_master.db.session import Database, ReadSession
from determined_master.experiment_index.indexer import Indexer
from determined_master.experiments.commands.create import Creator
from determined_master.experiments.commands.lifecycle import Lifecycle
from determined_master.experiments.search import Search
from determined_master.logs.line_counts import LineCounts
from determined_master.logs.matching import Matchers
from determined_master.logs.store import LogStore
from determined_master.metrics.store import MetricStore
from determined_master.notifications import Notifications
from determined_master.offloading import Offloader
from determined_master.passwords import Passwords
from determined_master.principal import Principal
from determined_master.secrets import Secrets
from determined_master.settings import Settings
from determined_master.storage_health import StorageHealth
from determined_master.trials import repository as trial_rows
from determined_master.trials.service import Trials
from determined_master.users.authorization import Authorization
from determined_master.users.service import Users

R = TypeVar("R")
Ts = TypeVarTuple("Ts")


@dataclass
class Services:
    settings: Settings
    clock: Clock
    notifications: Notifications
    database: Database
    secrets: Secrets
    blobs: Blobs
    authenticator: Authenticator
    authorization: Authorization
    users: Users
    allocations: Allocations
    agents: Agents
    registry: Registry
    trials: Trials
    lifecycle: Lifecycle
    creator: Creator
    search: Search
    writer: GroupWriter
    metrics: MetricStore
    logs: LogStore
    indexer: Indexer
    offloader: Offloader
    storage: StorageHealth
    epoch: int = 0
    cluster_id: str = ""
    draining: bool = False
    """True while draining: no allocation is placed because the cluster is about to stop."""
    master_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    own_log: deque[tuple[int, float, str, str]] = field(default_factory=lambda: deque(maxlen=5000))
    """Number, time, level and text of the newest lines of the master's own log."""
    matchers: Matchers = field(default_factory=Matchers)
    unpacker: Offloader = field(default_factory=lambda: Offloader(1))
    """A separate offloader, so that long-running contexts delay neither uploads nor checks."""
    model_defs: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Contexts in the format of older clients, by hash."""
    log_counts: LineCounts = field(default_factory=LineCounts)
    _trial_ids: dict[str, int] = field(default_factory=dict)

    async def trial_of(self, principal: Principal) -> int | None:
        """Returns the trial id of a task's token, or None for a user."""
        task_id = principal.task_id
        if task_id is None:
            return None
        known = self._trial_ids.get(task_id)
        if known is None:
            async with self.database.read() as session:
                row = await trial_rows.find_by_task(session, task_id)
            if row is None:
                raise NotFound(f"task {task_id} is not a trial")
            known = self._trial_ids[task_id] = row.id
            if len(self._trial_ids) > 10_000:
                self._trial_ids = {task_id: known}
        return known

    async def check_trial(self, session: ReadSession, principal: Principal, trial_id: int) -> None:
        """Raises Forbidden unless a task writes to its own trial, or a user to a trial that they may change."""
        if not principal.is_task:
            owner_id = await trial_rows.owner_of(session, trial_id)
            await self.authorization.check_change(session, principal, owner_id, f"trial {trial_id}")
        elif await self.trial_of(principal) != trial_id:
            raise Forbidden(f"this task token may not write to trial {trial_id}")

    async def checked_allocation(self, session: ReadSession, principal: Principal, allocation_id: str) -> AllocationRow:
        """Returns the allocation. Raises Forbidden unless it is the task's own, or one that the user may change."""
        if principal.is_task and principal.allocation_id != allocation_id:
            raise Forbidden(f"this task token may not act for allocation {allocation_id}")
        row = await allocation_rows.get(session, allocation_id)
        if not principal.is_task:
            await self.authorization.check_change(session, principal, row.user_id, f"allocation {allocation_id}")
        return row

    async def offload(self, work: Callable[[*Ts], R], *arguments: *Ts) -> R:
        """Runs blocking work on large bodies in a process of its own, which ends afterwards and frees its memory."""
        return await self.offloader.run(work, *arguments)

    async def begin(self) -> None:
        """Writes the first rows of this start; idempotent."""
        if not self.epoch:
            await self.raise_epoch()
            await self.users.ensure_first(self.settings.initial_user_password)

    async def raise_epoch(self) -> None:
        async with self.database.write() as session:
            row = await cluster_rows.raise_epoch(session)
        self.epoch, self.cluster_id = row.master_epoch, row.cluster_id
        self.authenticator.cookie = f"{COOKIE}_{row.cluster_id[:8]}"


def build(settings: Settings, clock: Clock | None = None, announce: Callable[[str], None] = lambda _: None) -> Services:
    """Upgrades the database and builds the services. Blocking; called before the event loop runs.

    ``announce`` is called with one line before an upgrade of the database.
    """
    clock = clock or SystemClock()
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    bring_up(settings.url, announce)
    notifications = Notifications()
    storage = StorageHealth(settings.data, allowed_roots(settings), clock, notifications, settings.low_disk_bytes)
    database = Database(settings.url, notifications, storage.note_failure)
    secrets = Secrets.load(settings.data)
    blobs = Blobs(settings.data / "blobs")
    authenticator = Authenticator(database, secrets, clock)
    allocations = Allocations(clock, authenticator.forget_allocation)
    metrics = MetricStore()
    trials = Trials(
        clock, allocations, metrics.forget, pool_hook=settings.startup_hook, interface=settings.dtrain_network_interface
    )
    authorization = Authorization(is_open=settings.authorization == "open")
    lifecycle = Lifecycle(database, clock, trials, authorization)
    offloader = Offloader(2)
    return Services(
        settings=settings,
        clock=clock,
        notifications=notifications,
        database=database,
        secrets=secrets,
        blobs=blobs,
        authenticator=authenticator,
        authorization=authorization,
        users=Users(database, Passwords(), authenticator.forget_sessions, clock),
        allocations=allocations,
        agents=Agents(database, clock, Containers(clock, allocations), settings.agent_reconnect_wait),
        registry=Registry(),
        trials=trials,
        lifecycle=lifecycle,
        creator=Creator(database, blobs, clock, settings, trials, lifecycle, offloader),
        search=Search(database, clock, trials),
        writer=GroupWriter(database),
        metrics=metrics,
        logs=LogStore(),
        indexer=Indexer(database),
        offloader=offloader,
        storage=storage,
    )
