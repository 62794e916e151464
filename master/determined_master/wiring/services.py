"""The services of one running master, made once and passed down."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from determined.link.master_folder import AGENT_TOKEN
from determined_master.agents.registry import Registry
from determined_master.agents.service import Agents
from determined_master.allocations.containers import Containers
from determined_master.allocations.rendezvous_wait import RendezvousWait
from determined_master.allocations.service import Allocations
from determined_master.auth.authentication import COOKIE, Authenticator
from determined_master.auth.passwords import Passwords
from determined_master.auth.secrets import Secrets
from determined_master.checkpoints.storage import allowed_roots, folder_roots
from determined_master.clock import Clock, SystemClock
from determined_master.cluster import repository as cluster_rows
from determined_master.cluster.identity import Identity
from determined_master.commands.service import Commands
from determined_master.data_folder.blobs import Blobs
from determined_master.data_folder.checks import check_cluster, check_database, note_cluster
from determined_master.data_folder.storage_health import StorageHealth
from determined_master.db.group_commit import GroupWriter
from determined_master.db.lease import Lease
from determined_master.db.migrate import bring_up
from determined_master.db.session import Database
from determined_master.db.sqlite import file as sqlite_file
from determined_master.experiment_index.indexer import Indexer
from determined_master.experiments.commands.continuation import Continuer
from determined_master.experiments.commands.create import Creator
from determined_master.experiments.commands.lifecycle import Lifecycle
from determined_master.experiments.commands.queue_update import QueueUpdates
from determined_master.experiments.completion import Completion
from determined_master.experiments.hp_search import Search
from determined_master.experiments.kept_searches import KeptSearches
from determined_master.experiments.task_search import TaskSearch
from determined_master.logging import OwnLog
from determined_master.logs.line_counts import LineCounts
from determined_master.logs.matching import Matchers
from determined_master.logs.repository import warn as warn_in_log
from determined_master.logs.store import LogStore
from determined_master.logs.turns import Turns
from determined_master.metrics.store import MetricStore
from determined_master.notifications import PROVIDERS, STREAMS, Notifications
from determined_master.offloading.offloader import Offloader
from determined_master.providers.command_provider import CommandProvider
from determined_master.providers.instances import Instances
from determined_master.providers.local_provider import LocalProvider
from determined_master.providers.master_address import MasterAddress
from determined_master.providers.provider import Provider
from determined_master.providers.slurm.slurm_provider import SlurmProvider
from determined_master.proxy.addresses import Layout
from determined_master.proxy.origins import Origins
from determined_master.proxy.task_network import TaskNetwork
from determined_master.proxy.task_pages import TaskPages
from determined_master.resource_managers.agent_manager import AgentManager
from determined_master.resource_managers.managers import ResourceManagers
from determined_master.settings.database_url import is_postgresql
from determined_master.settings.read_settings import environment
from determined_master.settings.settings import Settings
from determined_master.streams.broker import StreamBroker
from determined_master.streams.uses import Uses
from determined_master.tasks.service import Tasks
from determined_master.trials.access import TrialAccess
from determined_master.trials.service import Trials
from determined_master.users.authorization import Authorization
from determined_master.users.service import Users


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
    managers: ResourceManagers
    address: MasterAddress
    instances: Instances
    providers: Mapping[str, Provider]
    """By type; every pool with a provider of that type uses the same one."""
    registry: Registry
    tasks: Tasks
    commands: Commands
    trials: Trials
    lifecycle: Lifecycle
    creator: Creator
    continuer: Continuer
    queue_updates: QueueUpdates
    search: Search
    task_search: TaskSearch
    writer: GroupWriter
    metrics: MetricStore
    logs: LogStore
    indexer: Indexer
    offloader: Offloader
    storage: StorageHealth
    access: TrialAccess
    rendezvous: RendezvousWait
    streams: StreamBroker
    pages: TaskPages
    lease: Lease | None = None
    """The lease of a database that several masters could reach."""
    identity: Identity = field(default_factory=Identity)
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while draining: no allocation is placed because the cluster is about to stop."""
    own_log: OwnLog = field(default_factory=lambda: deque(maxlen=5000))
    """The newest lines of the master's own log."""
    matchers: Matchers = field(default_factory=Matchers)
    log_turns: Turns = field(default_factory=Turns)
    unpacker: Offloader = field(default_factory=lambda: Offloader(1))
    """A separate offloader, so that long-running contexts delay neither uploads nor checks."""
    model_defs: OrderedDict[str, str] = field(default_factory=OrderedDict)
    """Contexts in the format of older clients, by hash."""
    log_counts: LineCounts = field(default_factory=LineCounts)

    async def begin(self) -> None:
        """Writes the first rows of this start; idempotent."""
        if not self.identity.epoch:
            await self.raise_epoch()
            await self.users.ensure_first(self.settings.initial_user_password)

    async def raise_epoch(self) -> None:
        async with self.database.write() as session:
            row = await cluster_rows.raise_epoch(session)
            check_cluster(self.settings.data, row.cluster_id)
        note_cluster(self.settings.data, row.cluster_id)
        self.identity.epoch, self.identity.cluster_id = row.master_epoch, row.cluster_id
        self.authenticator.cookie = f"{COOKIE}_{row.cluster_id[:8]}"


def build(
    settings: Settings,
    clock: Clock | None = None,
    announce: Callable[[str], None] = lambda _: None,
    umask: int = -1,
) -> Services:
    """Upgrades the database and builds the services. Blocking; called before the event loop runs.

    ``announce`` is called with one line before an upgrade of the database. ``umask`` is that of the user who started
    the master, for tasks on this machine. Raises DatabaseTaken, DatabaseAway, MigrationFailed, DatabaseGone and
    DamagedSecret.
    """
    clock = clock or SystemClock()
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    check_database(settings.data, settings.url)
    secrets = Secrets.load(settings.data)
    lease = _upgraded(settings, announce)
    notifications = Notifications()
    storage = StorageHealth(
        settings.data,
        folder_roots(allowed_roots(settings)),
        clock,
        settings.low_disk_bytes,
        partial(sqlite_file.explained_at, settings.url),
    )
    database = Database(settings.url, notifications, storage.note_failure, lease, storage.note_damage)
    blobs = Blobs(settings.data / "blobs")
    authenticator = Authenticator(database, secrets, clock)
    allocations = Allocations(clock, authenticator.forget_allocation, settings.port_range)
    kept_searches = KeptSearches(notifications)
    metrics = MetricStore(clock, warn_in_log, kept_searches)
    logs = LogStore(clock)
    draining = asyncio.Event()
    agent_manager = AgentManager(database, clock, allocations, settings.pools, draining.is_set)
    managers = ResourceManagers(dict.fromkeys(settings.pools, agent_manager), agent_manager)
    address = MasterAddress(settings.host, settings.port, settings.tls_cert)
    identity = Identity()
    providers = _providers(settings, address, secrets, umask, identity, clock, notifications)
    trials = Trials(
        clock,
        managers,
        metrics.forget,
        hook_in=settings.hook_in,
        interface_in=settings.interface_in,
        cluster_storage=settings.own_checkpoints,
        launch_error=settings.launch_error,
    )
    search = Search(database, clock, trials, kept_searches)
    containers = Containers(clock, allocations, Completion(trials, search), logs)
    agents = Agents(database, clock, containers)
    tasks = Tasks(clock, managers)
    authorization = Authorization(is_open=settings.authorization == "open")
    access, registry = TrialAccess(authorization), Registry()
    streams = StreamBroker(registry, Uses(clock, lambda: notifications.publish((STREAMS,))))
    lifecycle = Lifecycle(database, clock, trials, authorization)
    offloader = Offloader(2)
    creator = Creator(database, blobs, clock, settings, managers, trials, lifecycle, offloader)
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
        agents=agents,
        managers=managers,
        address=address,
        instances=Instances(database, clock, agents),
        providers=providers,
        registry=registry,
        tasks=tasks,
        commands=Commands(database, blobs, clock, settings, managers, tasks, authorization, offloader),
        trials=trials,
        lifecycle=lifecycle,
        creator=creator,
        continuer=Continuer(database, clock, settings, authorization, trials, creator, lifecycle),
        queue_updates=QueueUpdates(database, clock, authorization, managers, settings),
        search=search,
        task_search=TaskSearch(database, clock, trials),
        writer=GroupWriter(database),
        metrics=metrics,
        logs=logs,
        indexer=Indexer(database),
        offloader=offloader,
        storage=storage,
        access=access,
        rendezvous=RendezvousWait(database, clock, notifications, allocations, access, lambda: registry.master_seen_at),
        streams=streams,
        pages=_task_pages(settings, database, authorization, streams, clock),
        lease=lease,
        identity=identity,
        draining=draining,
    )


def _task_pages(
    settings: Settings, database: Database, authorization: Authorization, streams: StreamBroker, clock: Clock
) -> TaskPages:
    layout = Layout(settings.proxy_domain, settings.proxy_url)
    origins = Origins(layout, settings.proxy_ports, clock, settings.data / "task-origins.json")
    return TaskPages(database, authorization, TaskNetwork(database, authorization, streams), origins, clock)


def _upgraded(settings: Settings, announce: Callable[[str], None]) -> Lease | None:
    """Upgrades the database. Returns the lease of one that several masters could reach, which is held from then on."""
    lease = Lease(settings.url) if is_postgresql(settings.url) else None
    if lease is not None:
        lease.acquire(patience=settings.database_wait_seconds)
    try:
        bring_up(settings.url, announce)
    except BaseException:
        if lease is not None:
            lease.release()
        raise
    return lease


def _providers(
    settings: Settings,
    address: MasterAddress,
    secrets: Secrets,
    umask: int,
    identity: Identity,
    clock: Clock,
    notifications: Notifications,
) -> dict[str, Provider]:
    """Returns the provider of each type."""
    variables = environment()
    token_file = settings.data / AGENT_TOKEN
    return {
        "command": CommandProvider(address, token_file, variables, secrets.join_token),
        "local": LocalProvider(settings.data, address, variables, umask=umask),
        "slurm": SlurmProvider(
            address,
            token_file,
            variables,
            settings.pools,
            lambda: identity.cluster_id,
            umask=umask,
            on_change=lambda: notifications.publish((PROVIDERS,)),
            now=clock.now,
        ),
    }
