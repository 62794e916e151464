"""The last output of a container, which its agent sends together with its end."""

import json
from typing import Any
from unittest.mock import AsyncMock

import pytest
from sqlalchemy import select
from tests.support.agent_socket import agent_socket
from tests.support.cluster import CONFIG, Cluster, FakeAgent

from determined.link.messages import (
    ContainerExit,
    DesiredContainer,
    OutputBatch,
    OutputLine,
    ReportedState,
    SlotFacts,
    SlotStatus,
)
from determined.states import ContainerState
from determined_master.agents import repository
from determined_master.agents.service import StoredReport
from determined_master.api.agent_output import lines_of
from determined_master.db.models import ContainerRow
from determined_master.logs.store import QUICK_LINES

POLICY = "log_policies: [{name: full, pattern: 'no space left', action: cancel_retries}]\n"


def batch_of(desired: DesiredContainer, *texts: str, start: int = 0) -> OutputBatch:
    assert desired.spec is not None
    return OutputBatch(
        container_id=desired.container_id,
        allocation_id=desired.allocation_id,
        task_id=desired.spec.task_id,
        start=start,
        end=start + len(texts),
        lines=[OutputLine(timestamp=1_700_000_000.5, log=text) for text in texts],
    )


async def run_trial(cluster: Cluster, config: str = CONFIG) -> tuple[FakeAgent, DesiredContainer]:
    agent = await cluster.join()
    await cluster.create(config)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return agent, desired


async def end(cluster: Cluster, agent: FakeAgent, desired: DesiredContainer, *batches: OutputBatch) -> dict[str, int]:
    """Reports the end of a container that exited with code 1; returns the answer to the agent."""
    ended = agent.report_of(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=1))
    stored = StoredReport()
    await cluster.master.agents.on_report(
        agent.id,
        [ended.model_copy(update={"output_done": False})],
        stored=stored,
        last_output=[lines_of(agent.id, batch) for batch in batches],
    )
    return stored.take_output()


async def lines(cluster: Cluster) -> list[str]:
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    entries = [json.loads(line)["result"] for line in answer.text.splitlines()]
    return [line["log"].removesuffix("\n") for line in entries if line["source"] != "master"]


async def container(cluster: Cluster, desired: DesiredContainer) -> ContainerRow:
    async with cluster.master.database.read() as session:
        return (await session.scalars(select(ContainerRow).where(ContainerRow.id == desired.container_id))).one()


async def test_last_output_is_acknowledged_with_the_next_desired_state(cluster: Cluster):
    await cluster.create()
    async with agent_socket(cluster, "one", slots=[SlotFacts(id=0)]) as socket:
        assert (await socket.answer())["takes_last_output"]
        agent, (desired,) = FakeAgent(cluster, "one"), await FakeAgent(cluster, "one").wait_for_desired()
        ended = agent.report_of(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=0))
        report = ReportedState(
            containers=[ended.model_copy(update={"output_done": False})], last_output=[batch_of(desired, "loss 1")]
        )
        socket.send(report.model_dump_json())
        answers: list[dict[str, Any]] = []
        while not answers or not answers[-1]["stored_output"]:
            answers.append(await socket.answer())
        assert answers[-1]["stored_output"] == {desired.container_id: 1}
    assert await lines(cluster) == ["loss 1"]


@pytest.mark.parametrize(
    ("texts", "start", "policies"),
    [
        (["loss 1"], 7, ""),
        (["OSError: no space left"], 0, POLICY),
        (["line"] * (QUICK_LINES + 1), 0, ""),
    ],
    ids=["not what follows", "a line that a policy matches", "much"],
)
async def test_last_output_that_is_not_stored_with_the_end_is_left_to_the_agent(
    cluster: Cluster, texts: list[str], start: int, policies: str
):
    agent, desired = await run_trial(cluster, CONFIG + policies)
    assert await end(cluster, agent, desired, batch_of(desired, *texts, start=start)) == {desired.container_id: 0}
    assert await lines(cluster) == []
    row = await container(cluster, desired)
    assert (row.state, row.output_offset, row.output_done) == (ContainerState.TERMINATED, 0, False)


async def test_last_output_that_no_policy_matches_is_stored(cluster: Cluster):
    agent, desired = await run_trial(cluster, CONFIG + POLICY)
    assert await end(cluster, agent, desired, batch_of(desired, "loss 1")) == {desired.container_id: 1}
    assert await lines(cluster) == ["loss 1"]


async def test_last_output_that_was_stored_before_is_not_stored_again(cluster: Cluster):
    """The agent sent it before and got no answer."""
    agent, desired = await run_trial(cluster)
    body = batch_of(desired, "loss 1").model_dump()
    headers = {"Authorization": f"Bearer {cluster.master.secrets.join_token}"}
    assert (await cluster.client.post("/detent/agents/one/output", json=body, headers=headers)).json() == {
        "committed": 1
    }
    assert await end(cluster, agent, desired, batch_of(desired, "loss 1")) == {desired.container_id: 1}
    assert (await lines(cluster), (await container(cluster, desired)).output_done) == (["loss 1"], True)


async def test_last_output_of_another_agents_container_is_not_stored(cluster: Cluster):
    _, desired = await run_trial(cluster)
    other = await cluster.join("two")
    assert await end(cluster, other, desired, batch_of(desired, "made up")) == {}
    assert await lines(cluster) == []


async def test_last_output_of_an_end_that_cannot_be_stored_is_not_acknowledged(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    """The rest of the transaction fails."""
    agent, desired = await run_trial(cluster)
    monkeypatch.setattr(repository, "set_statuses", AsyncMock(side_effect=RuntimeError("a defect")))
    ended = agent.report_of(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=1))
    stored = StoredReport()
    with pytest.raises(RuntimeError, match="a defect"):
        await cluster.master.agents.on_report(
            agent.id,
            [ended.model_copy(update={"output_done": False})],
            [SlotStatus(id=0, status="occupied")],
            stored=stored,
            last_output=[lines_of(agent.id, batch_of(desired, "loss 1"))],
        )
    assert stored.take_output() == {}
    assert await lines(cluster) == []
    assert (await container(cluster, desired)).state is ContainerState.RUNNING
