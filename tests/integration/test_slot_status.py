"""Slots that an agent reports as occupied or unhealthy: nothing is placed on them, and the reason is shown."""

from tests.support.cluster import Cluster
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, DesiredContainer, Hello, SlotFacts, SlotStatus
from determined.states import ContainerState

USED = "process 4711 of alice uses it, outside the cluster"
BROKEN = "the driver lost it"


async def report(cluster: Cluster, *slots: SlotStatus) -> None:
    await cluster.master.agents.on_report("one", [], slots)


async def waiting_reason(cluster: Cluster) -> str:
    """Returns why the only queued task waits, once the scheduler has looked at it."""

    async def reason() -> str | None:
        queue = (await cluster.get("/detent/cluster/overview"))["queue"]
        return queue[0]["waiting"] if queue and queue[0]["waiting"].startswith("needs") else None

    return await eventually(reason)


async def test_an_occupied_slot_is_assigned_once_it_is_free(cluster: Cluster):
    agent = await cluster.join()
    await report(cluster, SlotStatus(id=0, status="occupied", reason=USED))
    await cluster.create()
    assert await waiting_reason(cluster) == f"needs 1 slot; 0 of 1 free in pool 'default'; slot 0 of one: {USED}"
    assert await agent.desired() == []
    await report(cluster)
    assert [desired.spec.slots for desired in await agent.wait_for_desired() if desired.spec] == [[0]]


async def test_the_status_of_a_slot_is_shown_and_recorded(cluster: Cluster):
    await cluster.join(slots=2)
    await report(cluster, SlotStatus(id=1, status="unhealthy", reason=BROKEN))
    await report(cluster, SlotStatus(id=1, status="unhealthy", reason=BROKEN))
    slots = (await cluster.get("/detent/cluster/overview"))["agents"][0]["slots"]
    assert [(slot["status"], slot["reason"]) for slot in slots] == [("free", ""), ("unhealthy", BROKEN)]
    official = (await cluster.get("/api/v1/agents"))["agents"][0]["slots"]["/agents/one/slots/1"]
    assert (official["enabled"], official["status"], official["reason"]) == (True, "unhealthy", BROKEN)
    events = (await cluster.get("/detent/events", kind="slot_1_unhealthy"))["events"]
    assert [(event["targetId"], event["payload"]) for event in events] == [("one", {"reason": BROKEN})]
    matches = (await cluster.get("/detent/events", search="slot 1 of agent one is unhealthy: the driver lost"))[
        "events"
    ]
    assert [event["id"] for event in matches] == [event["id"] for event in events]


async def test_a_held_slot_that_becomes_unhealthy_is_not_assigned_again(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create()
    first = (await agent.wait_for_desired())[0]
    assert first.spec is not None
    (held,) = first.spec.slots
    await cluster.master.agents.on_report(
        "one",
        [agent.report_of(first, ContainerState.RUNNING)],
        [SlotStatus(id=held, status="unhealthy", reason=BROKEN)],
    )
    await cluster.post("/api/v1/experiments/1/kill")
    # The agent repeats the status with every report.
    ended = agent.report_of(first, ContainerState.TERMINATED, ContainerExit(kind="killed"))
    await cluster.master.agents.on_report("one", [ended], [SlotStatus(id=held, status="unhealthy", reason=BROKEN)])
    await cluster.create()

    async def next_desired() -> list[DesiredContainer]:
        return [desired for desired in await agent.desired() if desired.container_id != first.container_id]

    second = (await eventually(next_desired))[0]
    assert second.spec is not None
    assert second.spec.slots == [1 - held]


async def test_an_unhealthy_slot_stays_unhealthy_when_its_agent_registers_again(cluster: Cluster):
    await cluster.join()
    await report(cluster, SlotStatus(id=0, status="unhealthy", reason=BROKEN))
    await cluster.master.agents.welcome(Hello(agent_id="one", slots=[SlotFacts(id=0)]))
    await cluster.create()
    assert BROKEN in await waiting_reason(cluster)


async def test_a_task_on_a_slot_that_its_agent_no_longer_reports_is_listed(cluster: Cluster):
    agent = await cluster.join(slots=2)
    await cluster.create(
        "name: x\nentrypoint: x\nsearcher: {name: single, metric: m}\nresources: {slots_per_trial: 2}\n"
    )
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    report = agent.report_of(desired, ContainerState.RUNNING)
    await cluster.master.agents.welcome(Hello(agent_id="one", slots=[SlotFacts(id=0)], containers=[report]))
    for path in ("/tasks", "/api/v1/tasks"):
        assert (await cluster.client.get(path)).status_code == 200, path
    listed = (await cluster.get("/api/v1/tasks"))["allocationIdToSummary"][desired.allocation_id]
    assert len(listed["resources"][0]["agentDevices"]["one"]["devices"]) == 1
