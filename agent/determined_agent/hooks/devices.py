"""Makes only the accelerators of a task's slots visible to it, by uuid."""

from collections.abc import Sequence

from determined.link.messages import SlotFacts
from determined_agent.drivers.driver import NotStarted
from determined_agent.hooks.hook import Draft


class DevicesHook:
    def __init__(self, slots: Sequence[SlotFacts]) -> None:
        self._slots = {slot.id: slot for slot in slots}

    async def do(self, draft: Draft) -> None:
        unknown = [number for number in draft.spec.slots if number not in self._slots]
        if unknown:
            raise NotStarted(f"this agent has no slot {unknown[0]}")
        mine = [self._slots[number] for number in draft.spec.slots]
        environment = draft.environment
        cuda = ",".join(slot.uuid or str(slot.id) for slot in mine if slot.type == "cuda")
        rocm = ",".join(str(slot.id) for slot in mine if slot.type == "rocm")
        has = {slot.type for slot in self._slots.values()}
        # A task without slots must not use the accelerator of another task.
        if "cuda" in has:
            environment["CUDA_VISIBLE_DEVICES"] = environment["NVIDIA_VISIBLE_DEVICES"] = cuda
        if "rocm" in has:
            environment["ROCR_VISIBLE_DEVICES"] = environment["HIP_VISIBLE_DEVICES"] = rocm
        environment["DET_GPU_UUIDS"] = ",".join(slot.uuid for slot in mine if slot.uuid)

    async def undo(self, draft: Draft) -> None:
        """Does nothing: a task receives names of devices, not the devices themselves."""
