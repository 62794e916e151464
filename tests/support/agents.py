"""Runs an agent inside the test's own process, and makes containers for it."""

import asyncio
import functools
import hashlib
import io
import json
import tarfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import zstandard
from tests.support.fake_link_master import TOKEN, FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined.link.messages import ContainerExit, ContainerSpec, ContextRef, DesiredContainer
from determined_agent.container import CommandBuilder
from determined_agent.daemon import Daemon
from determined_agent.devices import find_slots
from determined_agent.drivers.driver import Driver
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.master_link.connection import Connection
from determined_agent.run_folders.agent_state import AgentState
from determined_agent.runtime import make_runtime
from determined_agent.settings import Settings
from determined_agent.task_process.entry_command import with_hooks

BASE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


def plain_command(plan: ContainerPlan) -> tuple[str, ...]:
    """Replaces run_task: returns the entrypoint itself, after the hooks."""
    entrypoint = json.loads(plan.environment["DET_ENTRYPOINT_JSON"])
    return with_hooks(plan, ("sh", "-c", entrypoint) if isinstance(entrypoint, str) else tuple(entrypoint))


def make_desired(entrypoint: str | list[str] = "true", *, container_id: str = "", **spec: Any) -> DesiredContainer:
    container_id = container_id or uuid.uuid4().hex
    environment = {
        "DET_MASTER": "http://127.0.0.1:1",
        "DET_TASK_ID": "1.task",
        "DET_ALLOCATION_ID": "1.task.1",
        "DET_TASK_TYPE": "TRIAL",
        **spec.pop("environment", {}),
    }
    fields = {"slots": [0]} | spec
    created = ContainerSpec(task_id="1.task", environment=environment, entrypoint=entrypoint, **fields)
    return DesiredContainer(container_id=container_id, allocation_id="1.task.1", state="running", spec=created)


@asynccontextmanager
async def agent_on(
    url: str,
    data: Path,
    *,
    driver: Driver | None = None,
    slots: int = 2,
    build_command: CommandBuilder = plain_command,
    **settings: Any,
) -> AsyncIterator[Daemon]:
    """Yields a daemon with the real hooks. Closing it ends no container."""
    values = {"base_environment": BASE} | settings
    agent_settings = Settings(master=url, data=data, slots=slots, tasks_as_me=True, **values)
    memory = AgentState(data)
    memory.name("agent-1")
    device_slots = find_slots(slots)
    runtime = make_runtime(
        agent_settings, "agent-1", device_slots, TOKEN, cluster_folders=lambda: memory.cluster_folders
    )
    daemon = Daemon(
        agent_settings,
        TOKEN,
        memory,
        device_slots,
        driver or runtime.driver,
        runtime.hooks,
        build_command=build_command,
    )
    daemon.adopt()
    link = asyncio.create_task(Connection(url, lambda: TOKEN, daemon).run())
    try:
        yield daemon
    finally:
        link.cancel()
        await asyncio.gather(link, return_exceptions=True)
        await daemon.close()
        await runtime.close()


def make_context(master: FakeLinkMaster, **files: str) -> ContextRef:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_sh", ".sh").replace("_hook", "-hook"))
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    data = zstandard.compress(buffer.getvalue())
    name = hashlib.sha256(data).hexdigest()
    master.contexts[name] = data
    return ContextRef(hash=name, size=len(data))


def is_done(master: FakeLinkMaster, desired: DesiredContainer) -> bool:
    report = master.report_of(desired.container_id)
    return report is not None and report.output_done


async def outcome(
    tmp_path: Path, entrypoint: str | list[str], *, master: FakeLinkMaster | None = None, **spec: Any
) -> tuple[ContainerExit, list[str], list[str]]:
    """Runs a container to its end. Returns its exit, the task's lines and the agent's lines."""
    master = master or FakeLinkMaster()
    settings = spec.pop("settings", {})
    desired = make_desired(entrypoint, **spec)
    async with serving(master.app()) as url, agent_on(url, tmp_path / "data", **settings):
        await master.set_desired(desired)
        await eventually(functools.partial(is_done, master, desired))
    report = master.report_of(desired.container_id)
    assert report is not None
    assert report.exit is not None
    return report.exit, master.text_of(desired.container_id), master.text_of(desired.container_id, "agent")
