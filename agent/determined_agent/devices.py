"""Finds the slots of this machine: accelerators by the vendors' programs, otherwise CPU slots."""

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from determined.errors import DeterminedError
from determined.link.messages import SlotFacts
from determined_agent.accelerators import amd, nvidia
from determined_agent.accelerators.device import Ask, Device, ask
from determined_agent.accelerators.job_devices import devices_of_job
from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular

logger = logging.getLogger(__name__)

SlotType = Literal["auto", "cuda", "gpu", "rocm", "cpu", "none"]
FILE = "slots.json"
MAX_BYTES = 1 << 20
_READERS = {"cuda": nvidia.read_devices, "rocm": amd.read_devices}


def find_slots(
    cpu_slots: int | None,
    *,
    slot_type: SlotType = "auto",
    data: Path | None = None,
    job: Mapping[str, str] | None = None,
    ask: Ask = ask,
) -> list[SlotFacts]:
    """Returns the slots of this machine. Blocking.

    Args:
        cpu_slots: number of CPU slots to offer instead of anything that is found.
        slot_type: what to look for; ``auto``: accelerators, else one CPU slot.
        data: folder that keeps the number of each device, so that a device keeps it when another one is gone.
        job: variables with which the job that the agent runs in names its devices; None outside a job.
        ask: runs a vendor's program.

    Raises:
        DeterminedError: ``slot_type`` names a kind of accelerator that is not found.
    """
    if cpu_slots is not None:
        return [SlotFacts(id=number, type="cpu", brand="CPU") for number in range(cpu_slots)]
    if slot_type == "none":
        return []
    wanted = {"auto": ("cuda", "rocm"), "cpu": ()}.get(slot_type, ("cuda" if slot_type == "gpu" else slot_type,))
    problems: list[str] = []
    for kind in wanted:
        devices, problem = _READERS[kind](ask)
        devices = devices if job is None else devices_of_job(devices, job)
        if devices:
            return _numbered(devices, data)
        problems += [problem] if problem else []
    if slot_type not in ("auto", "cpu"):
        raise DeterminedError(
            f"slot_type is {slot_type}, and no such device is found: {'; '.join(problems) or 'no driver'}"
        )
    for problem in problems:
        logger.warning("no accelerator is used: %s", problem)
    return [SlotFacts(id=0, type="cpu", brand="CPU")]


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def threads(slots: int, environment: Mapping[str, str]) -> str:
    """Returns a task's OMP_NUM_THREADS: the agent's own, if ``environment`` sets it, else a slot's share of the cores.

    The share is that of one slot, because a rank has one slot: ranks with all cores would slow each other down.

    >>> threads(2, {"OMP_NUM_THREADS": "3"})
    '3'
    """
    return environment.get("OMP_NUM_THREADS") or str(max(cores() // slots, 1))


def _numbered(devices: Sequence[Device], data: Path | None) -> list[SlotFacts]:
    known = _read_numbers(data)
    for device in devices:
        if device.uuid not in known:
            taken = set(known.values())
            known[device.uuid] = next(number for number in range(len(known) + 1) if number not in taken)
    if data is not None:
        write_atomic(data / FILE, json.dumps(known))
    slots = [SlotFacts(id=known[d.uuid], type=d.type, brand=d.brand, uuid=d.uuid) for d in devices]
    return sorted(slots, key=lambda slot: slot.id)


def _read_numbers(data: Path | None) -> dict[str, int]:
    """Returns the number of each device by its UUID; a file that cannot be read counts as none."""
    try:
        found = json.loads(read_regular(data / FILE, MAX_BYTES)) if data is not None else {}
        return {str(uuid): int(number) for uuid, number in found.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
