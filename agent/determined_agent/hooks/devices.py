"""Makes only the accelerators of a task's slots visible to it, by UUID, once nobody else uses them."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from determined.link.messages import SlotFacts
from determined_agent.drivers.driver import NotStarted, SystemFailure
from determined_agent.hooks.hook import ContainerPlan

_UNIQUE_ID = re.compile(r"0x[0-9a-f]{16}")
WAIT_SECONDS = 60.0
LOOK_SECONDS = 2.0

Occupation = Callable[[Sequence[int]], Awaitable[str]]
"""Returns why a task may not begin on slots, or an empty text."""


class DevicesHook:
    def __init__(
        self,
        slots: Sequence[SlotFacts],
        occupation: Occupation | None = None,
        device_files: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Creates the hook. ``device_files``: files by which a container reaches a device, by its UUID."""
        self._slots = {slot.id: slot for slot in slots}
        self._occupation = occupation
        self._device_files = device_files or {}

    async def do(self, plan: ContainerPlan) -> None:
        unknown = [number for number in plan.spec.slots if number not in self._slots]
        if unknown:
            raise NotStarted(f"this agent has no slot {unknown[0]}")
        mine = [self._slots[number] for number in plan.spec.slots]
        environment = plan.environment
        cuda = [slot.uuid or str(slot.id) for slot in mine if slot.type == "cuda"]
        rocm = [slot for slot in mine if slot.type == "rocm"]
        has = {slot.type for slot in self._slots.values()}
        # A task without slots must not use the accelerator of another task.
        if "cuda" in has:
            environment["CUDA_VISIBLE_DEVICES"] = ",".join(cuda)
            environment["NVIDIA_VISIBLE_DEVICES"] = ",".join(cuda) or "void"
        if "rocm" in has:
            # The second counts among what the first leaves.
            environment["ROCR_VISIBLE_DEVICES"] = ",".join(map(self._rocm_name, rocm))
            environment["HIP_VISIBLE_DEVICES"] = ",".join(map(str, range(len(rocm))))
        environment["DET_GPU_UUIDS"] = ",".join(slot.uuid for slot in mine if slot.uuid)
        if plan.container is not None:
            files = [file for slot in rocm for file in self._device_files.get(slot.uuid, ())]
            if len(rocm) > sum(slot.uuid in self._device_files for slot in rocm):
                raise SystemFailure("the device files of a slot are not known, so that a container cannot reach it")
            devices = tuple(f"{file}:{file}:rwm" for file in dict.fromkeys(files))
            # An engine whose default is NVIDIA's runtime obeys the image otherwise, which may ask for all GPUs.
            chosen = {name: environment[name] for name in ("NVIDIA_VISIBLE_DEVICES",) if name in environment}
            plan.container = replace(
                plan.container, gpus=tuple(cuda), environment=chosen, devices=(*plan.container.devices, *devices)
            )
        await self._wait(plan)

    async def undo(self, plan: ContainerPlan) -> None:
        """Does nothing: a task receives names of devices, not the devices themselves."""

    def _rocm_name(self, slot: SlotFacts) -> str:
        """Returns the device as the runtime names it, whatever else of its kind a task sees; else its place."""
        return f"GPU-{slot.uuid[2:]}" if _UNIQUE_ID.fullmatch(slot.uuid) else str(slot.id)

    async def _wait(self, plan: ContainerPlan) -> None:
        """Waits until the memory of the last task is free. Raises SystemFailure if others keep a device."""
        if self._occupation is None or not plan.spec.slots:
            return
        said, left = "", WAIT_SECONDS
        while reason := await self._occupation(plan.spec.slots):
            if left <= 0:
                raise SystemFailure(reason)
            if not said:
                plan.log_line(f"waiting until it is free: {reason}")
                said = reason
            left -= LOOK_SECONDS
            await asyncio.sleep(LOOK_SECONDS)
