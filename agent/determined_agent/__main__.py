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
from collections.abc import Callable, Set
from pathlib import Path

from determined.errors import DeterminedError
from determined_agent.accelerators.slot_monitor import SlotMonitor
from determined_agent.daemon import Daemon
from determined_agent.devices import find_slots
from determined_agent.host_access.mount_probe import can_mount, can_mount_as_root
from determined_agent.logging import configure
from determined_agent.master_link.connection import Connection, Refused
from determined_agent.pilot import LOOK_SECONDS, ExitHold, prepare_folder
from determined_agent.run_folders.agent_state import AgentState
from determined_agent.run_folders.run_folder_cleanup import RunFolderCleanup
from determined_agent.run_folders.tree_removal import remove_tree
from determined_agent.runtime import Runtime, make_runtime
from determined_agent.settings import Settings, read_settings

logger = logging.getLogger(__name__)

EXIT_USAGE, EXIT_REFUSED = 2, 3
PRIVATE_UMASK = 0o077


def main() -> int:
    """Runs an agent. Returns 0 after SIGTERM or SIGINT, 3 if the master refuses the agent permanently."""
    try:
        settings = read_settings(sys.argv[1:], os.environ)
        configure(settings.log_level, as_json=settings.log_format == "json")
        check_user(settings)
        umask = os.umask(PRIVATE_UMASK)
        if settings.pilot:
            prepare_folder(settings.data)
        _close_folder(settings.data)
        try:
            return asyncio.run(run(settings, umask))
        finally:
            if settings.pilot:
                remove_tree(settings.data)
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
    slots = await asyncio.to_thread(
        lambda: find_slots(
            settings.slots,
            slot_type=settings.slot_type,
            data=settings.data,
            job=settings.job_devices if settings.pilot else None,
        )
    )
    monitor = await asyncio.to_thread(
        lambda: SlotMonitor(
            slots,
            seconds=settings.slot_check_seconds,
            busy_mib=settings.slot_busy_mib,
            idle_seconds=settings.slot_idle_seconds,
        )
    )
    runtime = make_runtime(
        settings, memory.agent_id, slots, token, umask, monitor, cluster_folders=lambda: memory.cluster_folders
    )
    exit_hold = ExitHold() if settings.pilot else None
    daemon = Daemon(
        settings, token, memory, slots, runtime.driver, runtime.hooks, exit_hold=exit_hold, entry=runtime.entry
    )
    daemon.adopt()
    connection = Connection(settings.master, lambda: token, daemon, settings.trust)
    link = asyncio.create_task(connection.run())
    warming = asyncio.create_task(_warm(runtime, lambda: daemon.container_ids))
    cleaning = asyncio.create_task(RunFolderCleanup(memory, lambda: daemon.container_ids, settings).run())
    cleaning_images = asyncio.create_task(runtime.clean_up())
    watching = asyncio.create_task(monitor.run(daemon))
    ending = asyncio.create_task(_until_end(told_to_end, daemon, exit_hold))
    background = [link, ending, warming, cleaning, cleaning_images, watching]
    if (seconds := settings.end_without_master_seconds) is not None:
        alone = asyncio.create_task(connection.stays_away(seconds, lambda: daemon.has_tasks))
        alone.add_done_callback(lambda _done: told_to_end.set())
        background.append(alone)
    logger.info("agent %s with %d slots", memory.agent_id, len(slots))
    try:
        await asyncio.wait({link, ending}, return_when=asyncio.FIRST_COMPLETED)
        if link.done():
            link.result()
        return 0
    finally:
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        await daemon.close()
        await runtime.close()


async def _until_end(told: asyncio.Event, daemon: Daemon, exit_hold: ExitHold | None) -> None:
    """Returns when the agent is to end. A pilot waits for its tasks, which nobody would adopt: its job ends with it."""
    await told.wait()
    if exit_hold is None:
        return
    logger.info("the job of this agent ends")
    exit_hold.job_ends()
    while True:
        if not daemon.has_processes:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _warm(runtime: Runtime, known: Callable[[], Set[str]]) -> None:
    """Prepares slow steps before the first trial. Ignores problems because the trial reports them with their text."""
    with contextlib.suppress(Exception):
        await asyncio.to_thread(can_mount)
        await runtime.environment.warm()
    with contextlib.suppress(Exception):
        await runtime.start(known)


def _read_token(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise DeterminedError(f"cannot read the join token {path}: {error.strerror}") from error


def check_user(settings: Settings) -> None:
    """Raises DeterminedError if tasks would run as the agent's own user without consent. Warns what root cannot do."""
    if os.geteuid() != 0:
        if not settings.tasks_as_me:
            raise DeterminedError(
                "tasks would run as this user and could read every file that this user can read, because only an agent "
                "that runs as root can run them as their owners; add --tasks-as-me to accept this"
            )
        return
    if settings.container_runtime == "process" and not can_mount_as_root():
        logger.warning(
            "this agent runs as root and may not make private mounts (no CAP_SYS_ADMIN): tasks of users who are linked "
            "with a user of this machine will be refused"
        )


if __name__ == "__main__":
    sys.exit(main())
