"""The displayed state: the function and the SQL expression agree, and every route shows the same state."""

from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from tests.support.cluster import Cluster
from tests.support.makers import add_allocation, add_experiment, add_trial, rolled_back

from determined.states import AllocationState, ContainerState, ExperimentState
from determined_master.db.models import ExperimentRow
from determined_master.experiment_index.filter_sql import shown_state
from determined_master.states.display_state import display_state

Case = tuple[ExperimentState, Sequence[AllocationState]]
CASES = st.lists(
    st.tuples(st.sampled_from(ExperimentState), st.lists(st.sampled_from(AllocationState), max_size=4)),
    min_size=1,
    max_size=12,
)


# Each example is rolled back, so that the next one begins with an empty database.
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases=CASES)
async def test_the_function_and_the_sql_expression_give_the_same_state(cluster: Cluster, cases: Sequence[Case]):
    async with rolled_back(cluster.master.database) as session:
        expected = {}
        for state, allocations in cases:
            row = await add_experiment(session, state=state, end_time=None)
            for allocation in allocations:
                await add_allocation(session, await add_trial(session, row), allocation)
            expected[row.id] = display_state(state, [each for each in allocations if each.is_live])
        rows = await session.execute(select(ExperimentRow.id, shown_state()).order_by(ExperimentRow.id))
        assert [tuple(row) for row in rows] == sorted(expected.items())


async def displayed_states(cluster: Cluster, experiment: int, trial: int) -> dict[str, str]:
    """Returns the displayed state by the route or field that shows it."""
    status = await cluster.get(f"/detent/experiments/{experiment}/status")
    answer = await cluster.post("/detent/experiments/search", {"columns": ["state"]})
    (row,) = [each for each in answer.json()["experiments"] if each["id"] == experiment]
    one_experiment = (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]
    (listed,) = [e for e in (await cluster.get("/api/v1/experiments"))["experiments"] if e["id"] == experiment]
    one_trial = (await cluster.get(f"/api/v1/trials/{trial}"))["trial"]
    trials = (await cluster.get(f"/api/v1/experiments/{experiment}/trials"))["trials"]
    progress = await cluster.get(f"/detent/trials/{trial}/progress")
    return {
        "status": status["state"],
        "status of the trial": status["trials"][0]["state"],
        "search": row["state"],
        "experiment": one_experiment["displayState"],
        "list": listed["displayState"],
        "trial": one_trial["displayState"],
        "trials": trials[0]["displayState"],
        "progress": f"STATE_{progress['state']}",
    }


async def test_every_route_shows_the_same_state(cluster: Cluster):
    agent = await cluster.join()
    experiment = await cluster.create()
    (desired,) = await agent.wait_for_desired()
    assert set((await displayed_states(cluster, experiment, 1)).values()) == {"STATE_STARTING"}
    await agent.run(desired)
    await agent.send_report(desired, ContainerState.RUNNING)
    assert set((await displayed_states(cluster, experiment, 1)).values()) == {"STATE_RUNNING"}
    await cluster.post(f"/api/v1/experiments/{experiment}/pause")
    assert set((await displayed_states(cluster, experiment, 1)).values()) == {"STATE_PAUSING"}
    older = (await cluster.get(f"/api/v1/experiments/{experiment}"))["experiment"]
    assert older["state"] == "STATE_PAUSED"
