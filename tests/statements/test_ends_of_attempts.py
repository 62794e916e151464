"""The end of an attempt is one transaction, and the loops find nothing left to do."""

import pytest
from tests.integration.test_completion import Calls, is_completed, next_one, start_search, trial_states
from tests.integration.test_last_output import batch_of, container, end, lines, run_trial
from tests.support.cluster import Cluster
from tests.support.database_reads import transactions

from determined.states import ContainerState, TrialState
from determined_master.experiments.hp_search import Search
from determined_master.loops.trials import TrialLoop

pytestmark = pytest.mark.budget(10, "creates very many rows")


async def test_a_search_goes_through_its_trials_without_the_loops(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent, desired = await start_search(cluster)
    loops = [Calls(monkeypatch, TrialLoop, name) for name in ("_settle_one", "_request_some")]
    loops.append(Calls(monkeypatch, Search, "advance"))
    for _ in range(2):
        await agent.exit(desired)
        desired = await next_one(agent, desired)
        await agent.run(desired)
    await agent.exit(desired)
    assert await is_completed(cluster)
    assert await trial_states(cluster) == [TrialState.COMPLETED] * 3
    assert [each.count for each in loops] == [0, 0, 0]


async def test_the_end_of_an_attempt_and_the_next_trial_are_one_transaction(cluster: Cluster):
    agent, desired = await start_search(cluster)
    with transactions(cluster.master.database) as committed:
        await agent.exit(desired)
        await next_one(agent, desired)
    (ending,) = [each for each in committed if any("UPDATE slot_holds" in statement for statement in each)]
    changes = ("UPDATE trials", "INSERT INTO search_facts", "INSERT INTO trials", "INSERT INTO allocations")
    assert [each for each in changes if not any(statement.startswith(each) for statement in ending)] == []
    assert any("searcher_cursor=" in each for each in ending)
    of_another = [each for each in committed if each is not ending and any("INSERT INTO" in one_of for one_of in each)]
    assert all(any("slot_holds" in statement for statement in each) for each in of_another), of_another


async def test_an_attempt_that_fails_is_left_to_the_loops(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    agent, desired = await start_search(cluster)
    settled = Calls(monkeypatch, TrialLoop, "_settle_one")
    await agent.exit(desired, code=3)
    desired = await next_one(agent, desired)
    assert desired.allocation_id.endswith(".2")
    assert settled.count == 1


async def test_last_output_is_stored_in_the_transaction_of_the_end(cluster: Cluster):
    agent, desired = await run_trial(cluster)
    with transactions(cluster.master.database) as committed:
        assert await end(cluster, agent, desired, batch_of(desired, "loss 1", "loss 2")) == {desired.container_id: 2}
    (of_end,) = [each for each in committed if any("output_done" in text and "UPDATE" in text for text in each)]
    assert sum(text.startswith("INSERT INTO task_logs") for text in of_end) == 1
    assert await lines(cluster) == ["loss 1", "loss 2"]
    row = await container(cluster, desired)
    assert (row.state, row.output_offset, row.output_done) == (ContainerState.TERMINATED, 2, True)
