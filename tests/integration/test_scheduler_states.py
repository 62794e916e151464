"""The scheduler's states in memory follow the commits: they equal states that are read anew."""

import logging
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from tests.support.cluster import Cluster, open_cluster
from tests.support.makers import rolled_back

from determined.link.messages import Hello, SlotFacts, SlotStatus
from determined.states import AllocationState, ContainerState, ExitReason, InstanceState, TaskKind, TokenScope
from determined_master.agents import repository as agent_rows
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.service import SlotRequest
from determined_master.auth.principal import Principal
from determined_master.db.models import AllocationRow, InstanceRow, JobRow, TaskRow
from determined_master.db.models.base import EARLIEST
from determined_master.db.session import WriteSession
from determined_master.jobs import repository as job_rows
from determined_master.resource_managers.agent_manager import AgentManager
from determined_master.resource_managers.pool_states import PoolStates
from determined_master.scheduling.plan import SchedulingPlan
from determined_master.scheduling.view import Constraints, TaskGroup

ADMIN = Principal(user_id=1, username="admin", admin=True)
PROVIDER = {"type": "command", "launch": ["true"], "terminate": ["true"], "max_agents": 3}
POOLS = [
    {"pool_name": "default", "scheduler": {"type": "priority", "preemption": True}},
    {"pool_name": "fair", "scheduler": {"type": "fair_share"}, "max_slots_per_user": 4},
    {"pool_name": "elastic", "provider": PROVIDER},
]
NAMES = ("default", "fair", "elastic")
AGENTS = tuple(f"agent-{n}" for n in range(5))
MAX_COMMITS = 20


class Writer:
    """Makes random changes with the functions of the product."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.master = cluster.master
        self.manager = manager_of(cluster)
        self.rng = random.Random(seed)
        self.jobs: list[str] = []
        self.tasks: dict[str, str] = {}
        self.submitted = 0

    async def submit(self, session: WriteSession) -> None:
        if not self.jobs or self.rng.random() < 0.3:
            await self._new_job(session)
        job = await job_rows.get(session, self.rng.choice(self.jobs))
        requests = []
        for _ in range(self.rng.randint(1, 4)):
            self.submitted += 1
            name = f"{job.id}.t{self.submitted}"
            session.add(
                TaskRow(id=name, kind=TaskKind.TRIAL, job_id=job.id, user_id=1 + self.submitted % 2,
                        token_scope=TokenScope.TRIAL, created_at=EARLIEST)
            )  # fmt: skip
            await session.flush()
            constraints = Constraints(
                single_agent=self.rng.random() < 0.3,
                agent_id=self.rng.choice([None, None, None, *AGENTS[:2]]),
                excluded_agents=frozenset(self.rng.sample(AGENTS, self.rng.choice([0, 0, 1]))),
            )
            groups = [TaskGroup(slots=self.rng.choice([0, 1, 1, 2, 3]), constraints=constraints)]
            groups += [TaskGroup(slots=1)] * self.rng.choice([0, 0, 1])
            requests.append(
                SlotRequest(
                    task_id=name, run_id=1, groups=tuple(groups), pool=job.pool, priority=job.priority, owner="admin",
                    user_id=1 + self.submitted % 2, submitted_at=job.position, spec={}, preemption_timeout=60,
                )
            )  # fmt: skip
        await self.manager.request(session, requests)

    async def _new_job(self, session: WriteSession) -> None:
        name = f"j{len(self.jobs)}-{self.rng.randrange(10**9)}"
        limit = self.rng.choice([None, None, 2])
        position = EARLIEST + timedelta(seconds=self.rng.randrange(5))
        await job_rows.add(
            session, name, pool=self.rng.choice(NAMES), priority=self.rng.choice([1, 42, 42]),
            position=position, max_slots=limit,
        )  # fmt: skip
        self.jobs.append(name)

    async def change_job(self, session: WriteSession) -> None:
        jobs = [job for job in self.jobs if await session.get(JobRow, job)]
        if jobs:
            values: dict[str, Any] = self.rng.choice(
                [{"priority": 7}, {"weight": 3.0}, {"max_slots": 1}, {"position": EARLIEST}, {"priority": 42}]
            )
            await job_rows.change(session, self.rng.choice(jobs), **values)

    async def withdraw(self, session: WriteSession) -> None:
        rows = await self._rows(session, AllocationState.PENDING)
        await self.manager.withdraw(session, [row.id for row in rows[:1]], why="for a test")

    async def end(self, session: WriteSession) -> None:
        for row in (await self._running(session))[:1]:
            for container in await allocation_rows.containers_of(session, row.id):
                await allocation_rows.move_container(session, self.master.clock, container, ContainerState.TERMINATED)
            await self.master.allocations.end(session, row, ExitReason.ERRORED)

    async def end_containers(self, session: WriteSession) -> None:
        for row in (await self._running(session))[:1]:
            for container in (await allocation_rows.containers_of(session, row.id))[:1]:
                await allocation_rows.move_container(session, self.master.clock, container, ContainerState.TERMINATED)

    async def leave(self, session: WriteSession) -> None:
        for row in (await self._running(session))[:1]:
            await self.master.allocations.mark_ready(session, row.id, row.task_id)
            await session.refresh(row)
            await self.manager.preempt(session, row, why="for a test")

    async def kill(self, session: WriteSession) -> None:
        for row in (await self._rows(session))[:1]:
            await self.manager.kill(session, row, why="for a test")

    async def lose(self, session: WriteSession) -> None:
        await self.master.agents.retire(session, self.rng.choice(AGENTS), why="for a test")

    async def _rows(self, session: WriteSession, *states: AllocationState) -> list[AllocationRow]:
        rows = [row for row in await allocation_rows.live(session) if not states or row.state in states]
        self.rng.shuffle(rows)
        return rows

    async def _running(self, session: WriteSession) -> list[AllocationRow]:
        return [row for row in await self._rows(session) if row.state is not AllocationState.PENDING]

    async def join(self, name: str) -> None:
        facts = [SlotFacts(id=n) for n in range(self.rng.choice([0, 2, 4, 4]))]
        hello = Hello(agent_id=name, pool=NAMES[AGENTS.index(name) % 3], slots=facts)
        await self.master.agents.welcome(hello)

    async def agent(self) -> None:
        """Changes a random agent, in a transaction of its own."""
        agents, name, rng = self.master.agents, self.rng.choice(AGENTS), self.rng
        async with self.master.database.read() as session:
            row = await agent_rows.find(session, name)
            slots = await agent_rows.slots(session, name)
        if row is None or row.lost or row.disconnected_at is not None or rng.random() < 0.3:
            await self.join(name)
            return
        action = rng.randrange(4)
        if action == 0:
            await agents.disconnected(name)
        elif action == 1:
            await agents.set_enabled(name, enabled=rng.random() < 0.6, drain=rng.random() < 0.5, principal=ADMIN)
        elif slots and action == 2:
            is_enabled, slot = rng.random() < 0.6, rng.choice(slots).slot_id
            await agents.set_slot_enabled(name, slot, enabled=is_enabled, drain=True, principal=ADMIN)
        elif slots:
            status = rng.choice(["occupied", "unhealthy", "idle"])
            await agents.on_report(name, [], [SlotStatus(id=rng.choice(slots).slot_id, status=status, reason="broken")])

    async def instance(self) -> None:
        instances, settings = self.master.instances, self.master.settings.pools["elastic"].provider
        assert settings is not None
        async with self.master.database.read() as session:
            rows = (await session.scalars(select(InstanceRow))).all()
        for row in rows:
            if row.state is InstanceState.STARTING:
                await instances.not_started(row.agent_id, "it broke", may_exist=self.rng.random() < 0.5)
                return
            if row.state is InstanceState.ENDING:
                await instances.not_ended(row.agent_id, "it does not answer")
        await instances.order("elastic", settings, 1)

    async def step(self) -> None:
        in_session = [self.submit, self.submit, self.submit, self.change_job, self.withdraw, self.end]
        in_session += [
            self.end_containers,
            self.leave,
            self.kill,
            self.lose if self.rng.random() < 0.3 else self.submit,
        ]
        chosen = self.rng.randrange(len(in_session) + 9)
        if chosen < len(in_session):
            known = list(self.jobs)
            if self.rng.random() < 0.25:
                async with rolled_back(self.master.database) as session:
                    await in_session[chosen](session)  # type: ignore[arg-type]
                self.jobs = known
            else:
                async with self.master.database.write() as session:
                    await in_session[chosen](session)
        elif chosen == len(in_session):
            await self.instance()
        elif chosen < len(in_session) + 5:
            await self.agent()
        else:
            await self.manager.reconcile()


def manager_of(cluster: Cluster) -> AgentManager:
    manager = cluster.master.managers.of("default")
    assert isinstance(manager, AgentManager)
    return manager


@pytest.fixture
async def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cluster]:
    """Yields a master whose own loops place nothing."""
    async with open_cluster(tmp_path, resource_pools=POOLS) as cluster:
        cluster.master.draining.set()
        monkeypatch.setattr(manager_of(cluster), "_is_draining", lambda: False)  # the writers below do place
        yield cluster


def sorted_plan(plan: SchedulingPlan) -> Any:
    parts = (plan.placements, plan.releases, plan.refusals)
    return [sorted(part, key=repr) for part in parts], dict(plan.waiting)


async def plans(cluster: Cluster) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the plans of the kept states and of states that are read anew, by pool. The master's other loops may
    commit in between, for example kill what runs on a disabled agent: then both are read again."""
    for _ in range(MAX_COMMITS):
        async with manager_of(cluster).kept.current() as pools:
            kept = {name: sorted_plan(pool.scheduler.plan()) for name, pool in pools.items()}
            fresh = PoolStates(cluster.master.settings.pools, lambda _: True)
            async with cluster.master.database.read() as session:
                await fresh.read(session)
            if not cluster.master.database.queue_changes:
                return kept, {name: sorted_plan(pool.scheduler.plan()) for name, pool in fresh.pools.items()}
    raise AssertionError("the loops of the master committed during every comparison")


@pytest.mark.parametrize("seed", range(3))
async def test_kept_states_equal_those_read_anew_after_random_commits_and_rollbacks(
    quiet: Cluster, seed: int, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.ERROR)
    writer = Writer(quiet, seed)
    has_run = 0
    for name in AGENTS:
        await writer.join(name)
    for number in range(120):
        await writer.step()
        assert quiet.master.database.queue_changes.is_known, "a change was not noted"
        if number % 6 == 0:
            assert not await writer.manager.kept.check()
            kept, fresh = await plans(quiet)
            assert kept == fresh
            async with writer.manager.kept.current() as pools:
                running = [each for pool in pools.values() for each in pool.scheduler.pool.running.values()]
            has_run += len(running)
    assert has_run > 25, "too little ran"
    assert writer.submitted > 20
    assert [record.message for record in caplog.records if "kept state" in record.message] == []


async def test_a_rolled_back_change_is_not_noted_for_the_scheduler(quiet: Cluster):
    writer = Writer(quiet, 1)
    await writer.manager.reconcile()
    async with rolled_back(quiet.master.database) as session:
        await writer.submit(session)  # type: ignore[arg-type]
    assert not quiet.master.database.queue_changes


async def test_a_change_that_is_not_noted_is_logged_and_everything_is_read_anew(
    quiet: Cluster, caplog: pytest.LogCaptureFixture
):
    writer = Writer(quiet, 2)
    async with quiet.master.database.write() as session:
        await writer.submit(session)
    await writer.manager.reconcile()
    async with quiet.master.database.write() as session:
        await session.execute(update(JobRow).values(priority=3))
    assert "a change of ['jobs'] was not noted" in caplog.text
    async with manager_of(quiet).kept.current() as pools:
        waiting = [each for pool in pools.values() for each in pool.scheduler.pool.queue.values()]
    assert {each.priority for each in waiting} == {3}


async def test_a_check_replaces_a_state_that_differs(quiet: Cluster, caplog: pytest.LogCaptureFixture):
    writer = Writer(quiet, 3)
    async with quiet.master.database.write() as session:
        await writer.submit(session)
    kept = writer.manager.kept
    async with kept.current() as pools:
        name, pool = next((name, pool) for pool in pools.values() for name in pool.scheduler.pool.queue)
        pool.scheduler.edit().remove(name)
    difference = await kept.check()
    assert name in difference.allocations
    assert "the kept state of the queue differed" in caplog.text
    assert not await kept.check()
