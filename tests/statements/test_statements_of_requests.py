"""Requests take few and small statements."""

from tests.integration.test_request_bounds import settings
from tests.integration.test_task_tokens import token_of, wait_for_container
from tests.support.agent_socket import agent_socket
from tests.support.cluster import CONFIG, Cluster
from tests.support.database_reads import Execution, executions, reads, writes
from tests.support.makers import rolled_back
from tests.support.write_holds import MAX_HOLD_SECONDS, write_holds

from determined.config.experiment import MAX_LABELS
from determined.link.messages import MAX_SLOTS, SlotFacts, SlotStatus
from determined.states import ExperimentState
from determined_master.api.schemas.users import MAX_SETTINGS
from determined_master.experiments import repository


async def test_all_settings_of_a_request_are_stored_in_few_statements(cluster: Cluster):
    with write_holds(cluster.master.database) as holds, writes(cluster.master.database) as statements:
        assert (await cluster.post("/api/v1/users/setting", settings(MAX_SETTINGS))).status_code == 200
    assert len(statements) < 10
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)
    assert len((await cluster.get("/api/v1/users/setting"))["settings"]) == MAX_SETTINGS


async def test_a_new_status_of_all_slots_is_stored_in_a_short_transaction(cluster: Cluster):
    agent = await cluster.join("large", slots=MAX_SLOTS)
    busy = [SlotStatus(id=n, status="occupied", reason="by others") for n in range(MAX_SLOTS)]
    with write_holds(cluster.master.database) as holds, writes(cluster.master.database) as statements:
        await cluster.master.agents.on_report(agent.id, [], busy)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)
    assert len(statements) < 10


async def test_many_labels_are_stored_in_small_statements(cluster: Cluster):
    """Statements are prepared on the event loop, and one of 76,000 rows blocks it for more than half a second."""
    rows: list[int] = []

    def note(each: Execution) -> None:
        if each.is_many and "experiment_labels" in each.sql:
            rows.append(len(each.values))

    with executions(cluster.master.database, note, only_reads=False):
        await cluster.create(CONFIG + "labels:\n" + "".join(f"  - label-{n}\n" for n in range(MAX_LABELS)))
    assert sum(rows) == MAX_LABELS
    assert max(rows) <= 1000


async def test_the_first_request_of_a_task_needs_no_query_for_its_token(cluster: Cluster):
    async with agent_socket(cluster, "one", slots=[SlotFacts(id=0)]) as socket:
        token = token_of(await wait_for_container(cluster, socket))
        with reads(cluster.master.database) as statements:
            principal = await cluster.master.authenticator.principal({"authorization": f"Bearer {token}"}, {})
        assert statements == []
        cached = cluster.master.authenticator.known_task(token)
        assert cached == principal
        allocation_id = cluster.master.secrets.allocation_of(token)
        assert allocation_id is not None
        cluster.master.authenticator.forget_allocation(allocation_id)
        assert await cluster.master.authenticator.task(token) == cached  # as a request reads it


async def test_a_changed_row_is_not_read_again(cluster: Cluster):
    experiment = await cluster.create(activate=False)
    async with rolled_back(cluster.master.database) as session:
        row = await repository.get(session, experiment)
        with writes(cluster.master.database) as statements:
            await repository.move(session, cluster.master.clock, row, ExperimentState.ACTIVE, progress=0.25)
            await repository.change(session, row, progress=0.5)
        assert [each.split()[0] for each in statements] == ["UPDATE", "INSERT", "UPDATE"]
        assert (row.state, row.progress) == (ExperimentState.ACTIVE, 0.5)
        await session.refresh(row)
        assert (row.state, row.progress) == (ExperimentState.ACTIVE, 0.5)
