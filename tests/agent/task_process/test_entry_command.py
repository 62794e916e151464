"""The command of a container, and the rendezvous of a container without peers."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.agents import agent_on, make_desired, plain_command
from tests.support.fake_link_master import FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined.link.messages import ContainerSpec
from determined.link.run_folder import RunFolder
from determined.states import ContainerState
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.task_process.entry_command import build_command
from determined_launch import rendezvous
from determined_launch.environment import RendezvousFacts


def plan(tmp_path: Path, **spec: object) -> ContainerPlan:
    folder = RunFolder(tmp_path)
    folder.make()
    folder.workdir.mkdir(parents=True, exist_ok=True)
    created = ContainerSpec.model_validate(
        {"task_id": "t", "slots": [0, 1], "environment": {}, "entrypoint": "true"} | spec
    )
    return ContainerPlan("c", created, folder, "10.0.0.7", bash="/bin/bash")


def test_boot_command_writes_the_rendezvous_of_a_container_without_peers(tmp_path):
    created = plan(tmp_path, is_alone=True)
    build_command(created)
    facts = rendezvous.read({"DET_RUN_DIR": str(created.folder.run)})
    assert facts == RendezvousFacts(("10.0.0.7",), 0, (2,))


@pytest.mark.parametrize("spec", [{}, {"is_alone": True, "startup_hook": "sleep 1"}])
def test_a_container_with_peers_or_a_startup_hook_meets_at_the_master(tmp_path, spec):
    created = plan(tmp_path, **spec)
    build_command(created)
    assert not rendezvous.is_known({"DET_RUN_DIR": str(created.folder.run)})


def test_a_container_whose_context_has_a_hook_meets_at_the_master(tmp_path):
    created = plan(tmp_path, is_alone=True)
    (created.folder.workdir / "startup-hook.sh").write_text("sleep 1")
    build_command(created)
    assert not rendezvous.is_known({"DET_RUN_DIR": str(created.folder.run)})


@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_container_without_rendezvous_is_reported_ready_also_after_a_restart_of_the_agent(tmp_path, is_alone):
    master = FakeLinkMaster()
    desired = make_desired("sleep 60")

    def build_command(plan: ContainerPlan) -> tuple[str, ...]:
        if is_alone:
            rendezvous.write(RendezvousFacts(("127.0.0.1",), 0, (1,)), {"DET_RUN_DIR": str(plan.folder.run)})
        return plain_command(plan)

    def is_running() -> Callable[[], bool]:
        return lambda: (
            (report := master.report_of(desired.container_id)) is not None and report.state is ContainerState.RUNNING
        )

    async with serving(master.app()) as url:
        for _ in range(2):
            master.reports.clear()
            async with agent_on(url, tmp_path / "data", build_command=build_command):
                await master.set_desired(desired)
                await eventually(is_running())
                report = master.report_of(desired.container_id)
                assert report is not None
                assert report.is_ready is is_alone
        async with agent_on(url, tmp_path / "data", build_command=build_command):
            await master.set_desired(desired.model_copy(update={"state": "stopped", "spec": None}))
            await eventually(
                lambda: (report := master.report_of(desired.container_id)) is not None and report.output_done
            )
