"""Log policies: a matching line cancels the restarts of its trial, excludes its agent, or only marks the trial."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.cluster import CONFIG, Cluster, FakeAgent, open_cluster
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, write_holds

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.db.models import ContainerRow
from determined_master.logs import policies, policy_scan

CANCEL = "log_policies: [{name: full, pattern: 'no space left', action: cancel_retries}]\n"
EXCLUDE = "log_policies: [{pattern: 'bad .*disk', action: {type: exclude_node}}]\n"


async def start_trial(cluster: Cluster, agent: FakeAgent, policies: str) -> DesiredContainer:
    await cluster.create(CONFIG + policies)
    (desired,) = await agent.wait_for_desired()
    await agent.run(desired)
    return desired


async def ship(cluster: Cluster, agent: FakeAgent, desired: DesiredContainer, *texts: str, start: int = 0) -> int:
    lines = [{"timestamp": 1_700_000_000.5, "log": text} for text in texts]
    body = {
        "container_id": desired.container_id,
        "allocation_id": desired.allocation_id,
        "task_id": desired.spec.task_id,
    }
    answer = await cluster.client.post(
        f"/detent/agents/{agent.id}/output",
        json={**body, "start": start, "end": start + len(texts), "lines": lines},
        headers={"Authorization": f"Bearer {cluster.master.secrets.join_token}"},
    )
    assert answer.status_code == 200, answer.text
    return int(answer.json()["committed"])


async def trial(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.get("/api/v1/trials/1"))["trial"]
    return found


async def has_state(cluster: Cluster, state: str) -> dict[str, Any]:
    async def reached() -> dict[str, Any] | None:
        current = await trial(cluster)
        return current if current["state"] == f"STATE_{state}" else None

    return await eventually(reached)


async def attempts(cluster: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await cluster.get("/detent/trials/1/attempts"))["attempts"]
    return found


async def log(cluster: Cluster) -> list[str]:
    answer = await cluster.client.get("/api/v1/trials/1/logs")
    return [json.loads(line)["result"]["log"].removesuffix("\n") for line in answer.text.splitlines()]


async def test_a_failure_after_a_matching_line_is_not_followed_by_a_restart(cluster: Cluster):
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    await ship(cluster, agent, desired, "fine", "OSError: no space left on device", "no space left, again")
    await agent.exit(desired, code=1)
    ended = await has_state(cluster, "ERROR")
    assert (ended["restarts"], ended["logPolicyMatched"]) == (0, "full")
    assert ended["failure"] == (
        'the process exited with code 1; not restarted: log policy "full" (/no space left/) '
        "matched the line “OSError: no space left on device”"
    )

    async def text() -> str | None:
        status = await cluster.get("/detent/experiments/1/status")
        return str(status["text"]) if status["state"] == "STATE_ERROR" else None

    assert await eventually(text) == f"failed: trial 1: restarts canceled by a log policy: {ended['failure']}"
    (attempt,) = await attempts(cluster)
    assert [(m["policy"], m["line"]) for m in attempt["policies"]] == [
        ('log policy "full"', "OSError: no space left on device")
    ]
    (event,) = (await cluster.get("/detent/events", kind="log_policy_matched"))["events"]
    assert event["text"] == 'a line of trial 1 matched log policy "full": the trial is not restarted if it fails'
    assert (await log(cluster))[-3:] == [
        f"attempt 1 of 6 failed: {ended['failure']}",
        "trial failed and matched logs to a don't retry policy",
        "resources failed with non-zero exit code: 1",
    ]


async def test_the_end_of_an_attempt_waits_for_its_last_lines(cluster: Cluster):
    """Agents report the end of a container before its last output."""
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    exit_ = ContainerExit(kind="exited", code=1)
    early = agent.report_of(desired, ContainerState.TERMINATED, exit_).model_copy(update={"output_done": False})
    await cluster.master.agents.on_report(agent.id, [early])

    async def failed() -> bool:
        return bool((await attempts(cluster))[0]["reason"] == "errored")

    await eventually(failed)
    await ship(cluster, agent, desired, "no space left")
    await agent.send_report(desired, ContainerState.TERMINATED, exit_)
    assert (await has_state(cluster, "ERROR"))["restarts"] == 0


async def test_the_output_of_a_container_that_its_agent_no_longer_knows_is_complete(cluster: Cluster):
    """The master may have crashed between the agent's last report and its own commit."""
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    end = agent.report_of(desired, ContainerState.TERMINATED, ContainerExit(kind="exited", code=1))
    await cluster.master.agents.on_report(agent.id, [end.model_copy(update={"output_done": False})])
    assert len(await attempts(cluster)) == 1
    await cluster.join()
    async with cluster.master.database.read() as session:
        assert await session.scalar(select(ContainerRow.output_done).where(ContainerRow.id == desired.container_id))
    (again,) = await agent.wait_for_desired()
    assert again.container_id != desired.container_id


async def test_an_agent_is_excluded_for_the_later_attempts_of_the_trial(cluster: Cluster):
    bad = await cluster.join("bad")
    desired = await start_trial(cluster, bad, EXCLUDE)
    good = await cluster.join("good")
    await ship(cluster, bad, desired, "a bad old disk")
    await bad.exit(desired, code=1)
    (again,) = await good.wait_for_desired()
    await good.run(again)
    assert (await trial(cluster))["restarts"] == 1
    assert (await log(cluster))[1] == (
        "log policy /bad .*disk/ matched a line: later attempts of the trial do not run on agent bad; "
        "therefore will not schedule on bad"
    )
    await ship(cluster, good, again, "another bad disk")
    await good.exit(again, code=1)
    ended = await has_state(cluster, "ERROR")
    assert ended["failure"] == (
        "the process exited with code 1; not restarted: log policy /bad .*disk/ excludes bad, good, and a trial "
        "needs 1 slots, but no agent of pool 'default' may run it (bad, good excluded by its log policies); add agents"
    )


async def test_without_launch_error_a_trial_waits_for_another_agent(tmp_path: Path):
    async with open_cluster(tmp_path, launch_error=False) as cluster:
        agent = await cluster.join("bad")
        desired = await start_trial(cluster, agent, EXCLUDE)
        await ship(cluster, agent, desired, "bad disk")
        await agent.exit(desired, code=1)

        async def is_explained() -> bool:
            return "bad excluded by its log policies" in (await cluster.client.get("/detent/trials/1/why")).text

        await eventually(is_explained)
        other = await cluster.join("other")
        await other.wait_for_desired()


async def test_a_policy_without_an_action_only_marks_the_trial_and_default_policies_apply(cluster: Cluster):
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, "")
    await ship(cluster, agent, desired, "torch: CUDA out of memory. Tried")
    await agent.exit(desired, code=1)
    (again,) = await agent.wait_for_desired()
    assert again.allocation_id != desired.allocation_id
    restarted = await trial(cluster)
    assert (restarted["restarts"], restarted["logPolicyMatched"]) == (1, "CUDA OOM")
    (event,) = (await cluster.get("/detent/events", kind="log_policy_matched"))["events"]
    assert event["text"] == 'a line of trial 1 matched log policy "CUDA OOM"'


async def test_the_echo_of_the_configuration_does_not_match(cluster: Cluster):
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    await ship(cluster, agent, desired, '{"log_policies": [{"name": "full", "pattern": "no space left"}]}')
    await agent.exit(desired, code=1)
    await agent.wait_for_desired()
    assert (await trial(cluster))["restarts"] == 1


async def test_a_match_survives_the_master_and_is_recorded_once_for_each_attempt(tmp_path: Path):
    async with open_cluster(tmp_path) as cluster:
        agent = await cluster.join()
        desired = await start_trial(cluster, agent, CANCEL)
        await ship(cluster, agent, desired, "no space left")
    async with open_cluster(tmp_path) as cluster:
        agent = FakeAgent(cluster, "one")
        await ship(cluster, agent, desired, "no space left", start=1)
        await agent.exit(desired, code=1)
        assert (await has_state(cluster, "ERROR"))["restarts"] == 0
        (attempt,) = await attempts(cluster)
        assert len(attempt["policies"]) == 1


async def test_a_match_of_a_log_policy_is_rolled_back_with_its_lines(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    """A transaction that fails after the match leaves neither lines nor match, and both are stored when it is repeated."""
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    insert, calls = policy_scan.repository.add, []

    def fails_once(*args: Any) -> None:
        insert(*args)
        calls.append(args)
        if len(calls) == 1:
            raise RuntimeError("the disk is gone")

    monkeypatch.setattr(policy_scan.repository, "add", fails_once)
    lines = [{"timestamp": 1.0, "log": "no space left"}]
    body = {
        "container_id": desired.container_id,
        "allocation_id": desired.allocation_id,
        "task_id": desired.spec.task_id,
    }
    answer = await cluster.client.post(
        "/detent/agents/one/output",
        json={**body, "start": 0, "end": 1, "lines": lines},
        headers={"Authorization": f"Bearer {cluster.master.secrets.join_token}"},
    )
    assert answer.status_code == 500
    assert (await attempts(cluster))[0]["policies"] == []
    await ship(cluster, agent, desired, "no space left")
    assert len((await attempts(cluster))[0]["policies"]) == 1


async def test_patterns_that_take_too_long_are_switched_off_and_the_log_says_so(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(policies, "SECONDS_A_BATCH", -1.0)
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    await ship(cluster, agent, desired, "fine", "no space left")
    await ship(cluster, agent, desired, "no space left", start=2)
    assert (await attempts(cluster))[0]["policies"] == []
    assert sum("the rest of this attempt is not compared" in line for line in await log(cluster)) == 1
    assert len((await cluster.get("/detent/events", kind="log_policies_off"))["events"]) == 1


async def test_lines_are_searched_before_the_transaction_that_stores_them(cluster: Cluster):
    pattern = "(?:a|b)*a(?:a|b){60}c"
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, f"log_policies: [{{pattern: '{pattern}', action: cancel_retries}}]\n")
    noise = "".join(random.Random(1).choices("ab", k=32_000))
    with write_holds(cluster.master.database) as holds:
        await ship(cluster, agent, desired, *[noise] * 90)
    print(holds)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)
    assert any("the rest of this attempt is not compared" in line for line in await log(cluster))


async def test_a_policy_matches_only_the_first_of_several_lines_of_an_attempt(cluster: Cluster):
    agent = await cluster.join()
    desired = await start_trial(cluster, agent, CANCEL)
    noise = "x" * 5_000
    await ship(cluster, agent, desired, noise, "first: no space left", "second: no space left")
    await ship(cluster, agent, desired, noise, "third: no space left", start=3)
    (attempt,) = await attempts(cluster)
    assert [each["line"] for each in attempt["policies"]] == ["first: no space left"]
