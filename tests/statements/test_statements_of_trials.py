"""Operations that happen in every trial take few statements and use indexes."""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import func, insert, select
from tests.support.cluster import CONFIG, Cluster, FakeAgent
from tests.support.database_reads import reads, transactions, writes
from tests.support.makers import add_experiment, add_trial
from tests.support.waiting import eventually

from determined.link.messages import DesiredContainer
from determined.states import ContainerState, TrialState
from determined_master.agents.service import StoredReport
from determined_master.allocations import agent_containers_repository
from determined_master.allocations.desired_state import desired_containers
from determined_master.db.models import AllocationRow, EventRow, ExperimentRow, SearchEventRow, SeriesCursorRow
from determined_master.experiments.kept_searches import LATE_SECONDS
from determined_master.loops.packing import PackingLoop
from determined_master.loops.searches import SearchLoop
from determined_master.metric_series import repository
from determined_master.resource_managers import waiting_reasons
from determined_master.trials import repository as trial_rows


async def run_trial(cluster: Cluster) -> tuple[FakeAgent, dict[str, str]]:
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return agent, cluster.as_task(desired.allocation_id)


async def test_a_search_processes_a_report_without_reading_its_experiment(cluster: Cluster):
    _, task = await run_trial(cluster)
    metrics = {"trialId": 1, "trialRunId": 1, "stepsCompleted": 1, "metrics": {"avgMetrics": {"loss": 0.5}}}
    with writes(cluster.master.database) as statements:
        body = {"group": "validation", "metrics": metrics}
        assert (await cluster.post("/api/v1/trials/1/metrics", body, **task)).status_code == 200

        async def is_processed() -> bool:
            async with cluster.master.database.read() as session:
                return bool(await session.scalar(select(ExperimentRow.searcher_cursor)))

        await eventually(is_processed)
    of_search = [each for each in statements if "searcher_cursor" in each or "search_facts" in each]
    assert [each.split()[0] for each in of_search] == ["UPDATE", "UPDATE"]


async def test_validations_that_cause_no_action_are_processed_with_the_next_event(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)

    async def report(steps: int) -> None:
        metrics = {"trialId": 1, "trialRunId": 1, "stepsCompleted": steps, "metrics": {"avgMetrics": {"loss": 0.5}}}
        body = {"group": "validation", "metrics": metrics}
        answer = await cluster.post("/api/v1/trials/1/metrics", body, **cluster.as_task(desired.allocation_id))
        assert answer.status_code == 200

    async def processed() -> int:
        async with cluster.master.database.read() as session:
            done = select(func.count()).select_from(SearchEventRow).where(SearchEventRow.processed)
            return await session.scalar(done) or 0

    async def count_is(count: int) -> bool:
        return await processed() == count

    await report(1)
    await eventually(lambda: count_is(1))
    await report(2)
    wait = await SearchLoop(cluster.master.database, cluster.master.search).tick()
    assert wait is not None
    assert 0 < wait <= LATE_SECONDS
    await eventually(lambda: count_is(2))
    with writes(cluster.master.database) as statements:
        await report(3)
        await agent.exit(desired)
        await eventually(lambda: count_is(4))
    assert len([each for each in statements if each.startswith("UPDATE search_facts")]) == 1


@pytest.mark.sqlite
async def test_queries_of_each_pass_use_the_indexes_of_live_rows(cluster: Cluster):
    """Queries of each pass read live containers and trials only, however many have ended."""
    database = cluster.master.database
    with reads(database) as statements:
        async with database.read() as session:
            await agent_containers_repository.agents_of_zero_slot_containers(session)
            await agent_containers_repository.wanted_on_agent(session, "agent-1")
            await agent_containers_repository.reported_on_agent(session, "agent-1")
            await trial_rows.live(session, 1)
            await trial_rows.has_live(session, 1)
    assert len(statements) == 5
    with closing(sqlite3.connect(cluster.master.settings.data / "master.sqlite")) as connection:
        plans = [
            [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {each}", ["x"] * each.count("?"))]
            for each in statements
        ]
    for plan in plans[:3]:
        assert any("INDEX ix_containers_live" in step for step in plan), plan
    for plan in plans[3:]:
        assert any("INDEX ix_trials_live" in step for step in plan), plan
        assert [step for step in plan if "SCAN" in step] == []


async def test_the_reasons_of_waits_are_stored_together_with_a_placement(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(waiting_reasons, "DELAY_SECONDS", 0.0)
    for _ in range(2):
        await cluster.create(CONFIG)

    async def waiting() -> list[str]:
        async with cluster.master.database.read() as session:
            return [row.waiting for row in await session.scalars(select(AllocationRow)) if row.waiting]

    async def both_wait() -> bool:
        return len([each for each in await waiting() if "agent" in each]) == 2

    await eventually(both_wait)
    with transactions(cluster.master.database) as committed:
        agent = await cluster.join()
        await agent.wait_for_desired()

        async def is_explained() -> bool:
            return [each.partition(";")[0] for each in await waiting()] == ["needs 1 slot"]

        await eventually(is_explained)
    (placing,) = [each for each in committed if any("INTO slot_holds" in statement for statement in each)]
    assert len([each for each in placing if "agents" in each and "slot_holds" not in each]) == 1
    assert any(each.startswith("UPDATE allocations SET waiting=") for each in placing)


async def test_a_report_of_one_container_takes_four_statements(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    stored = StoredReport()
    assert await cluster.master.agents.on_report(
        "one", [agent.report_of(desired, ContainerState.PULLING)], stored=stored
    )
    with transactions(cluster.master.database) as committed:
        assert await cluster.master.agents.on_report(
            "one", [agent.report_of(desired, ContainerState.RUNNING)], stored=stored
        )
    (statements,) = [each for each in committed if any("UPDATE containers" in statement for statement in each)]
    assert [each.split()[0] for each in statements] == ["SELECT", "UPDATE", "UPDATE", "INSERT"]
    assert "spec" not in statements[0]


async def test_a_lone_container_becomes_ready_in_the_four_statements_of_its_report(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    running = agent.report_of(desired, ContainerState.RUNNING).model_copy(update={"is_ready": True})
    with transactions(cluster.master.database) as committed:
        await cluster.master.agents.on_report(agent.id, [running])
    (statements,) = [each for each in committed if any("ready_at" in statement for statement in each)]
    assert [each.split()[0] for each in statements] == ["SELECT", "UPDATE", "UPDATE", "INSERT"]


async def test_short_ended_trials_are_not_packed_one_by_one(cluster: Cluster):
    with transactions(cluster.master.database) as committed:
        async with cluster.master.database.write() as session:
            experiment = await add_experiment(session)
            trials = [await add_trial(session, experiment, state=TrialState.COMPLETED) for _ in range(3)]
            await session.execute(insert(SeriesCursorRow), [{"trial_id": trials[0].id}])
        await PackingLoop(cluster.master.database, lambda: 0).tick()

        async def finished() -> bool:  # by this packer, or by the master's own
            async with cluster.master.database.read() as session:
                return await repository.due(session, 1, 10, 0) == []

        await eventually(finished)
    _, finishing, *_ = [each for each in committed if any("series_cursors" in statement for statement in each)]
    assert [each.split()[0] for each in finishing] == ["SELECT", "UPDATE", "INSERT"]
    async with cluster.master.database.read() as session:
        cursors = (await session.scalars(select(SeriesCursorRow))).all()
    assert {row.trial_id: row.done_run for row in cursors} == {trial.id: trial.run_id for trial in trials}


async def test_the_token_of_a_task_is_looked_up_in_one_statement(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    with reads(cluster.master.database) as statements:
        principal = await cluster.master.authenticator.task(cluster.master.secrets.task_token(desired.allocation_id))
    assert (principal.username, principal.task_id) == ("admin", desired.allocation_id.rpartition(".")[0])
    (of_users,) = [each for each in statements if "users" in each]
    assert "token_scope" in of_users


async def test_the_spec_of_a_container_is_read_once_for_its_agent(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    master, known = cluster.master, dict[str, DesiredContainer]()
    counts = []
    for _ in range(2):
        with reads(master.database) as statements:
            containers = await desired_containers(
                master.database, master.secrets, master.identity.cluster_id, agent.id, known=known
            )
        assert containers == [desired]
        counts.append(len([each for each in statements if "allocations.spec" in each]))
    assert counts == [1, 0]


async def test_an_attempt_becomes_ready_once_and_without_reading_its_row(cluster: Cluster):
    agent = await cluster.join()
    await cluster.create()
    (desired,) = await agent.wait_for_desired()
    await agent.send_report(desired, ContainerState.RUNNING)
    path = f"/api/v1/allocations/{desired.allocation_id}/resources/{desired.container_id}/rendezvous"
    with transactions(cluster.master.database) as committed:
        for _ in range(2):
            answer = await cluster.client.get(path, headers=cluster.as_task(desired.allocation_id))
            assert answer.status_code == 200
    (statements,) = [each for each in committed if any("ready_at" in statement for statement in each)]
    assert [each.split()[0] for each in statements] == ["UPDATE", "INSERT"]
    async with cluster.master.database.read() as session:
        recorded = select(func.count()).where(EventRow.kind == "ready", EventRow.target_id == desired.allocation_id)
        assert await session.scalar(recorded) == 1
