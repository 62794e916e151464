"""Log policies: a line that matches ends the restarts of its trial, keeps it from an agent, or only marks it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.support.cluster import CONFIG, Cluster, FakeAgent, cluster
from tests.support.waiting import eventually
from tests.support.write_holds import MAX_HOLD_SECONDS, write_holds

from determined.link.messages import ContainerExit, DesiredContainer
from determined.states import ContainerState
from determined_master.db.models import ContainerRow
from determined_master.logs import policies, policy_scan

CANCEL = "log_policies: [{name: full, pattern: 'no space left', action: cancel_retries}]\n"
EXCLUDE = "log_policies: [{pattern: 'bad .*disk', action: {type: exclude_node}}]\n"


async def started(one: Cluster, agent: FakeAgent, policies: str) -> DesiredContainer:
    await one.create(CONFIG + policies)
    (wish,) = await agent.wished()
    await agent.run(wish)
    return wish


async def ship(one: Cluster, agent: FakeAgent, wish: DesiredContainer, *texts: str, start: int = 0) -> int:
    lines = [{"timestamp": 1_700_000_000.5, "log": text} for text in texts]
    body = {"container_id": wish.container_id, "allocation_id": wish.allocation_id, "task_id": wish.spec.task_id}
    answer = await one.client.post(
        f"/detent/agents/{agent.id}/output",
        json={**body, "start": start, "end": start + len(texts), "lines": lines},
        headers={"Authorization": f"Bearer {one.master.secrets.join_token}"},
    )
    assert answer.status_code == 200, answer.text
    return int(answer.json()["committed"])


async def trial(one: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = (await one.get("/api/v1/trials/1"))["trial"]
    return found


async def has_state(one: Cluster, state: str) -> dict[str, Any]:
    async def reached() -> dict[str, Any] | None:
        found = await trial(one)
        return found if found["state"] == f"STATE_{state}" else None

    return await eventually(reached)


async def attempts(one: Cluster) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await one.get("/detent/trials/1/attempts"))["attempts"]
    return found


async def log(one: Cluster) -> list[str]:
    answer = await one.client.get("/api/v1/trials/1/logs")
    return [json.loads(line)["result"]["log"].removesuffix("\n") for line in answer.text.splitlines()]


async def test_a_failure_after_a_matching_line_is_not_followed_by_a_restart(one: Cluster):
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    await ship(one, agent, wish, "fine", "OSError: no space left on device", "no space left, again")
    await agent.exit(wish, code=1)
    ended = await has_state(one, "ERROR")
    assert (ended["restarts"], ended["logPolicyMatched"]) == (0, "full")
    assert ended["failure"] == (
        'the process exited with code 1; not restarted: log policy "full" (/no space left/) '
        "matched the line “OSError: no space left on device”"
    )

    async def text() -> str | None:
        status = await one.get("/detent/experiments/1/status")
        return str(status["text"]) if status["state"] == "STATE_ERROR" else None

    assert await eventually(text) == f"failed: trial 1: restarts canceled by a log policy: {ended['failure']}"
    (attempt,) = await attempts(one)
    assert [(m["policy"], m["line"]) for m in attempt["policies"]] == [
        ('log policy "full"', "OSError: no space left on device")
    ]
    (event,) = (await one.get("/detent/events", kind="log_policy_matched"))["events"]
    assert event["text"] == 'a line of trial 1 matched log policy "full": the trial is not restarted if it fails'
    assert (await log(one))[-3:] == [
        f"attempt 1 of 6 failed: {ended['failure']}",
        "trial failed and matched logs to a don't retry policy",
        "resources failed with non-zero exit code: 1",
    ]


async def test_the_end_of_an_attempt_waits_for_its_last_lines(one: Cluster):
    """Agents report the end of a container before its last output."""
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    exit_ = ContainerExit(kind="exited", code=1)
    early = agent.truth(wish, ContainerState.TERMINATED, exit_).model_copy(update={"output_done": False})
    await one.master.agents.on_report(agent.id, [early])

    async def failed() -> bool:
        return bool((await attempts(one))[0]["reason"] == "errored")

    await eventually(failed)
    await ship(one, agent, wish, "no space left")
    await agent.say(wish, ContainerState.TERMINATED, exit_)
    assert (await has_state(one, "ERROR"))["restarts"] == 0


async def test_an_agent_that_knows_the_container_no_more_has_sent_all_of_its_output(one: Cluster):
    """The master may have crashed between the agent's last report and its own commit."""
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    end = agent.truth(wish, ContainerState.TERMINATED, ContainerExit(kind="exited", code=1))
    await one.master.agents.on_report(agent.id, [end.model_copy(update={"output_done": False})])
    assert len(await attempts(one)) == 1
    await one.join()
    async with one.master.database.read() as session:
        assert await session.scalar(select(ContainerRow.output_done).where(ContainerRow.id == wish.container_id))
    (again,) = await agent.wished()
    assert again.container_id != wish.container_id


async def test_an_agent_is_excluded_for_the_later_attempts_of_the_trial(one: Cluster):
    bad = await one.join("bad")
    wish = await started(one, bad, EXCLUDE)
    good = await one.join("good")
    await ship(one, bad, wish, "a bad old disk")
    await bad.exit(wish, code=1)
    (again,) = await good.wished()
    await good.run(again)
    assert (await trial(one))["restarts"] == 1
    assert (await log(one))[1] == (
        "log policy /bad .*disk/ matched a line: later attempts of the trial do not run on agent bad; "
        "therefore will not schedule on bad"
    )
    await ship(one, good, again, "another bad disk")
    await good.exit(again, code=1)
    ended = await has_state(one, "ERROR")
    assert ended["failure"] == (
        "the process exited with code 1; not restarted: log policy /bad .*disk/ excludes bad, good, and a trial "
        "needs 1 slots, but no agent of pool 'default' may run it (bad, good excluded by its log policies); add agents"
    )


async def test_without_launch_error_a_trial_waits_for_another_agent(tmp_path: Path):
    async with cluster(tmp_path, launch_error=False) as one:
        agent = await one.join("bad")
        wish = await started(one, agent, EXCLUDE)
        await ship(one, agent, wish, "bad disk")
        await agent.exit(wish, code=1)

        async def said() -> bool:
            return "bad excluded by its log policies" in (await one.client.get("/detent/trials/1/why")).text

        await eventually(said)
        other = await one.join("other")
        await other.wished()


async def test_a_policy_without_an_action_only_marks_and_defaults_apply(one: Cluster):
    agent = await one.join()
    wish = await started(one, agent, "")
    await ship(one, agent, wish, "torch: CUDA out of memory. Tried")
    await agent.exit(wish, code=1)
    (again,) = await agent.wished()
    assert again.allocation_id != wish.allocation_id
    found = await trial(one)
    assert (found["restarts"], found["logPolicyMatched"]) == (1, "CUDA OOM")
    (event,) = (await one.get("/detent/events", kind="log_policy_matched"))["events"]
    assert event["text"] == 'a line of trial 1 matched log policy "CUDA OOM"'


async def test_the_echo_of_the_configuration_does_not_match(one: Cluster):
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    await ship(one, agent, wish, '{"log_policies": [{"name": "full", "pattern": "no space left"}]}')
    await agent.exit(wish, code=1)
    await agent.wished()
    assert (await trial(one))["restarts"] == 1


async def test_a_match_survives_the_master_and_is_recorded_once_for_each_attempt(tmp_path: Path):
    async with cluster(tmp_path) as one:
        agent = await one.join()
        wish = await started(one, agent, CANCEL)
        await ship(one, agent, wish, "no space left")
    async with cluster(tmp_path) as one:
        agent = FakeAgent(one, "one")
        await ship(one, agent, wish, "no space left", start=1)
        await agent.exit(wish, code=1)
        assert (await has_state(one, "ERROR"))["restarts"] == 0
        (attempt,) = await attempts(one)
        assert len(attempt["policies"]) == 1


async def test_a_match_is_undone_with_its_lines(one: Cluster, monkeypatch: pytest.MonkeyPatch):
    """A transaction that fails after the match leaves neither lines nor match, and both are stored when it is repeated."""
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    insert, calls = policy_scan.repository.add, []

    def fails_once(*args: Any) -> None:
        insert(*args)
        calls.append(args)
        if len(calls) == 1:
            raise RuntimeError("the disk is gone")

    monkeypatch.setattr(policy_scan.repository, "add", fails_once)
    lines = [{"timestamp": 1.0, "log": "no space left"}]
    body = {"container_id": wish.container_id, "allocation_id": wish.allocation_id, "task_id": wish.spec.task_id}
    answer = await one.client.post(
        "/detent/agents/one/output",
        json={**body, "start": 0, "end": 1, "lines": lines},
        headers={"Authorization": f"Bearer {one.master.secrets.join_token}"},
    )
    assert answer.status_code == 500
    assert (await attempts(one))[0]["policies"] == []
    await ship(one, agent, wish, "no space left")
    assert len((await attempts(one))[0]["policies"]) == 1


async def test_patterns_that_take_too_long_are_switched_off_and_the_log_says_so(
    one: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(policies, "SECONDS_A_BATCH", -1.0)
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    await ship(one, agent, wish, "fine", "no space left")
    await ship(one, agent, wish, "no space left", start=2)
    assert (await attempts(one))[0]["policies"] == []
    assert sum("the rest of this attempt is not compared" in line for line in await log(one)) == 1
    assert len((await one.get("/detent/events", kind="log_policies_off"))["events"]) == 1


async def test_lines_are_searched_before_the_transaction_that_stores_them(one: Cluster):
    pattern = "(?:a|b)*a(?:a|b){60}c"
    agent = await one.join()
    wish = await started(one, agent, f"log_policies: [{{pattern: '{pattern}', action: cancel_retries}}]\n")
    noise = "".join(random.Random(1).choices("ab", k=32_000))
    with write_holds(one.master.database) as holds:
        await ship(one, agent, wish, *[noise] * 90)
    print(holds)
    assert holds.longest <= MAX_HOLD_SECONDS, str(holds)
    assert any("the rest of this attempt is not compared" in line for line in await log(one))


async def test_lines_of_a_long_batch_match_what_no_earlier_line_has_matched(one: Cluster):
    agent = await one.join()
    wish = await started(one, agent, CANCEL)
    noise = "x" * 5_000
    await ship(one, agent, wish, noise, "first: no space left", "second: no space left")
    await ship(one, agent, wish, noise, "third: no space left", start=3)
    (attempt,) = await attempts(one)
    assert [each["line"] for each in attempt["policies"]] == ["first: no space left"]
