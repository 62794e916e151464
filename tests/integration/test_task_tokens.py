"""The cache of task tokens: a token is known before its first request, and forgotten with its attempt."""

from tests.support.agent_socket import AgentSocket, agent_socket
from tests.support.cluster import Cluster, FakeAgent

from determined.link.messages import DesiredContainer, SlotFacts
from determined_master.auth.principal import Principal


async def wait_for_container(cluster: Cluster, socket: AgentSocket) -> DesiredContainer:
    """Creates an experiment; returns the container that the agent is to run."""
    await cluster.create()
    while not (answer := await socket.answer()).get("containers"):
        pass
    return DesiredContainer.model_validate(answer["containers"][0])


def token_of(desired: DesiredContainer) -> str:
    assert desired.spec is not None
    return desired.spec.environment["DET_SESSION_TOKEN"]


async def test_the_token_of_an_attempt_that_has_ended_is_not_known(cluster: Cluster):
    async with agent_socket(cluster, "one", slots=[SlotFacts(id=0)]) as socket:
        desired = await wait_for_container(cluster, socket)
        await FakeAgent(cluster, "one").exit(desired)
        assert cluster.master.authenticator.known_task(token_of(desired)) is None


def test_a_token_that_was_read_while_its_attempt_ended_is_not_cached(cluster: Cluster):
    keep = cluster.master.authenticator.task_keeper()
    cluster.master.authenticator.forget_allocation("1.t.1")
    keep("token", Principal(1, "ann", False, "1.t.1", "1.t"))
    assert cluster.master.authenticator.known_task("token") is None
    cluster.master.authenticator.task_keeper()("token", Principal(1, "ann", False, "1.t.1", "1.t"))
    assert cluster.master.authenticator.known_task("token") is not None
