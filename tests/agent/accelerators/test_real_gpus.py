"""Real NVIDIA GPUs: NVML describes those that nvidia-smi lists, and a process sees only the GPU of its slot."""

import asyncio
import os
import subprocess
from functools import partial

import pytest

from determined.link.messages import ContainerSpec
from determined.link.run_folder import RunFolder
from determined_agent.accelerators import nvidia
from determined_agent.accelerators.device import ask
from determined_agent.devices import find_slots
from determined_agent.hooks.devices import DevicesHook
from determined_agent.hooks.hook import ContainerPlan

LISTED = ask(["nvidia-smi", "-L"], "nvidia-smi").text
pytestmark = pytest.mark.skipif("GPU " not in LISTED, reason="shown only on a machine with an NVIDIA GPU")


def test_every_device_that_nvidia_smi_lists_is_a_slot_with_figures():
    devices, problem = nvidia.read_devices(ask)
    assert problem == ""
    assert len(devices) == LISTED.count("UUID: MIG-") or len(devices) == LISTED.count("UUID: GPU-")
    assert [slot.uuid for slot in find_slots(None, slot_type="cuda")] == [device.uuid for device in devices]
    for device in devices:
        assert device.uuid in LISTED
        assert device.brand
        assert device.memory_used_mib is not None
        assert device.problem == ""


async def test_a_process_sees_only_the_gpu_of_its_slot(tmp_path):
    slot = find_slots(None, slot_type="cuda")[-1]
    folder = RunFolder(tmp_path / "run")
    folder.make()
    plan = ContainerPlan("c", ContainerSpec(task_id="t", slots=[slot.id], environment={}, entrypoint="true"), folder)
    await DevicesHook([slot]).do(plan)
    query = "import torch; print(torch.cuda.device_count(), torch.cuda.get_device_properties(0).uuid)"
    environment = os.environ | plan.environment
    run = partial(
        subprocess.run, ["python3", "-c", query], env=environment, capture_output=True, text=True, check=False
    )
    done = await asyncio.to_thread(run)
    if "No module named" in done.stderr:
        pytest.skip("torch is not installed here")
    count, uuid = done.stdout.split()
    assert (count, uuid) == ("1", slot.uuid.removeprefix("GPU-"))
