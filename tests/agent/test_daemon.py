"""The agent against a small real master on localhost: its reports, its output and its restarts."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.support.agents import agent_on, make_desired
from tests.support.fake_link_master import TOKEN, FakeLinkMaster, serving
from tests.support.waiting import eventually
from websockets.asyncio.client import ClientConnection

from determined.link.messages import ContainerExit, DesiredContainer, Refuse, ReportedContainer
from determined.link.run_folder import RunFolder
from determined_agent import daemon as daemon_module
from determined_agent.drivers.driver import ContainerLaunch
from determined_agent.drivers.fake import FakeDriver, Play
from determined_agent.master_link import connection as connection_module
from determined_agent.master_link.connection import Connection, Refused
from determined_agent.output import shipper as output
from determined_agent.run_folders.agent_state import AgentState, FolderInUse
from determined_agent.task_process import processes
from determined_agent.task_process.entry_command import build_command


async def ended(master: FakeLinkMaster, desired: DesiredContainer) -> ContainerExit:
    """Waits until a container has ended and all its output is acknowledged. Returns its exit."""

    def drained_report() -> ReportedContainer | None:
        report = master.report_of(desired.container_id)
        return report if report is not None and report.output_done else None

    report = await eventually(drained_report)
    assert report is not None
    assert report.exit is not None
    assert report.state.is_terminal
    return report.exit


def state_is(master: FakeLinkMaster, desired: DesiredContainer, state: str) -> Callable[[], bool]:
    return lambda: (report := master.report_of(desired.container_id)) is not None and report.state == state


async def test_a_container_is_started_ships_its_output_reports_its_exit_and_is_forgotten(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired("echo out; echo '[rank=3] WARNING: hm' >&2; exit 4")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        exit_ = await ended(master, desired)
        summary, *lines = exit_.message.split("\n")
        assert (exit_.kind, exit_.code, summary) == ("exited", 4, "the process exited with code 4:")
        assert sorted(lines) == ["[rank=3] WARNING: hm", "out"]
        # Two pipes have no common order.
        assert sorted(master.text_of(desired.container_id)) == ["hm", "out"]
        second = next(line for line in master.lines[desired.container_id] if line.log == "hm")
        assert (second.rank_id, second.level, second.stdtype) == (3, "WARNING", "stderr")
        await master.set_desired()
        await eventually(lambda: master.report_of(desired.container_id) is None)
        await eventually(lambda: not list((tmp_path / "runs").iterdir()))


async def test_the_end_of_the_output_is_reported_before_a_container_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output ends while another report is being sent and the container is no longer desired."""
    master, desired = FakeLinkMaster(), make_desired("echo out")
    master.refuse_posts = 1 << 30
    may_send, send = asyncio.Event(), ClientConnection.send
    may_send.set()

    async def slow(link: ClientConnection, message: str) -> None:
        await send(link, message)
        await may_send.wait()

    monkeypatch.setattr(ClientConnection, "send", slow)
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "TERMINATED"))
        may_send.clear()
        await master.set_desired()
        count = len(master.reports)
        await eventually(lambda: len(master.reports) > count)
        master.refuse_posts = 0
        await eventually(lambda: master.text_of(desired.container_id) == ["out"])
        await eventually(lambda: desired.container_id in master.committed)
        may_send.set()
        await eventually(lambda: master.report_of(desired.container_id) is None)
    drained = [status for report in master.reports for status in report.containers if status.output_done]
    assert [status.container_id for status in drained] == [desired.container_id]


@pytest.mark.parametrize("is_stored", [True, False])
async def test_the_last_output_is_sent_with_the_end_and_sent_again_if_the_master_did_not_store_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_stored: bool
) -> None:
    for limit in ("AGENT_LINES_SECONDS", "FIRST_LINES_SECONDS"):
        monkeypatch.setattr(output, limit, 3600.0)
    master, desired = FakeLinkMaster(), make_desired("echo out")
    master.heartbeat_seconds = 3600.0
    master.takes_last_output, master.stores_last_output = True, is_stored
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "TERMINATED"))
        (last_report,) = [report for report in master.reports if report.last_output]
        assert [(status.state, status.output_done) for status in last_report.containers] == [("TERMINATED", False)]
        assert (master.posts, master.stored_output[desired.container_id] > 0) == (0, is_stored)
        await master.set_desired()
        await eventually(lambda: not list((tmp_path / "runs").iterdir()))
    assert (master.text_of(desired.container_id), master.posts) == (["out"], 0 if is_stored else 1)
    assert any(status.output_done for report in master.reports for status in report.containers) is not is_stored


async def test_running_is_reported_with_the_next_change_if_a_container_needs_no_rendezvous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "SOON_SECONDS", 3600.0)
    master, go = FakeLinkMaster(), asyncio.Event()
    master.heartbeat_seconds = 3600.0
    containers = [make_desired(is_alone=True), make_desired(is_alone=True)]

    class Playing(FakeDriver):
        async def start(self, launch: ContainerLaunch) -> None:
            if launch.folder.path.name == containers[1].container_id:
                await go.wait()
            await super().start(launch)

    driver = Playing(lambda launch: Play((), 0 if launch.folder.path.name == containers[1].container_id else None))
    async with (
        serving(master.app()) as url,
        agent_on(url, tmp_path, driver=driver, build_command=build_command) as agent,
    ):
        await eventually(lambda: master.reports)
        await master.set_desired(*containers)
        await eventually(lambda: any(status.state == "RUNNING" for status in agent.reported.containers))
        assert not any(state_is(master, desired, "RUNNING")() for desired in containers)
        go.set()
        await eventually(state_is(master, containers[1], "TERMINATED"))
        assert state_is(master, containers[0], "RUNNING")()


async def test_intermediate_states_are_reported_together_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "SOON_SECONDS", 3600.0)
    master, desired = FakeLinkMaster(), make_desired("sleep 1000")
    master.heartbeat_seconds = 3600.0
    driver = FakeDriver(lambda launch: Play((), None))
    async with serving(master.app()) as url, agent_on(url, tmp_path, driver=driver):
        await eventually(lambda: master.reports)  # the first report of a connection
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "RUNNING"))
    assert {status.state for report in master.reports for status in report.containers} == {"RUNNING"}


async def test_an_intermediate_state_that_lasts_is_reported_by_itself(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired("sleep 1000")
    master.heartbeat_seconds = 3600.0
    may_start = asyncio.Event()

    class Slow(FakeDriver):
        async def start(self, launch: ContainerLaunch) -> None:
            await may_start.wait()
            await super().start(launch)

    async with serving(master.app()) as url, agent_on(url, tmp_path, driver=Slow(lambda _: Play((), None))):
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "STARTING"))
        may_start.set()
        await eventually(state_is(master, desired, "RUNNING"))


@pytest.mark.parametrize("is_named", [True, False])
async def test_a_container_is_killed_if_it_is_desired_as_stopped_or_no_longer_desired(
    tmp_path: Path, is_named: bool
) -> None:
    master, desired = FakeLinkMaster(), make_desired("setsid sleep 1000 & sleep 1000")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "RUNNING"))
        if is_named:
            await master.set_desired(desired.model_copy(update={"state": "stopped", "spec": None}))
            assert (await ended(master, desired)).kind == "killed"
        else:
            await master.set_desired()
            await eventually(lambda: master.report_of(desired.container_id) is None)
        assert processes.marked("DET_CONTAINER_ID", desired.container_id) == set()


async def test_an_unknown_container_that_is_desired_as_stopped_is_reported_as_killed(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired()
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired.model_copy(update={"state": "stopped", "spec": None}))
        assert (await ended(master, desired)).kind == "killed"
        await master.set_desired()
        await eventually(lambda: master.report_of(desired.container_id) is None)


async def test_a_restarted_agent_adopts_running_containers_and_ships_the_output_it_missed(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    go, script = tmp_path / "go", "echo one; while [ ! -e {go} ]; do sleep 0.01; done; echo two; exit 6"
    desired = make_desired(script.format(go=go))
    async with serving(master.app()) as url:
        async with agent_on(url, tmp_path / "data"):
            await master.set_desired(desired)
            await eventually(lambda: master.text_of(desired.container_id) == ["one"])
        go.touch()
        await eventually(lambda: next((tmp_path / "data").glob("runs/*/exit.json"), None))
        async with agent_on(url, tmp_path / "data"):
            assert (await ended(master, desired)).code == 6
        assert master.text_of(desired.container_id) == ["one", "two"]
        # A third agent only has to report the end.
        master.reports.clear()
        async with agent_on(url, tmp_path / "data"):
            assert (await ended(master, desired)).code == 6
    assert master.text_of(desired.container_id) == ["one", "two"]


async def test_a_container_whose_agent_restarts_during_its_preparation_is_started_once(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired()
    driver = FakeDriver(lambda launch: Play(("line",), None))
    async with serving(master.app()) as url:
        async with agent_on(url, tmp_path, driver=driver) as daemon:
            await master.set_desired(desired)
            await eventually(lambda: daemon.reported.containers)
        async with agent_on(url, tmp_path, driver=driver):
            await eventually(state_is(master, desired, "RUNNING"))
        async with agent_on(url, tmp_path, driver=driver):
            await eventually(state_is(master, desired, "RUNNING"))
            driver.stop(RunFolder(tmp_path / "runs" / desired.container_id))
            await ended(master, desired)
    assert driver.started == [desired.container_id]


async def test_no_line_is_lost_or_repeated_when_the_masters_answers_are_lost(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired("for i in $(seq 3000); do echo $i; done")
    master.drop_answers = 3
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await ended(master, desired)
    assert master.text_of(desired.container_id) == [str(number) for number in range(1, 3001)]


async def test_output_that_the_master_refused_is_sent_again(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired("echo one; echo two")
    master.refuse_posts = 2
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await ended(master, desired)
    assert master.text_of(desired.container_id) == ["one", "two"]


async def test_a_line_reaches_the_master_within_half_a_second(tmp_path: Path) -> None:
    master, go = FakeLinkMaster(), tmp_path / "go"
    desired = make_desired(
        ["bash", "-c", f"echo ready; while [ ! -e {go} ]; do read -t 0.002 < <(:); done; date +%s.%N; cat"]
    )
    async with serving(master.app()) as url, agent_on(url, tmp_path / "data"):
        await master.set_desired(desired)
        await eventually(lambda: master.text_of(desired.container_id) == ["ready"])
        go.touch()
        await ended(master, desired)
    # Generous for a loaded machine; shorter than a poll of one second.
    assert max(arrival - line.timestamp for arrival, line in master.arrivals if line.source == "task") < 0.5


async def test_containers_continue_and_lose_no_output_while_the_master_is_away(tmp_path: Path) -> None:
    master, go = FakeLinkMaster(), tmp_path / "go"
    desired = make_desired(f"echo one; while [ ! -e {go} ]; do sleep 0.01; done; echo two")
    async with serving(master.app()) as url:
        port = int(url.rpartition(":")[2])
        link = agent_on(url, tmp_path / "data")
        daemon = await link.__aenter__()
        await master.set_desired(desired)
        await eventually(lambda: master.text_of(desired.container_id) == ["one"])
    go.touch()
    await eventually(lambda: daemon.reported.containers[0].state == "TERMINATED")
    master.epoch = 2
    async with serving(master.app(), port):
        assert (await ended(master, desired)).code == 0
        assert master.hellos[-1].master_epoch == 1
        assert master.hellos[-1].containers[0].container_id == desired.container_id
        await link.__aexit__(None, None, None)
    assert master.text_of(desired.container_id) == ["one", "two"]


async def test_an_agent_ignores_a_master_with_an_older_epoch(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired("sleep 1000")
    master.epoch = 5
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "RUNNING"))
        master.epoch = 4
        await master.set_desired()
        await master.cut()
        await eventually(lambda: len(master.hellos) > 2)
        assert master.hellos[-1].master_epoch == 5
        assert processes.marked("DET_CONTAINER_ID", desired.container_id)
        master.epoch = 6
        await eventually(lambda: not processes.marked("DET_CONTAINER_ID", desired.container_id))


async def test_a_final_refusal_of_the_master_ends_the_connection(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    master.refuse = Refuse(reason="too old", final=True)
    async with serving(master.app()) as url, agent_on(url, tmp_path) as daemon:
        with pytest.raises(Refused, match="too old"):
            await Connection(url, lambda: TOKEN, daemon).run()
        with pytest.raises(Refused, match="join token"):
            await Connection(url, lambda: "wrong", daemon).run()


async def test_a_refusal_that_is_not_final_is_retried(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    master.refuse = Refuse(reason="not yet")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await eventually(lambda: len(master.hellos) >= 2)
        master.refuse = None
        await eventually(lambda: master.reports)


async def test_a_second_agent_on_the_same_folder_is_refused_and_names_the_first(tmp_path: Path) -> None:
    first = AgentState(tmp_path)
    with pytest.raises(FolderInUse, match="pid"):
        AgentState(tmp_path)
    first.close()
    AgentState(tmp_path).close()


async def test_each_data_folder_has_one_id_that_never_changes(tmp_path: Path) -> None:
    folder_ids = []
    for folder in ("a", "a", "b"):
        state = AgentState(tmp_path / folder)
        state.name("same")
        folder_ids.append(state.folder_id)
        state.close()
    assert folder_ids[0] == folder_ids[1] != folder_ids[2]


async def test_an_idle_agent_ends_when_its_master_stays_away(tmp_path: Path) -> None:
    master = FakeLinkMaster()
    busy = True
    async with serving(master.app()) as url, agent_on(url, tmp_path / "other") as daemon:
        connection = Connection(url, lambda: TOKEN, daemon)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(connection.run())
            away = group.create_task(connection.stays_away(0.2, lambda: busy))
            await eventually(lambda: master.reports)
            done, _ = await asyncio.wait({away}, timeout=0.5)
            assert not done, "it is connected"
            busy = False
            master.refuse = Refuse(reason="not yet")
            await master.cut()
            await asyncio.wait_for(away, 60)
            running.cancel()


async def test_an_agent_with_a_task_does_not_end_when_its_master_stays_away(tmp_path: Path) -> None:
    async with agent_on("http://127.0.0.1:1", tmp_path) as daemon:
        connection = Connection("http://127.0.0.1:1", lambda: TOKEN, daemon)
        away = asyncio.create_task(connection.stays_away(0.05, lambda: True))
        done, _ = await asyncio.wait({away}, timeout=0.5)
        assert not done
        away.cancel()


async def test_an_agent_whose_task_outlives_a_long_outage_looks_rarely_whether_it_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.Event().wait()

    async with agent_on("http://127.0.0.1:1", tmp_path) as daemon:
        connection = Connection("http://127.0.0.1:1", lambda: TOKEN, daemon)
        monkeypatch.setattr(connection_module, "asyncio", SimpleNamespace(sleep=sleep))
        away = asyncio.create_task(connection.stays_away(0.0, lambda: True))
        await eventually(lambda: {0.05, 5.0}.intersection(pauses))  # beside those of the daemon's own connection
        away.cancel()
    assert 0.05 not in pauses


async def test_a_run_folder_that_cannot_be_renamed_is_renamed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    discard, failures = AgentState.discard, [OSError("read-only")]

    def failing_once(self: AgentState, folder: RunFolder) -> Path:
        if failures:
            raise failures.pop()
        return discard(self, folder)

    monkeypatch.setattr(AgentState, "discard", failing_once)
    master, desired = FakeLinkMaster(), make_desired("true")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        await eventually(state_is(master, desired, "TERMINATED"))
        await master.set_desired()
        await eventually(lambda: not failures)
        await eventually(lambda: not list((tmp_path / "runs").iterdir()))


async def test_a_container_id_that_is_a_path_is_reported_as_a_system_failure(tmp_path: Path) -> None:
    master, desired = FakeLinkMaster(), make_desired(container_id="../x")
    async with serving(master.app()) as url, agent_on(url, tmp_path):
        await master.set_desired(desired)
        assert (await ended(master, desired)).kind == "system"
