"""``det-agent``: reads the settings and runs the daemon and its connection until SIGTERM.

The end of the agent ends no task: the next agent on the same data folder adopts them. To end tasks, ask the master
(``det up`` does).
"""

import determined_agent.distribution_guard  # noqa: F401  # before all that may have been overwritten

# isort: split
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from pathlib import Path

from determined.errors import DeterminedError
from determined_agent.agent_state import AgentState
from determined_agent.connection import Connection, Refused
from determined_agent.daemon import Daemon
from determined_agent.devices import find_slots
from determined_agent.drivers.driver import OutputLimits, ProcessOptions
from determined_agent.drivers.process import ProcessDriver
from determined_agent.hooks.devices import DevicesHook
from determined_agent.hooks.environment import EnvironmentHook
from determined_agent.hooks.files import FilesHook
from determined_agent.hooks.mounts import MountsHook
from determined_agent.hooks.proxy_ports import ProxyPortsHook
from determined_agent.logging import configure
from determined_agent.mount_probe import can_mount
from determined_agent.run_folder_cleanup import RunFolderCleanup
from determined_agent.settings import Settings, read_settings
from determined_agent.task_python import PythonProbe

logger = logging.getLogger(__name__)

EXIT_USAGE, EXIT_REFUSED = 2, 3
PRIVATE_UMASK = 0o077


def main() -> int:
    """Runs an agent. Returns 0 after SIGTERM or SIGINT, 3 if the master refuses the agent permanently."""
    try:
        settings = read_settings(sys.argv[1:], os.environ)
        configure(settings.log_level)
        if not settings.tasks_as_me:
            raise DeterminedError(_why_tasks_as_me())
        umask = os.umask(PRIVATE_UMASK)
        _close_folder(settings.data)
        return asyncio.run(run(settings, umask))
    except Refused as problem:
        print(f"det-agent: {problem.message}", file=sys.stderr)
        return EXIT_REFUSED
    except (DeterminedError, OSError) as problem:
        print(f"det-agent: {problem}", file=sys.stderr)
        return EXIT_USAGE


def _close_folder(data: Path) -> None:
    """Makes the data folder private: it contains the tasks' tokens, and an earlier version may have left it open."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        data.chmod(0o700)
    except PermissionError:
        logger.warning(
            "%s can be read by other users of this machine, because it belongs to another user",
            data,
        )


async def run(settings: Settings, umask: int) -> int:
    """Runs one agent from start to signal. ``umask`` is for tasks."""
    loop = asyncio.get_running_loop()
    told_to_end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told_to_end.set)
    memory = AgentState(settings.data)
    memory.name(settings.id or memory.agent_id or socket.gethostname())
    token = _read_token(settings.token_file)
    slots = await asyncio.to_thread(find_slots, settings.slots)
    limits = OutputLimits(settings.output_segment_bytes, settings.unsent_output_bytes, settings.output_line_bytes)
    has_pids = settings.isolation == "auto" and os.geteuid() == 0
    environment_hook = EnvironmentHook(settings, memory.agent_id, len(slots), PythonProbe(settings.base_environment))
    hooks = (
        environment_hook,
        FilesHook(settings, token),
        DevicesHook(slots),
        MountsHook(can_mount),
        ProxyPortsHook(),
    )
    daemon = Daemon(settings, token, memory, slots, ProcessDriver(ProcessOptions(has_pids, limits, umask)), hooks)
    daemon.adopt()
    link = asyncio.create_task(Connection(settings.master, lambda: token, daemon).run())
    warming = asyncio.create_task(_warm(environment_hook))
    cleaning = asyncio.create_task(RunFolderCleanup(memory, lambda: daemon.container_ids, settings).run())
    ending = asyncio.create_task(told_to_end.wait())
    logger.info("agent %s with %d slots", memory.agent_id, len(slots))
    try:
        await asyncio.wait({link, ending}, return_when=asyncio.FIRST_COMPLETED)
        if link.done():
            link.result()
        return 0
    finally:
        for task in (link, ending, warming, cleaning):
            task.cancel()
        await asyncio.gather(link, ending, warming, cleaning, return_exceptions=True)
        await daemon.close()


async def _warm(hook: EnvironmentHook) -> None:
    """Prepares slow steps before the first trial. Ignores problems because the trial reports them with their text."""
    with contextlib.suppress(Exception):
        await asyncio.to_thread(can_mount)
        await hook.warm()


def _read_token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DeterminedError(f"cannot read the join token {path}: {error.strerror}") from error


def _why_tasks_as_me() -> str:
    who = "root" if os.geteuid() == 0 else "this user"
    return (
        f"tasks would run as {who} and could read every file that {who} can read, because this agent cannot run them "
        "as their owners yet; add --tasks-as-me to accept this"
    )


if __name__ == "__main__":
    sys.exit(main())
