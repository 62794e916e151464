"""Jobs of experiments: pool, priority, weight and position, and how they change."""

import pytest
from sqlalchemy import select
from tests.support.cluster import CONFIG, Cluster
from tests.support.waiting import eventually

from determined_master.allocations import queue_repository
from determined_master.db.models import AllocationRow, ExperimentRow, JobRow
from determined_master.jobs import repository as jobs
from determined_master.tasks import repository as tasks


async def job_of(cluster: Cluster, experiment_id: int) -> JobRow:
    async with cluster.master.database.read() as session:
        experiment = await session.get_one(ExperimentRow, experiment_id)
        return await jobs.get(session, experiment.job_id)


async def test_an_experiment_has_a_job_and_its_trials_are_tasks_of_it(cluster: Cluster):
    experiment = await cluster.create(CONFIG + "resources: {priority: 7, weight: 2.5}\n")
    job = await job_of(cluster, experiment)
    assert (job.pool, job.priority, job.weight) == ("default", 7, 2.5)
    agent = await cluster.join()
    desired = (await agent.wait_for_desired())[0]
    assert desired.spec is not None
    async with cluster.master.database.read() as session:
        task = await tasks.get(session, desired.spec.task_id)
        assert job.position == (await session.get_one(ExperimentRow, experiment)).start_time
    assert (task.kind.value, task.job_id, task.experiment_id, task.user_id) == ("TRIAL", job.id, experiment, 1)
    assert (task.state, task.token_scope.value) == (None, "trial")


async def test_a_new_priority_applies_to_trials_that_wait(cluster: Cluster):
    first, second = await cluster.create(), await cluster.create()

    async def both_wait() -> bool:
        async with cluster.master.database.read() as session:
            return (await queue_repository.counts(session, "default"))[0] == 2

    await eventually(both_wait)
    path = f"/api/v1/experiments/{second}"
    assert (await cluster.client.patch(path, json={"resources": {"priority": 1}})).status_code == 200
    agent = await cluster.join(slots=1)
    assert [each.allocation_id.split(".")[0] for each in await agent.wait_for_desired()] == [str(second)]
    assert (await job_of(cluster, first)).priority == 42


async def test_each_waiting_trial_follows_its_own_job(cluster: Cluster):
    experiments = [await cluster.create() for _ in range(3)]

    async def all_wait() -> bool:
        async with cluster.master.database.read() as session:
            return (await queue_repository.counts(session, "default"))[0] == 3

    await eventually(all_wait)
    for priority, experiment in enumerate(experiments, 10):
        path = f"/api/v1/experiments/{experiment}"
        assert (await cluster.client.patch(path, json={"resources": {"priority": priority}})).status_code == 200
    async with cluster.master.database.read() as session:
        rows = (await session.scalars(select(AllocationRow).order_by(AllocationRow.id))).all()
    positions = [(await job_of(cluster, experiment)).position for experiment in experiments]
    assert [(row.priority, row.submitted_at) for row in rows] == list(zip((10, 11, 12), positions, strict=True))


@pytest.mark.parametrize("resources", [{"priority": 0}, {"priority": 100}])
async def test_a_priority_out_of_range_changes_nothing(cluster: Cluster, resources: dict[str, int]):
    experiment = await cluster.create()
    answer = await cluster.client.patch(f"/api/v1/experiments/{experiment}", json={"resources": resources})
    assert answer.status_code == 400
    assert (await job_of(cluster, experiment)).priority == 42
