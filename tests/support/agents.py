"""An agent inside the test's own process, and containers for it to run."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.fake_link_master import TOKEN

from determined.link.messages import ContainerSpec, DesiredContainer
from determined_agent.agent_state import AgentState
from determined_agent.connection import Connection
from determined_agent.daemon import Daemon
from determined_agent.devices import find_slots
from determined_agent.drivers.driver import Driver
from determined_agent.drivers.process import ProcessDriver
from determined_agent.entry_command import with_hooks
from determined_agent.hooks.devices import DevicesHook
from determined_agent.hooks.environment import EnvironmentHook
from determined_agent.hooks.files import FilesHook
from determined_agent.hooks.hook import Draft
from determined_agent.hooks.mounts import MountsHook
from determined_agent.hooks.proxy_ports import ProxyPortsHook
from determined_agent.mount_probe import can_mount
from determined_agent.settings import Settings
from determined_agent.task_python import PythonProbe

BASE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}


def plain_boot(draft: Draft) -> tuple[str, ...]:
    """Stands in for run_task: the entrypoint itself, after the hooks."""
    entrypoint = json.loads(draft.environment["DET_ENTRYPOINT_JSON"])
    return with_hooks(draft, ("sh", "-c", entrypoint) if isinstance(entrypoint, str) else tuple(entrypoint))


def make_wish(entrypoint: str | list[str] = "true", *, container_id: str = "", **spec: Any) -> DesiredContainer:
    container_id = container_id or uuid.uuid4().hex
    environment = {
        "DET_MASTER": "http://127.0.0.1:1",
        "DET_TASK_ID": "1.task",
        "DET_ALLOCATION_ID": "1.task.1",
        "DET_TASK_TYPE": "TRIAL",
        **spec.pop("environment", {}),
    }
    given = {"slots": [0]} | spec
    made = ContainerSpec(task_id="1.task", environment=environment, entrypoint=entrypoint, **given)
    return DesiredContainer(container_id=container_id, allocation_id="1.task.1", state="running", spec=made)


@asynccontextmanager
async def agent_on(
    url: str, data: Path, *, driver: Driver | None = None, slots: int = 2, **settings: Any
) -> AsyncIterator[Daemon]:
    """An agent with the real hooks; its end ends no container."""
    told = Settings(master=url, data=data, slots=slots, tasks_as_me=True, base_environment=BASE, **settings)
    memory = AgentState(data)
    memory.name("agent-1")
    found = find_slots(slots)
    hooks: Sequence[Any] = (
        EnvironmentHook(told, "agent-1", len(found), PythonProbe(BASE)),
        FilesHook(told, TOKEN),
        DevicesHook(found),
        MountsHook(can_mount),
        ProxyPortsHook(),
    )
    daemon = Daemon(told, TOKEN, memory, found, driver or ProcessDriver(), hooks, boot=plain_boot)
    daemon.adopt()
    link = asyncio.create_task(Connection(url, lambda: TOKEN, daemon).run())
    try:
        yield daemon
    finally:
        link.cancel()
        await asyncio.gather(link, return_exceptions=True)
        await daemon.close()
