"""Life cycle of one container: hooks, start, running, exit.

Begins from a desired container or an existing run folder.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from determined.link.messages import (
    MAX_RUNTIME_ID,
    MAX_START_NOTE,
    ContainerExit,
    ContainerSpec,
    OutputBatch,
    ReportedContainer,
)
from determined.link.run_folder import RunFolder
from determined.states import ContainerState
from determined_agent.drivers.driver import ContainerLaunch, Driver, NotStarted, RunEnd, SystemFailure
from determined_agent.hooks.hook import ContainerPlan, Hook, log_line
from determined_agent.hooks.identity import hand_over_folder
from determined_agent.output.exit_report import bounded, exit_of, log_text, masked
from determined_agent.output.shipper import OutputShipper
from determined_agent.reconcile import Known
from determined_agent.run_folders.left_files import find_left, kept_outputs
from determined_agent.task_process.entry_command import program_of
from determined_launch import environment, rendezvous
from determined_launch.out_of_space import is_out_of_space

logger = logging.getLogger(__name__)

DISK_RETRY_SECONDS = 5.0
CommandBuilder = Callable[[ContainerPlan], tuple[str, ...]]


class Container:
    """One container and its state. ``run`` advances it, ``stop`` ends it."""

    def __init__(
        self,
        folder: RunFolder,
        record: dict[str, Any],
        *,
        driver: Driver,
        hooks: Sequence[Hook],
        build_command: CommandBuilder,
        shipper: OutputShipper,
        on_change: Callable[[bool], None],
        send_reports: Callable[[], Awaitable[object]],
        may_report: Callable[[RunEnd], Awaitable[None]] | None = None,
        mask: Callable[[str], str] = str,
    ) -> None:
        """Creates the container.

        Args:
            folder: its run folder, with the ``record`` that was read from it.
            record: what the master desires, and what this agent has decided.
            driver: runs it.
            hooks: prepare it, in this order.
            build_command: returns its command.
            shipper: sends its output.
            on_change: called after each change; True if somebody waits for it.
            send_reports: sends the reports that the task left when it ended.
            may_report: waits before the end of a container that nobody stopped is reported, because the end of the
                agent's Slurm job may be its cause; default: it is reported at once.
            mask: replaces in a line of the task what others must not read.
        """
        self.container_id = folder.path.name
        self.folder = folder
        self._record = record
        self._spec = ContainerSpec.model_validate(record["spec"])
        self._driver = driver
        self._hooks = tuple(hooks)
        self._build_command = build_command
        self._shipper = shipper
        self._on_change = on_change
        self._plan = self._new_plan()
        self._is_ready = folder.order.exists() and self._knows_rendezvous()
        self._send_reports = send_reports
        self._may_report = may_report
        self._mask = mask
        self._preparing: asyncio.Task[ContainerLaunch] | None = None
        self._ids = {"container_id": self.container_id, "allocation_id": record["allocation_id"]}
        self._is_stopping = folder.stop.exists()
        # A state never moves back, not even over a restart of the agent.
        self.exit: ContainerExit | None = None
        self.state = ContainerState.RUNNING if folder.order.exists() else ContainerState.ASSIGNED
        if "exit" in record:
            self.exit = bounded(ContainerExit.model_validate(record["exit"]))
            self.state = ContainerState.TERMINATED

    @property
    def known(self) -> Known:
        return Known(self.state.is_terminal, self._is_stopping, self._shipper.is_done)

    @property
    def reported(self) -> ReportedContainer:
        return ReportedContainer(
            container_id=self.container_id,
            allocation_id=self._record["allocation_id"],
            state=self.state,
            address=self._record["address"],
            exit=self.exit,
            output_done=self.state.is_terminal and self._shipper.is_done,
            is_ready=self._is_ready,
            runtime_id=self._driver.runtime_id(self.folder)[:MAX_RUNTIME_ID],
            needed_environment="" if self.state.is_terminal else self._plan.needed_environment,
            start_note=self._plan.start_note[:MAX_START_NOTE],
        )

    def take_last_output(self) -> OutputBatch | None:
        """Returns, once, the output to send with the report of its end."""
        return self._shipper.take_offer()

    def stored_output(self, committed: int) -> bool:
        """Handles the offset up to which the master has stored its output together with its end. Returns True if that
        is all of it."""
        return self._shipper.answered(committed)

    @property
    def held_slots(self) -> tuple[int, ...]:
        """Returns its slots until it has ended."""
        return () if self.state.is_terminal else tuple(self._spec.slots)

    async def run(self) -> None:
        """Continues from the state of the run folder to the end, until the last line is acknowledged."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._shipper.run())
            await self._live()

    def stop(self) -> None:
        """Ends the container immediately; ``state`` shows its end."""
        self._is_stopping = True
        self.folder.request_stop()
        if self._preparing is not None:
            self._preparing.cancel()
        else:
            self._driver.stop(self.folder)

    async def _live(self) -> None:
        if self.exit is None:
            ended = await self._until_end()
            if self._may_report is not None and not self._is_stopping:
                await self._may_report(ended)
            try:
                await self._send_reports()
            except Exception:
                logger.exception(
                    "cannot send the remaining metric reports of a container; they are lost", extra=self._ids
                )
            self.exit = await self._exit_of(ended)
            logger.info("container ended: %s %s", self.exit.kind, self.exit.message, extra=self._ids)
            await asyncio.to_thread(self._record_exit, self.exit)
            await self._shipper.finish(with_report=True)
            self._move(ContainerState.TERMINATED, is_urgent=True)
            # Last: the next task waits for the slots, and not for the removal of files.
            await self._undo(self._hooks)
            return
        await self._shipper.finish()
        self._move(ContainerState.TERMINATED, is_urgent=True)

    async def _exit_of(self, ended: RunEnd) -> ContainerExit:
        """Returns the exit for the master. A failure ends the container too, which would hold its slots for good."""
        try:
            return masked(await asyncio.to_thread(exit_of, ended, self.folder), self._mask)
        except Exception as problem:
            logger.exception("cannot describe the end of a container", extra=self._ids)
            message = f"the agent cannot describe how the container ended: {type(problem).__name__}"
            return ContainerExit(kind="system", message=message)

    def _record_exit(self, ended: ContainerExit) -> None:
        """Writes the end into the log and into the record. Blocking: it looks through the files that the
        task left, and a task may have filled the disk of its log."""
        try:
            left = self._left_files()
            if left:
                log_line(self.folder, left, "INFO")
            if ended.message:
                log_line(self.folder, log_text(ended), "ERROR")
        except Exception:
            logger.exception("cannot write the end of a container into its log", extra=self._ids)
        try:
            self._record["exit"] = ended.model_dump()
            self.folder.write_record(self._record)
        except Exception:
            logger.exception("cannot write the exit status of a container to the disk", extra=self._ids)

    def _left_files(self) -> str:
        """Returns the line about files that the task left in its working folder, which is removed;
        empty without any, and if no process was started."""
        try:
            since = self.folder.order.stat().st_mtime
        except OSError:
            return ""
        return find_left(self.folder.workdir, since, kept_outputs(self.folder)).text()

    async def _until_end(self) -> RunEnd:
        try:
            if not self.folder.order.exists():
                launch = await self._prepare()
                if launch is None:
                    return RunEnd("stopped")
                self._move(ContainerState.STARTING)
                if not await self._start(launch):
                    return RunEnd("stopped")
            self._is_ready = self._knows_rendezvous()
            self._move(ContainerState.RUNNING, is_urgent=not self._is_ready)
            if self._is_stopping:
                self._driver.stop(self.folder)
            return await self._wait()
        except NotStarted as problem:
            return RunEnd("failed_to_start", message=str(problem))
        except SystemFailure as problem:
            return RunEnd("system", message=str(problem))
        except Exception as problem:
            logger.exception("container failed", extra=self._ids)
            return RunEnd("system", message=f"the agent failed: {type(problem).__name__}: {problem}")

    async def _start(self, launch: ContainerLaunch) -> bool:
        """Starts the process; retries while the disk is full. Returns False if the container was stopped before."""
        while not self._is_stopping:
            try:
                await self._driver.start(launch)
                return True
            except OSError as error:
                if not is_out_of_space(error):
                    raise
                logger.warning("the disk is full; a container waits: %s", error, extra=self._ids)
            await asyncio.sleep(DISK_RETRY_SECONDS)
        return False

    async def _wait(self) -> RunEnd:
        """Returns how the container ended; retries while the disk is too full to record the end."""
        while True:
            try:
                return await self._driver.wait(self.folder)
            except OSError as error:
                if not is_out_of_space(error):
                    raise
                logger.warning("the disk is full; the end of a container waits: %s", error, extra=self._ids)
            await asyncio.sleep(DISK_RETRY_SECONDS)

    async def _prepare(self) -> ContainerLaunch | None:
        """Returns the launch; None if the container was stopped before."""
        if self._is_stopping:
            return None
        self._move(ContainerState.PULLING)
        self._preparing = asyncio.create_task(self._run_hooks())
        try:
            launch = await asyncio.shield(self._preparing)
        except asyncio.CancelledError:
            if not self._is_stopping:
                self._preparing.cancel()
                raise  # the agent ends; the next agent prepares again
            return None
        finally:
            self._preparing = None
        return None if self._is_stopping else launch

    async def _run_hooks(self) -> ContainerLaunch:
        """Runs the hooks; retries while the disk is full."""
        while True:
            try:
                return await self._run_hooks_once()
            except OSError as error:
                if not is_out_of_space(error):
                    raise
                logger.warning("the disk is full; a container waits: %s", error, extra=self._ids)
            await self._undo(self._hooks)
            self._plan = self._new_plan()
            await asyncio.sleep(DISK_RETRY_SECONDS)

    async def _run_hooks_once(self) -> ContainerLaunch:
        for hook in self._hooks:
            await hook.do(self._plan)
            self._shipper.wake()
        plan = self._plan
        argv = self._build_command(plan)
        if plan.identity is not None:
            is_container = plan.container is not None
            await asyncio.to_thread(hand_over_folder, self.folder, plan.identity, is_container=is_container)
        return ContainerLaunch(
            self.folder,
            argv,
            plan.environment,
            plan.workdir,
            tuple(plan.mounts),
            plan.container,
            plan.identity,
            tuple(plan.reachable),
            program_of(argv),
        )

    def _new_plan(self) -> ContainerPlan:
        return ContainerPlan(
            self.container_id, self._spec, self.folder, self._record["address"], on_change=self._report
        )

    def _knows_rendezvous(self) -> bool:
        return rendezvous.is_known({environment.RUN_DIR: str(self.folder.run)})

    async def _undo(self, hooks: Sequence[Hook]) -> None:
        for hook in reversed(hooks):
            try:
                await hook.undo(self._plan)
            except Exception:
                logger.exception("cannot clean up after a container", extra=self._ids)

    def _report(self) -> None:
        self._shipper.wake()
        self._on_change(False)

    def _move(self, state: ContainerState, *, is_urgent: bool = False) -> None:
        """``is_urgent``: somebody waits for it. All other states only show how far the container is."""
        self.state = state
        self._on_change(is_urgent)
