"""Decides from readings of the accelerators which slots may be used. Pure: it takes the time as an argument."""

from collections.abc import Callable, Collection, Mapping, Sequence

from determined.link.messages import SlotFacts, SlotStatus
from determined_agent.accelerators.device import Device

MAX_NAMED = 3
"""Processes that a reason names."""

Owner = Callable[[int], str | None]
"""Returns the user of a process, or None if it has ended."""


class SlotWatch:
    """Remembers of each slot what one reading does not show: growing error counters and how long it has been idle."""

    def __init__(self, slots: Sequence[SlotFacts], *, busy_mib: int, idle_seconds: float) -> None:
        """Creates the watch.

        Args:
            slots: the agent's slots; those without a device are never mentioned.
            busy_mib: used memory, in MiB, beyond which a slot without a task is in use.
            idle_seconds: time without computation after which a held slot is called idle; 0 for never.
        """
        self._slots = [slot for slot in slots if slot.type != "cpu"]
        self._busy_mib = busy_mib
        self._idle_seconds = idle_seconds
        self._first_errors: dict[str, int] = {}
        self._broken: dict[str, str] = {}
        self._buses: dict[str, str] = {}
        self._idle_since: dict[int, tuple[str, float]] = {}
        """By slot: the container that has it, and the time since which it is idle."""

    def statuses(
        self,
        devices: Sequence[Device],
        *,
        held: Mapping[int, str],
        ours: Collection[int],
        owner: Owner,
        faults: Mapping[str, str],
        problem: str,
        now: float,
    ) -> list[SlotStatus]:
        """Returns the slots that are not free.

        Args:
            devices: the present reading.
            held: slots that tasks of this agent have, and their containers.
            ours: processes of this agent's tasks.
            owner: returns a process's user.
            faults: new hardware faults by address on the bus.
            problem: why the reading is incomplete; may be empty.
            now: seconds of any clock that only goes forward.
        """
        by_uuid = {device.uuid: device for device in devices}
        statuses: list[SlotStatus] = []
        for slot in self._slots:
            device = by_uuid.get(slot.uuid)
            broken = self._health(slot, device, faults, problem)
            if broken:
                statuses.append(SlotStatus(id=slot.id, status="unhealthy", reason=broken))
            elif device is not None and slot.id in held:
                statuses += self._idle(slot, held[slot.id], device, now)
            elif device is not None:
                self._idle_since.pop(slot.id, None)
                reason = self.occupation(device, ours=ours, owner=owner)
                statuses += [SlotStatus(id=slot.id, status="occupied", reason=reason)] if reason else []
        return statuses

    def occupation(self, device: Device, *, ours: Collection[int], owner: Owner) -> str:
        """Returns why no task may begin on a device, or an empty text."""
        users = [(pid, owner(pid)) for pid in device.processes if pid not in ours]
        others = [f"process {pid} of {user}" for pid, user in users if user is not None]
        if others:
            more = f" and {len(others) - MAX_NAMED} more" if len(others) > MAX_NAMED else ""
            verb = "uses" if len(others) == 1 else "use"
            return f"{', '.join(others[:MAX_NAMED])}{more} {verb} it, outside the cluster"
        if device.memory_used_mib is not None and device.memory_used_mib > self._busy_mib:
            return f"{device.memory_used_mib:,} MiB of its memory are still in use"
        return ""

    def _health(self, slot: SlotFacts, device: Device | None, faults: Mapping[str, str], problem: str) -> str:
        """A device that is listed again is healthy; errors and hardware faults count until the agent restarts."""
        if device is not None:
            self._buses[slot.uuid] = device.bus
            self._count_errors(device)
        for bus, fault in faults.items():
            if self._buses.get(slot.uuid, "").startswith(bus):
                self._broken[slot.uuid] = fault
        broken = self._broken.get(slot.uuid, "")
        if device is None:
            return broken or f"its driver no longer lists it{f' ({problem})' if problem else ''}"
        return device.problem or broken

    def _count_errors(self, device: Device) -> None:
        """Counts from the lowest number seen: a driver that was loaded again begins with 0."""
        first = min(self._first_errors.get(device.uuid, device.uncorrected_errors), device.uncorrected_errors)
        self._first_errors[device.uuid] = first
        grown = device.uncorrected_errors - first
        if grown > 0:
            self._broken[device.uuid] = f"{grown} uncorrected errors of its memory (ECC) since the agent started"

    def _idle(self, slot: SlotFacts, container_id: str, device: Device, now: float) -> list[SlotStatus]:
        if device.utilization != 0 or not self._idle_seconds:
            self._idle_since.pop(slot.id, None)
            return []
        holder, since = self._idle_since.get(slot.id, (container_id, now))
        if holder != container_id:  # the slot changed hands between two looks
            since = now
        self._idle_since[slot.id] = (container_id, since)
        if now - since < self._idle_seconds:
            return []
        # The limit, not the time that passed: a reason that changes with every look would be reported each time.
        minutes, rest = divmod(self._idle_seconds, 60)
        unit = f"{minutes:g} minutes" if minutes > 1 and not rest else f"{self._idle_seconds:g} seconds"
        return [SlotStatus(id=slot.id, status="idle", reason=f"its task has not computed on it for {unit} or more")]
