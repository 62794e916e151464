"""The agent as a whole: holds the containers, follows the desired state and reports the actual state."""

import asyncio
import contextlib
import dataclasses
import logging
import socket
import time
from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

from determined.link.isolation import Isolation
from determined.link.messages import (
    ContainerExit,
    DesiredContainer,
    DesiredState,
    Hello,
    OpenStream,
    ReportedContainer,
    ReportedState,
    SlotFacts,
    SlotStatus,
    Welcome,
)
from determined.link.run_folder import RunFolder
from determined.states import ContainerState
from determined_agent import reconcile
from determined_agent.container import CommandBuilder, Container
from determined_agent.drivers.driver import Driver
from determined_agent.hooks.hook import Hook
from determined_agent.host_access.access import ClusterFolders
from determined_agent.master_link.http import HttpClient
from determined_agent.output.known_secrets import mask_of
from determined_agent.output.shipper import OutputShipper
from determined_agent.pilot import ExitHold
from determined_agent.run_folders.agent_state import AgentState
from determined_agent.run_folders.leftover_reports import send_leftover_reports
from determined_agent.run_folders.tree_removal import remove_tree
from determined_agent.settings import Settings
from determined_agent.streams.program import TaskEntry
from determined_agent.streams.sessions import MasterAddress, Sessions
from determined_agent.task_process.entry_command import build_command
from determined_launch.out_of_space import is_out_of_space
from determined_launch.version import DETENT_VERSION

logger = logging.getLogger(__name__)

SOON_SECONDS = 0.1
"""Delay of a report for which nobody waits. What changes meanwhile is in the same report."""


class Daemon:
    """The agent's containers and the latest messages of its master."""

    def __init__(
        self,
        settings: Settings,
        token: str,
        memory: AgentState,
        slots: Sequence[SlotFacts],
        driver: Driver,
        hooks: Sequence[Hook],
        build_command: CommandBuilder = build_command,
        exit_hold: ExitHold | None = None,
        entry: TaskEntry | None = None,
    ) -> None:
        self._settings = settings
        self._exit_hold = exit_hold
        self._client = HttpClient(settings.master, token, trust=settings.trust, is_shared=True)
        """For the output of all containers."""
        self._sessions = None
        if entry is not None:
            address = MasterAddress(settings.master, token, settings.trust)
            self._sessions = Sessions(address, entry, self._running_folder)
        self._memory = memory
        self._slots = list(slots)
        self._driver = driver
        self._hooks = tuple(hooks)
        self._build_command = build_command
        self._containers: dict[str, Container] = {}
        self._terminated: dict[str, ReportedContainer] = {}
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._removals: set[asyncio.Task[bool]] = set()
        self._told: set[str] = set()
        """Containers of which the master was sent the end of their output by this connection."""
        self._takes_last_output = False
        self._desired: DesiredState | None = None
        self._sequence = 0
        self._slot_statuses: list[SlotStatus] = []
        self._items = Isolation("reconcile", logger)
        self._retry: asyncio.TimerHandle | None = None
        self._address = settings.host_address or "127.0.0.1"
        self.changed = asyncio.Event()
        """Set when the reported state is to be sent."""
        self._soon: asyncio.TimerHandle | None = None

    @property
    def hello(self) -> Hello:
        return Hello(
            agent_id=self._memory.agent_id,
            pool=self._settings.pool,
            version=DETENT_VERSION,
            hostname=socket.gethostname(),
            slots=self._slots,
            containers=self.reported.containers,
            master_epoch=self._memory.master_epoch,
            cluster_id=self._memory.cluster_id,
            container_runtime=self._settings.container_runtime,
            folder_id=self._memory.folder_id,
            sent_at=time.time(),
            takes_streams=self._sessions is not None,
            takes_ssh=self._sessions is not None,
        )

    @property
    def reported(self) -> ReportedState:
        containers = [container.reported for container in self._containers.values()]
        return ReportedState(
            wish_sequence=self._sequence,
            containers=[*containers, *self._terminated.values()],
            slots=self._slot_statuses,
            sent_at=time.time(),
        )

    def next_report(self) -> ReportedState:
        """Returns the state to send now; it has all changes until now."""
        self.changed.clear()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        offered = [container.take_last_output() for container in self._containers.values()]
        last_output = [batch for batch in offered if batch is not None]
        return self.reported.model_copy(update={"last_output": last_output}) if last_output else self.reported

    @property
    def held_slots(self) -> Mapping[int, str]:
        """Returns, by slot, the containers that have not ended."""
        return {number: name for name, container in self._containers.items() for number in container.held_slots}

    @property
    def has_tasks(self) -> bool:
        """Returns True while a container has not ended."""
        return any(not container.state.is_terminal for container in self._containers.values())

    @property
    def has_processes(self) -> bool:
        """Returns True while a task runs; one whose exit is held back does not."""
        lives = sum(not container.state.is_terminal for container in self._containers.values())
        return lives > (self._exit_hold.held if self._exit_hold is not None else 0)

    def set_slot_statuses(self, statuses: list[SlotStatus]) -> None:
        """Reports the slots that are not free."""
        self._slot_statuses = statuses
        self.changed.set()

    @property
    def container_ids(self) -> Set[str]:
        """Returns the containers whose run folders are in use."""
        return self._containers.keys()

    def adopt(self) -> None:
        """Adopts every container that has a run folder."""
        for folder in self._memory.folders():
            try:
                self._take(self._container(folder, folder.read_record()))
            except Exception as problem:  # a broken container must not prevent the adoption of others
                logger.error("cannot read run folder %s; it is not deleted: %r", folder.path, problem)

    def welcome(self, welcome: Welcome, address: str) -> bool:
        """Handles the welcome of a master. Returns False if the master is older than one that was obeyed before."""
        if not self._settings.host_address:
            self._address = address
        self._takes_last_output = welcome.takes_last_output
        folders = ClusterFolders(tuple(welcome.storage_folders), welcome.data_folder)
        return self._memory.obey(welcome.cluster_id, welcome.master_epoch, folders)

    def obey(self, desired: DesiredState) -> None:
        if desired.master_epoch < self._memory.master_epoch:
            logger.warning("ignored a desired state from an older master")
            return
        self._desired = desired
        self._sequence = desired.sequence
        for container_id, committed in desired.stored_output.items():
            container = self._containers.get(container_id)
            if container is not None and container.stored_output(committed):
                self._told.add(container_id)
        self._reconcile()
        self._report_soon()

    def open_stream(self, message: OpenStream) -> None:
        """Connects a stream into one of the containers."""
        if self._sessions is not None:
            self._sessions.open(message)

    def sent(self, report: ReportedState) -> None:
        """Notes a report that was sent. A container is forgotten only after one with the end of its output: no later
        report speaks of it, and the master would wait for that end."""
        done = {each.container_id for each in report.containers if each.output_done}
        if not done <= self._told:
            self._told |= done
            self._reconcile()

    def cut_off(self) -> None:
        """Handles the loss of the connection: nothing changes until the next desired state."""
        self._desired = None
        self._told.clear()
        self._takes_last_output = False

    async def close(self) -> None:
        """Ends the agent but none of its containers."""
        for timer in (self._retry, self._soon):
            if timer is not None:
                timer.cancel()
        for life in self._lives.values():
            life.cancel()
        await asyncio.gather(*self._lives.values(), *self._removals, return_exceptions=True)
        if self._sessions is not None:
            await self._sessions.close()
        await self._client.aclose()
        self._memory.close()

    def _reconcile(self) -> None:
        if self._desired is None:
            return
        known = {name: self._known(container) for name, container in self._containers.items()}
        known |= {name: reconcile.Known(True, False, True) for name in self._terminated}
        for step in reconcile.reconcile(self._desired, known, newest_epoch=self._memory.master_epoch):
            self._items.run_now("container", _container_of(step), partial(self._apply, step))
        left = self._items.seconds_left()
        if self._retry is not None:
            self._retry.cancel()
        self._retry = None if left is None else asyncio.get_running_loop().call_later(left, self._reconcile)

    def _known(self, container: Container) -> reconcile.Known:
        known = container.known
        is_told = container.container_id in self._told
        return dataclasses.replace(known, is_output_done=known.is_output_done and is_told)

    def _apply(self, step: reconcile.Step) -> None:
        match step:
            case reconcile.Start(desired):
                self._start(desired)
            case reconcile.Stop(container_id):
                self._containers[container_id].stop()
            case reconcile.MarkTerminated(desired):
                self._mark_terminated(desired, ContainerExit(kind="killed", message="stopped before it started"))
            case reconcile.Forget(container_id):
                self._forget(container_id)

    def _start(self, desired: DesiredContainer) -> None:
        assert desired.spec is not None
        if self._exit_hold is not None and self._exit_hold.is_job_ending:
            return  # the master learns of the end soon, and places it elsewhere
        record = {
            "container_id": desired.container_id,
            "allocation_id": desired.allocation_id,
            "address": self._address,
            "spec": desired.spec.model_dump(),
        }
        try:
            folder = self._memory.folder(desired.container_id)
            folder.make()
            folder.write_record(record)
            container = self._container(folder, record)
        except Exception as problem:
            if is_out_of_space(problem):
                raise  # the start is retried; until then the master sees the container as assigned
            logger.error("cannot start container %s: %s", desired.container_id, problem)
            self._mark_terminated(
                desired, ContainerExit(kind="system", message=f"cannot create a run folder: {problem}")
            )
            return
        self._take(container)

    def _take(self, container: Container) -> None:
        self._containers[container.container_id] = container
        life = asyncio.create_task(container.run(), name=f"container {container.container_id}")
        life.add_done_callback(self._report)
        self._lives[container.container_id] = life

    def _mark_terminated(self, desired: DesiredContainer, ended: ContainerExit) -> None:
        self._terminated[desired.container_id] = ReportedContainer(
            container_id=desired.container_id,
            allocation_id=desired.allocation_id,
            state=ContainerState.TERMINATED,
            address=self._address,
            exit=ended,
            output_done=True,
        )
        self.changed.set()

    def _forget(self, container_id: str) -> None:
        container = self._containers.get(container_id)
        trash = None
        if container is not None:
            # First: a container whose folder stays is not forgotten, and the next reconciliation tries again.
            with contextlib.suppress(FileNotFoundError):
                trash = self._memory.discard(container.folder)
        self._terminated.pop(container_id, None)
        self._told.discard(container_id)
        self._containers.pop(container_id, None)
        self._lives.pop(container_id, None)
        if trash is not None:
            removal = asyncio.create_task(asyncio.to_thread(remove_tree, trash))
            self._removals.add(removal)
            removal.add_done_callback(self._removals.discard)
        self._report_soon()

    def _running_folder(self, container_id: str) -> RunFolder | None:
        container = self._containers.get(container_id)
        return container.folder if container is not None and container.state is ContainerState.RUNNING else None

    def _note(self, is_urgent: bool) -> None:
        if is_urgent:
            self.changed.set()
        else:
            self._report_soon()
        if self._sessions is not None:
            self._sessions.end_left()
        # Deferred, because a change may happen inside a step.
        asyncio.get_running_loop().call_soon(self._reconcile)

    def _report_soon(self) -> None:
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(SOON_SECONDS, self.changed.set)

    def _report(self, life: asyncio.Task[None]) -> None:
        if not life.cancelled() and life.exception() is not None:
            logger.error("%s failed", life.get_name(), exc_info=life.exception())

    def _container(self, folder: RunFolder, record: dict[str, Any]) -> Container:
        mask = mask_of(record["spec"])
        shipper = OutputShipper(
            folder,
            self._client,
            agent_id=self._memory.agent_id,
            allocation_id=record["allocation_id"],
            task_id=record["spec"]["task_id"],
            on_done=lambda: self._note(False),
            takes_last_output=lambda: self._takes_last_output,
            mask=mask,
        )
        return Container(
            folder,
            record,
            driver=self._driver,
            hooks=self._hooks,
            build_command=self._build_command,
            shipper=shipper,
            on_change=self._note,
            mask=mask,
            may_report=None if self._exit_hold is None else self._exit_hold.wait,
            send_reports=lambda: send_leftover_reports(
                folder, record["spec"]["environment"], self._settings.master, self._settings.trust
            ),
        )


def _container_of(step: reconcile.Step) -> str:
    match step:
        case reconcile.Start(desired) | reconcile.MarkTerminated(desired):
            return desired.container_id
        case reconcile.Stop(container_id) | reconcile.Forget(container_id):
            return container_id
