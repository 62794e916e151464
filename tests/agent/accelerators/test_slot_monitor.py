"""Statuses of accelerators (occupied, unhealthy, idle), and the devices that a task sees."""

import asyncio
import os
import pwd
import signal
from collections.abc import Mapping, Set

import pynvml
import pytest
from tests.support.fake_nvml import FakeNvml, Gpu

from determined.link.messages import ContainerSpec, SlotFacts, SlotStatus
from determined.link.run_folder import RunFolder
from determined_agent.accelerators.device import Device
from determined_agent.accelerators.kernel_log import KernelLog
from determined_agent.accelerators.slot_monitor import SlotMonitor
from determined_agent.accelerators.slot_watch import SlotWatch
from determined_agent.drivers.driver import ContainerOptions, NotStarted, SystemFailure
from determined_agent.hooks import devices as devices_hook
from determined_agent.hooks.devices import DevicesHook
from determined_agent.hooks.hook import ContainerPlan

ME = pwd.getpwuid(os.getuid()).pw_name
A, B = SlotFacts(id=0, type="cuda", uuid="GPU-a"), SlotFacts(id=1, type="cuda", uuid="GPU-b")


class Tasks:
    """The part of the daemon that the monitor uses."""

    def __init__(self) -> None:
        self.container_ids: Set[str] = set()
        self.held_slots: Mapping[int, str] = {}
        self.reports: list[list[SlotStatus]] = []

    def set_slot_statuses(self, statuses: list[SlotStatus]) -> None:
        self.reports.append(statuses)


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    created = FakeNvml(tmp_path / "fake")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "fake"), os.environ.get("PYTHONPATH", "")]))
    return created


@pytest.fixture
def monitor(tmp_path):
    log = tmp_path / "kmsg"
    log.touch()
    return SlotMonitor([A, B], seconds=1, busy_mib=1024, idle_seconds=60, kernel_log=KernelLog(log))


def last_statuses(tasks):
    """Returns the status and the reason of each slot in the last report."""
    return {status.id: (status.status, status.reason) for status in tasks.reports[-1]}


async def test_a_slot_is_occupied_while_a_program_outside_the_cluster_computes_on_it(nvml, monitor):
    tasks = Tasks()
    nvml.show(Gpu("GPU-a", processes=[os.getpid()]), Gpu("GPU-b"))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {0: ("occupied", f"process {os.getpid()} of {ME} uses it, outside the cluster")}
    await monitor.tick(tasks)
    assert len(tasks.reports) == 1
    nvml.show(Gpu("GPU-a"), Gpu("GPU-b"))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {}


async def test_a_process_of_a_running_task_does_not_occupy_its_slot(nvml, monitor):
    task = await asyncio.create_subprocess_exec("sleep", "60", env={"DET_CONTAINER_ID": "c1"})
    try:
        tasks = Tasks()
        tasks.container_ids = {"c1"}
        nvml.show(Gpu("GPU-a", processes=[task.pid]), Gpu("GPU-b"))
        await monitor.tick(tasks)
        assert tasks.reports == []
        tasks.container_ids = {"c2"}
        await monitor.tick(tasks)
        assert last_statuses(tasks)[0][0] == "occupied"
        assert await monitor.occupation([0]) == "", "the last task's process alone, without memory, hinders nobody"
    finally:
        task.kill()
        await task.wait()


async def test_a_child_of_a_task_with_an_empty_environment_does_not_occupy_the_slot(nvml, monitor):
    script = "env -i sleep 60 & echo $!; wait"
    task = await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", script),
        env={"DET_CONTAINER_ID": "c1", "PATH": "/bin:/usr/bin"},
        stdout=asyncio.subprocess.PIPE,
    )
    assert task.stdout is not None
    child = int(await task.stdout.readline())
    try:
        tasks = Tasks()
        tasks.container_ids = {"c1"}
        nvml.show(Gpu("GPU-a", processes=[child]), Gpu("GPU-b"))
        await monitor.tick(tasks)
        assert tasks.reports == []
    finally:
        os.kill(child, signal.SIGKILL)
        await task.wait()


async def test_a_slot_is_occupied_while_its_memory_is_in_use(nvml, monitor):
    tasks = Tasks()
    nvml.show(Gpu("GPU-a", used_mib=1024), Gpu("GPU-b", used_mib=30000))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {1: ("occupied", "30,000 MiB of its memory are still in use")}
    assert await monitor.occupation([0]) == ""
    assert await monitor.occupation([0, 1]) == "slot 1: 30,000 MiB of its memory are still in use"
    tasks.held_slots = {1: "c1"}
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {}


async def test_a_lost_gpu_is_unhealthy_until_it_is_back(nvml, monitor):
    tasks = Tasks()
    nvml.show(Gpu("GPU-a"))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {1: ("unhealthy", "its driver no longer lists it")}
    nvml.fail(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
    await monitor.tick(tasks)
    assert len(tasks.reports) == 1, "it may have been busy"
    await monitor.tick(tasks)
    assert {text for _, text in last_statuses(tasks).values()} == {
        "its driver no longer lists it (NVML: Driver Not Loaded)"
    }
    nvml.show(Gpu("GPU-a"), Gpu("GPU-b", errors={"memory": pynvml.NVML_ERROR_GPU_IS_LOST}))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {1: ("unhealthy", "GPU is lost")}
    nvml.show(Gpu("GPU-a"), Gpu("GPU-b"))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {}


async def test_new_memory_errors_and_hardware_faults_keep_a_slot_unhealthy(nvml, monitor, tmp_path):
    tasks = Tasks()
    nvml.show(Gpu("GPU-a", uncorrected=5), Gpu("GPU-b", "00000000:5E:00.0"))
    await monitor.tick(tasks)
    assert tasks.reports == [], "errors from before the start of the agent do not count"
    nvml.show(Gpu("GPU-a", uncorrected=7), Gpu("GPU-b", "00000000:5E:00.0"))
    with (tmp_path / "kmsg").open("a") as log:
        log.write("4,3,3,-;NVRM: Xid (PCI:0000:5E:00): 79, pid=1, GPU has fallen off the bus.\n")
    await monitor.tick(tasks)
    nvml.show(Gpu("GPU-a", uncorrected=0), Gpu("GPU-b", "00000000:5E:00.0"))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {
        0: ("unhealthy", "2 uncorrected errors of its memory (ECC) since the agent started"),
        1: ("unhealthy", "the driver reported hardware fault Xid 79: pid=1, GPU has fallen off the bus."),
    }


async def test_one_lost_gpu_does_not_change_the_status_of_the_others(nvml, monitor):
    tasks = Tasks()
    nvml.show(Gpu("GPU-a"), Gpu("GPU-b", errors={"handle": pynvml.NVML_ERROR_GPU_IS_LOST}))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {1: ("unhealthy", "its driver no longer lists it (NVML: GPU 1: GPU is lost)")}


async def test_a_fault_of_a_gpu_that_disappears_is_remembered(nvml, monitor, tmp_path):
    tasks = Tasks()
    nvml.show(Gpu("GPU-a"), Gpu("GPU-b", "00000000:5E:00.0"))
    await monitor.tick(tasks)
    with (tmp_path / "kmsg").open("a") as log:
        log.write("4,3,3,-;NVRM: Xid (PCI:0000:5E:00): 79, pid=1, GPU has fallen off the bus.\n")
    nvml.show(Gpu("GPU-a"))
    await monitor.tick(tasks)
    fault = ("unhealthy", "the driver reported hardware fault Xid 79: pid=1, GPU has fallen off the bus.")
    assert last_statuses(tasks) == {1: fault}
    nvml.show(Gpu("GPU-a"), Gpu("GPU-b", "00000000:5E:00.0"))
    await monitor.tick(tasks)
    assert last_statuses(tasks) == {1: fault}


async def test_memory_errors_count_from_zero_after_a_reload_of_the_driver(nvml, monitor):
    tasks = Tasks()
    for count in ("5", "0", "3"):
        nvml.show(Gpu("GPU-a", uncorrected=int(count)), Gpu("GPU-b"))
        await monitor.tick(tasks)
    assert last_statuses(tasks) == {
        0: ("unhealthy", "3 uncorrected errors of its memory (ECC) since the agent started")
    }


def statuses(watch, now, utilization, held={0: "c1"}):
    device = Device("GPU-a", "cuda", utilization=utilization)
    slot_statuses = watch.statuses([device], held=held, ours=(), owner=str, faults={}, problem="", now=now)
    return [(status.status, status.reason) for status in slot_statuses]


def test_a_held_slot_is_idle_after_some_time_without_computation():
    watch = SlotWatch([A], busy_mib=0, idle_seconds=1800)
    assert statuses(watch, 0, 0) == statuses(watch, 1799, 0) == []
    assert statuses(watch, 1800, 0) == [("idle", "its task has not computed on it for 30 minutes or more")]
    assert statuses(watch, 1801, 50) == statuses(watch, 1900, 0) == statuses(watch, 3000, None) == []
    assert statuses(watch, 3001, 0) == statuses(watch, 3002, 0, held={}) == statuses(watch, 9000, 0) == []
    never = SlotWatch([A], busy_mib=0, idle_seconds=0)
    assert statuses(never, 0, 0) == statuses(never, 1e9, 0) == []


def test_the_idle_time_of_a_slot_begins_anew_with_another_container():
    watch = SlotWatch([A], busy_mib=0, idle_seconds=60)
    assert statuses(watch, 0, 0) == []
    assert statuses(watch, 60, 0, held={0: "c2"}) == statuses(watch, 119, 0, held={0: "c2"}) == []
    assert [status for status, _ in statuses(watch, 120, 0, held={0: "c2"})] == ["idle"]


def test_an_occupation_names_at_most_three_processes():
    watch = SlotWatch([A], busy_mib=0, idle_seconds=0)
    reason = watch.occupation(
        Device("GPU-a", "cuda", processes=(1, 2, 3, 4, 5, 6)), ours={1}, owner=lambda pid: None if pid == 6 else "ann"
    )
    assert reason == "process 2 of ann, process 3 of ann, process 4 of ann and 1 more use it, outside the cluster"


async def test_a_machine_without_accelerators_is_not_watched():
    monitor = SlotMonitor([SlotFacts(id=0)], seconds=1, busy_mib=0, idle_seconds=0)
    await monitor.run(Tasks())
    assert await monitor.occupation([0]) == ""


def draft_of(tmp_path, slots, *, container=False):
    spec = ContainerSpec(task_id="t", slots=slots, environment={}, entrypoint="true")
    folder = RunFolder(tmp_path / "run")
    folder.make()
    return ContainerPlan("c", spec, folder, container=ContainerOptions("image") if container else None)


async def test_a_task_sees_its_own_gpus_by_uuid_and_no_others(tmp_path):
    hook = DevicesHook([A, B, SlotFacts(id=2, type="cuda", uuid="MIG-c")])
    plan = draft_of(tmp_path, [1, 2])
    await hook.do(plan)
    assert plan.environment["CUDA_VISIBLE_DEVICES"] == plan.environment["NVIDIA_VISIBLE_DEVICES"] == "GPU-b,MIG-c"
    assert plan.environment["DET_GPU_UUIDS"] == "GPU-b,MIG-c"
    none = draft_of(tmp_path, [])
    await hook.do(none)
    assert (none.environment["CUDA_VISIBLE_DEVICES"], none.environment["NVIDIA_VISIBLE_DEVICES"]) == ("", "void")
    with pytest.raises(NotStarted, match="no slot 3"):
        await hook.do(draft_of(tmp_path, [3]))


async def test_a_container_gets_its_own_gpus_and_no_others(tmp_path):
    hook = DevicesHook([A, B])
    plan = draft_of(tmp_path, [1], container=True)
    await hook.do(plan)
    assert plan.container is not None
    assert plan.container.gpus == ("GPU-b",)
    assert plan.container.environment == {"NVIDIA_VISIBLE_DEVICES": "GPU-b"}
    none = draft_of(tmp_path, [], container=True)
    await hook.do(none)
    assert none.container is not None
    assert none.container.gpus == ()
    assert none.container.environment == {"NVIDIA_VISIBLE_DEVICES": "void"}


async def test_a_container_gets_the_files_of_its_own_cards(tmp_path):
    uuids = ["0x9246348f24d9a1a5", "0xb"]
    slots = [SlotFacts(id=number, type="rocm", uuid=uuid) for number, uuid in enumerate(uuids)]
    files = {uuids[0]: ("/dev/kfd", "/dev/dri/renderD128"), uuids[1]: ("/dev/kfd", "/dev/dri/renderD129")}
    plan = draft_of(tmp_path, [0, 1], container=True)
    await DevicesHook(slots, None, files).do(plan)
    assert plan.container is not None
    assert plan.container.devices == tuple(
        f"{file}:{file}:rwm" for file in ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129")
    )
    assert plan.environment["ROCR_VISIBLE_DEVICES"] == "GPU-9246348f24d9a1a5,1"
    assert plan.environment["HIP_VISIBLE_DEVICES"] == "0,1"
    with pytest.raises(SystemFailure, match="device files"):
        await DevicesHook(slots).do(draft_of(tmp_path, [1], container=True))


async def test_a_task_waits_until_the_memory_of_the_previous_task_is_free(tmp_path, monkeypatch):
    monkeypatch.setattr(devices_hook, "LOOK_SECONDS", 0.01)
    reasons = iter(["slot 0: 9,000 MiB of its memory are still in use", "slot 0: 8,000 MiB …", ""])

    async def occupation(slots):
        return next(reasons)

    plan = draft_of(tmp_path, [0])
    await DevicesHook([A], occupation).do(plan)
    assert next(reasons, None) is None
    output = b"".join(path.read_bytes() for path in plan.folder.output.iterdir())
    assert output.count(b"waiting until it is free: slot 0: 9,000 MiB of its memory are still in use") == 1


async def test_a_task_whose_gpu_stays_occupied_fails_as_a_system_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(devices_hook, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(devices_hook, "WAIT_SECONDS", 0.02)

    async def occupation(slots):
        return "slot 0: process 7 of ann uses it, outside the cluster"

    with pytest.raises(SystemFailure, match="process 7 of ann"):
        await DevicesHook([A], occupation).do(draft_of(tmp_path, [0]))
