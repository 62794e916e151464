"""Watches the accelerators of this machine and reports slots that others use, that are broken, or that are idle."""

import asyncio
import contextlib
import logging
import os
import pwd
import time
from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from determined.link.messages import SlotFacts, SlotStatus
from determined_agent.accelerators import amd, nvidia
from determined_agent.accelerators.device import Ask, Device, ask
from determined_agent.accelerators.kernel_log import KernelLog
from determined_agent.accelerators.slot_watch import SlotWatch
from determined_launch import process_table
from determined_launch.environment import CONTAINER_ID

logger = logging.getLogger(__name__)

MAX_ANCESTORS = 64
_READERS = {"cuda": nvidia.read_devices, "rocm": amd.read_devices}


class Tasks(Protocol):
    """Of the daemon what the monitor asks and tells it."""

    @property
    def container_ids(self) -> Set[str]: ...

    @property
    def held_slots(self) -> Mapping[int, str]: ...

    def set_slot_statuses(self, statuses: list[SlotStatus]) -> None: ...


class SlotMonitor:
    """Asks the vendors' programs in turn. Does nothing on a machine without accelerators."""

    def __init__(
        self,
        slots: Sequence[SlotFacts],
        *,
        seconds: float,
        busy_mib: int,
        idle_seconds: float,
        ask: Ask = ask,
        kernel_log: KernelLog | None = None,
    ) -> None:
        """Creates the monitor. ``seconds``: time between two readings; 0 for none. See SlotWatch for the others."""
        kinds = {slot.type for slot in slots} - {"cpu"}
        self._readers = [_READERS[kind] for kind in sorted(kinds)]
        self._uuids = {slot.id: slot.uuid for slot in slots if slot.type != "cpu"}
        self._seconds = seconds
        self._watch = SlotWatch(slots, busy_mib=busy_mib, idle_seconds=idle_seconds)
        self._ask = ask
        self._kernel_log = kernel_log or (KernelLog() if "cuda" in kinds else None)
        self._problem = ""
        self._failures = 0
        self._statuses: list[SlotStatus] = []

    @property
    def device_files(self) -> dict[str, tuple[str, ...]]:
        """Returns the files by which a container reaches each AMD device, by its UUID."""
        devices, _problem = amd.read_devices(self._ask) if amd.read_devices in self._readers else ([], "")
        return {device.uuid: files for device in devices if (files := amd.device_files(device.bus))}

    @property
    def is_on(self) -> bool:
        return bool(self._readers) and self._seconds > 0

    async def run(self, tasks: Tasks) -> None:
        """Reports to ``tasks`` until cancelled; ends at once if there is nothing to watch."""
        while self.is_on:
            try:
                await self.tick(tasks)
            except Exception:
                logger.exception("cannot look at the slots; trying again")
            await asyncio.sleep(self._seconds)

    async def tick(self, tasks: Tasks) -> None:
        """Reads all devices once and reports what has changed."""
        containers = tasks.container_ids
        devices, problem, ours, owners = await asyncio.to_thread(self._look, containers)
        if problem and problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem
        self._failures = self._failures + 1 if problem and not devices else 0
        if self._failures == 1:
            return  # a busy machine may answer late once
        faults = self._kernel_log.faults() if self._kernel_log is not None else {}
        statuses = self._watch.statuses(
            devices,
            held=tasks.held_slots,
            ours=ours,
            owner=owners.get,
            faults=faults,
            problem=problem,
            now=time.monotonic(),
        )
        if statuses != self._statuses:
            for status in statuses:
                if status not in self._statuses:
                    logger.warning("slot %d is %s: %s", status.id, status.status, status.reason)
            self._statuses = statuses
            tasks.set_slot_statuses(statuses)

    async def occupation(self, slots: Sequence[int]) -> str:
        """Returns why a task may not begin on these slots now, or an empty text."""
        if not self.is_on or not any(number in self._uuids for number in slots):
            return ""
        devices, _problem, ours, owners = await asyncio.to_thread(self._look, None)
        wanted = {self._uuids[number]: number for number in slots if number in self._uuids}
        for device in devices:
            if device.uuid not in wanted:
                continue
            reason = self._watch.occupation(device, ours=ours, owner=owners.get)
            if reason:
                return f"slot {wanted[device.uuid]}: {reason}"
        return ""

    def _look(self, containers: Set[str] | None) -> tuple[list[Device], str, set[int], dict[int, str | None]]:
        """Returns the devices, what prevents that, and of the processes on them the tasks' own and all users.

        ``containers``: those whose tasks count; None for those of any agent. Blocking.
        """
        found = [reader(self._ask) for reader in self._readers]
        devices = [device for devices, _ in found for device in devices]
        pids = {pid for device in devices for pid in device.processes}
        ours = {pid for pid in pids if _is_task(pid, containers)}
        return devices, "; ".join(p for _, p in found if p), ours, {pid: _user_of(pid) for pid in pids}


def _is_task(pid: int, containers: Set[str] | None) -> bool:
    """Returns True for a process of a task, or a child of one, which may have another environment."""
    for _ in range(MAX_ANCESTORS):
        name = process_table.environment(pid).get(CONTAINER_ID)
        if name:
            return containers is None or name in containers
        process = process_table.find(pid)
        if process is None or process.parent <= 1:
            return False
        pid = process.parent
    return False


def _user_of(pid: int) -> str | None:
    """Returns the user of a process; None if it has ended. A process of another namespace is of an unknown user."""
    try:
        uid = os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return None
    except OSError:
        return "an unknown user"
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return f"uid {uid}"
