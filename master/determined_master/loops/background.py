"""The loops of a running master: what wakes each, and how often it runs if nothing does."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from determined_master import notifications
from determined_master.loops import job_followers, loop, packing
from determined_master.loops import schedule as schedules
from determined_master.loops.agents import AgentLoop
from determined_master.loops.checkpoint_removal import CheckpointRemoval
from determined_master.loops.columns import ColumnLoop
from determined_master.loops.deadlines import Deadlines
from determined_master.loops.deletion import Deletion
from determined_master.loops.departures import DepartureLoop
from determined_master.loops.environment_builds import EnvironmentBuilds
from determined_master.loops.idle_services import IdleServices
from determined_master.loops.job_followers import JobFollowers
from determined_master.loops.packing import PackingLoop
from determined_master.loops.providers import ProviderLoop
from determined_master.loops.retention import Retention
from determined_master.loops.schedule import ScheduleLoop
from determined_master.loops.search_tasks import SearchTasks
from determined_master.loops.searches import SearchLoop
from determined_master.loops.storage import StorageLoop
from determined_master.loops.tasks import TaskLoop
from determined_master.loops.trial_states import TrialStates
from determined_master.loops.trials import TrialLoop
from determined_master.notifications import Notifications
from determined_master.proxy.task_pages import CHECK_SECONDS
from determined_master.wiring.services import Services


@dataclass(frozen=True)
class Loop:
    """One loop. ``wakes``: the topics that start a tick. ``interval``: seconds after which it runs without one.
    ``pause``: minimum seconds between two ticks. It ends once ``has_work`` returns False."""

    name: str
    tick: Callable[[], Coroutine[Any, Any, float | None]]
    wakes: tuple[str, ...] = ()
    interval: float = 30.0
    pause: float = 0.0
    has_work: Callable[[], bool] = lambda: True

    async def run(self, topics: Notifications) -> None:
        await loop.run(
            self.name,
            topics,
            self.wakes,
            self.tick,
            interval=self.interval,
            pause=self.pause,
            has_work=self.has_work,
        )


def work_loops(services: Services) -> list[Loop]:
    """Returns the loops of experiments, trials, tasks, checkpoints and pools, in the order of their start."""
    uses = services.streams.uses
    database, clock, allocations = services.database, services.clock, services.allocations
    schedule = ScheduleLoop(services.managers, is_draining=services.draining.is_set)
    wakes = notifications

    def groups_written() -> int:
        return services.writer.groups

    return [
        Loop("search", SearchLoop(database, services.search).tick, (wakes.SEARCH,)),
        Loop("trials", TrialLoop(database, clock, services.trials).tick, (wakes.TRIALS, wakes.ATTEMPTS)),
        Loop("trial states", TrialStates(database, services.trials).tick, (wakes.TRIAL_STATES,)),
        Loop("tasks", TaskLoop(database, clock, services.tasks).tick, (wakes.TASKS, wakes.ATTEMPTS)),
        Loop(
            "idle services",
            IdleServices(database, clock, services.settings, services.tasks, uses).tick,
            (wakes.TASKS, wakes.ATTEMPTS, wakes.STREAMS),
            interval=10.0,
            pause=0.5,
        ),
        Loop("schedule", schedule.tick, (wakes.SCHEDULE,)),
        Loop("schedule check", schedule.check, interval=schedules.CHECK_SECONDS),
        Loop("deadlines", Deadlines(database, clock, services.managers).tick, (wakes.ALLOCATIONS,)),
        Loop("agents", _agents(services).tick, (wakes.AGENTS,)),
        Loop("departures", DepartureLoop(database, clock, services.agents, allocations).tick, (wakes.DEPARTURES,)),
        Loop("deletion", Deletion(services).tick, (wakes.DELETE,)),
        Loop("retention", Retention(services).tick, (wakes.RETENTION,)),
        Loop("checkpoint removal", CheckpointRemoval(services).tick, (wakes.RETENTION, wakes.TASKS)),
        Loop("environment builds", EnvironmentBuilds(services).tick, (wakes.ENVIRONMENTS, wakes.TASKS, wakes.AGENTS)),
        Loop("search tasks", SearchTasks(services).tick, (wakes.SEARCH_TASKS, wakes.TASKS)),
        Loop(
            "job followers",
            JobFollowers(database, services.managers).tick,
            (wakes.JOBS,),
            interval=job_followers.INTERVAL_SECONDS,
        ),
        Loop("storage", StorageLoop(services.storage, services.notifications).tick),
        Loop(
            "pages of tasks",
            services.pages.tick,
            (wakes.SESSIONS, wakes.TASKS, wakes.ATTEMPTS),
            interval=CHECK_SECONDS,
            pause=0.5,
        ),
        # Metric reports are frequent, and each publishes a notification.
        Loop("columns", ColumnLoop(services.indexer).tick, (wakes.COLUMNS,), pause=1.0),
        Loop("packing", PackingLoop(database, groups_written).tick, interval=packing.INTERVAL_SECONDS),
    ]


def provider_loop(providers: ProviderLoop) -> Loop:
    """Returns the loop of providers, which is closed after it has ended."""
    wakes = (notifications.SCHEDULE, notifications.CLUSTER, notifications.PROVIDERS)
    return Loop("providers", providers.tick, wakes, pause=0.2, has_work=lambda: providers.has_work)


def providers_of(services: Services) -> ProviderLoop:
    return ProviderLoop(
        services.database,
        services.settings.pools,
        services.providers,
        services.instances,
        services.managers.queue,
        is_draining=services.draining.is_set,
    )


def _agents(services: Services) -> AgentLoop:
    return AgentLoop(
        services.database, services.clock, services.agents, services.registry, services.settings.agent_reconnect_wait
    )
