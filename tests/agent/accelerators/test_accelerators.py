"""Accelerators that the vendors' programs describe: the slots of a machine and their numbers."""

import json
import os
from collections.abc import Sequence
from functools import partial

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fake_nvml import FakeNvml, Gpu, Instance
from tests.support.fake_smi import FakeSmi

from determined.errors import DeterminedError
from determined_agent.accelerators import amd, device, nvidia
from determined_agent.accelerators.device import ProgramOutput, ask, number
from determined_agent.accelerators.kernel_log import KernelLog, parse_xid
from determined_agent.devices import find_slots

CARD = {"Unique ID": "0x9246348f24d9a1a5", "Card Series": "AMD Instinct MI250X", "PCI Bus": "0000:83:00.0"}


@pytest.fixture
def nvml(tmp_path, monkeypatch):
    created = FakeNvml(tmp_path / "fake")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "fake"), os.environ.get("PYTHONPATH", "")]))
    return created


def facts_of(slots):
    return [(slot.id, slot.type, slot.uuid) for slot in slots]


def test_gpus_become_slots_in_the_order_of_their_bus_addresses(nvml):
    nvml.show(Gpu("GPU-b", "00000000:5E:00.0"), Gpu("GPU-a"))
    slots = find_slots(None)
    assert facts_of(slots) == [(0, "cuda", "GPU-a"), (1, "cuda", "GPU-b")]
    assert slots[0].brand == "NVIDIA H100 80GB HBM3"


def test_each_instance_of_a_partitioned_gpu_is_a_slot(nvml):
    parts = [Instance("MIG-1", "3g.40gb"), Instance("MIG-2", "1g.10gb")]
    nvml.show(Gpu("GPU-a", instances=parts), Gpu("GPU-b", "00000000:5E:00.0"))
    slots = find_slots(None)
    assert facts_of(slots) == [(0, "cuda", "MIG-1"), (1, "cuda", "MIG-2"), (2, "cuda", "GPU-b")]
    assert slots[1].brand == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"


def test_a_slot_keeps_its_id_when_another_device_is_removed(nvml, tmp_path):
    gpus = [Gpu(f"GPU-{name}", f"00000000:{place}0:00.0") for place, name in enumerate("abc", 1)]
    nvml.show(*gpus)
    find_slots(None, data=tmp_path)
    nvml.show(gpus[0], gpus[2], Gpu("GPU-d", "00000000:05:00.0"))
    assert facts_of(find_slots(None, data=tmp_path)) == [
        (0, "cuda", "GPU-a"),
        (2, "cuda", "GPU-c"),
        (3, "cuda", "GPU-d"),
    ]


@pytest.mark.parametrize("broken", ["{", "[]", '{"GPU-a": "x"}', '{"GPU-a": null}'])
def test_a_broken_slots_file_is_replaced(nvml, tmp_path, broken):
    (tmp_path / "slots.json").write_text(broken)
    nvml.show(Gpu("GPU-a"))
    assert facts_of(find_slots(None, data=tmp_path)) == [(0, "cuda", "GPU-a")]
    assert json.loads((tmp_path / "slots.json").read_text()) == {"GPU-a": 0}


def test_amd_cards_become_slots(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    FakeSmi(tmp_path / "bin", "rocm-smi").show_cards(card1={**CARD, "Unique ID": "0xb"}, card0=CARD, card10={})
    slots = find_slots(None)
    assert facts_of(slots) == [(0, "rocm", CARD["Unique ID"]), (1, "rocm", "0xb"), (2, "rocm", "card10")]
    assert slots[0].brand == "AMD Instinct MI250X"


def test_the_amd_parser_skips_warnings_around_the_json():
    assert [card.uuid for card in amd.parse('WARNING: low power\n{"card0": {"Unique ID": "0xb"}}\nend')] == ["0xb"]


def test_slot_type_chooses_the_devices_that_become_slots(nvml):
    nvml.show(Gpu("GPU-a"))
    assert facts_of(find_slots(None, slot_type="gpu")) == [(0, "cuda", "GPU-a")]
    assert facts_of(find_slots(None, slot_type="cpu")) == [(0, "cpu", "")]
    assert find_slots(None, slot_type="none") == []
    assert facts_of(find_slots(2)) == [(0, "cpu", ""), (1, "cpu", "")]
    with pytest.raises(DeterminedError, match="slot_type is rocm, and no such device is found: no driver"):
        find_slots(None, slot_type="rocm")


@pytest.mark.parametrize(
    ("code", "problem"),
    [(pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "NVML: Driver Not Loaded"), (0, "NVML: lists no device")],
)
def test_a_driver_that_fails_is_logged_and_the_cpu_is_used(nvml, caplog, code, problem):
    nvml.fail(code)
    assert facts_of(find_slots(None)) == [(0, "cpu", "")]
    assert [record.message for record in caplog.records] == [f"no accelerator is used: {problem}"]
    with pytest.raises(DeterminedError, match="slot_type is cuda"):
        find_slots(None, slot_type="cuda")


def test_a_machine_without_the_library_of_the_driver_has_no_devices_and_no_problem(nvml):
    nvml.fail(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    assert nvidia.read_devices(ask) == ([], "")


def test_a_driver_that_hangs_is_reported_after_the_time_limit(nvml):
    nvml.hang(60)
    assert nvidia.read_devices(partial(ask, seconds=0.3)) == ([], "NVML did not answer within 0.3 s")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"devices": [{"uuid": 1}], "problems": []}', '{"devices": []}'])
def test_an_answer_that_is_no_reading_has_no_devices(text):
    devices, problem = nvidia.read_devices(lambda argv, name: ProgramOutput(text))
    assert (devices, problem) == ([], "NVML: its answer cannot be read" if text else "")


def test_a_vendor_program_that_hangs_is_reported_after_the_time_limit(tmp_path, monkeypatch):
    program = tmp_path / "rocm-smi"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert ask(["rocm-smi"], "rocm-smi", 0.2).problem == "rocm-smi did not answer within 0.2 s"
    program.write_text("no program")
    assert ask(["rocm-smi"], "rocm-smi").problem.startswith("rocm-smi cannot be run")
    assert ask(["no-such-program"], "") == ProgramOutput()


def test_a_program_that_its_kill_does_not_end_is_waited_for_only_a_moment_and_not_started_again(tmp_path, monkeypatch):
    program = tmp_path / "hangs"
    program.write_text(f"#!/bin/sh\necho x >> {tmp_path}/starts\nexec sleep 60\n")
    program.chmod(0o755)
    killed = []
    with monkeypatch.context() as patch:
        patch.setattr(device, "END_SECONDS", 0.01)
        # As in a driver that hangs, the signal has no effect.
        patch.setattr(device.subprocess.Popen, "kill", lambda process: killed.append(process))
        assert ask([str(program)], "smi", 0.2).problem == "smi did not answer within 0.2 s"
    (hung,) = killed
    assert ask([str(program)], "smi").problem.startswith(f"smi hangs: its process {hung.pid} does not end")
    assert (tmp_path / "starts").read_text().count("x") == 1
    hung.kill()
    hung.communicate()
    program.write_text("#!/bin/sh\necho fine\n")
    assert ask([str(program)], "smi") == ProgramOutput("fine\n")


def read_one(nvml, gpu):
    nvml.show(gpu)
    [device] = nvidia.read_devices(ask)[0]
    return device


def test_memory_utilization_errors_and_processes_of_a_gpu_are_read(nvml):
    gpu = read_one(
        nvml, Gpu("GPU-a", used_mib=512, utilization=97, uncorrected=3, processes=[7], shared_processes=[7, 9])
    )
    assert (gpu.memory_used_mib, gpu.utilization, gpu.uncorrected_errors, gpu.processes) == (512, 97, 3, (7, 9))
    assert (gpu.bus, gpu.problem) == ("0000:3b:00.0", "")


UNSUPPORTED, UNKNOWN_FUNCTION = pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND


def test_figures_that_a_gpu_does_not_support_are_none(nvml):
    names = ("memory", "utilization", "ecc", "rows", "mig", "processes v3")
    gpu = read_one(nvml, Gpu("GPU-a", processes=[7], errors=dict.fromkeys(names, UNSUPPORTED)))
    figures = (gpu.memory_used_mib, gpu.utilization, gpu.uncorrected_errors, gpu.processes, gpu.problem)
    assert figures == (None, None, 0, (), "")


def test_an_old_driver_is_asked_by_its_older_functions(nvml):
    names = ("memory v2", "rows", "processes v3")
    gpu = read_one(nvml, Gpu("GPU-a", used_mib=4, processes=[7], errors=dict.fromkeys(names, UNKNOWN_FUNCTION)))
    assert (gpu.memory_used_mib, gpu.processes, gpu.problem) == (604, (7,), "")


def test_instances_have_their_own_memory_and_processes(nvml):
    parts = [
        Instance("MIG-1", used_mib=33, processes=[8]),
        Instance("MIG-2", used_mib=34, processes=[7], errors={"memory": pynvml.NVML_ERROR_UNKNOWN}),
    ]
    nvml.show(Gpu("GPU-a", used_mib=900, utilization=50, processes=[7, 8], instances=parts))
    instances, problem = nvidia.read_devices(ask)
    assert problem == ""
    assert [(each.uuid, each.memory_used_mib, each.processes, each.problem) for each in instances] == [
        ("MIG-1", 33, (8,), ""),
        ("MIG-2", None, (7,), "Unknown Error"),
    ]
    assert [each.utilization for each in instances] == [None, None]


@pytest.mark.parametrize(
    ("gpu", "problem"),
    [
        (Gpu("GPU-a", errors={"memory": pynvml.NVML_ERROR_GPU_IS_LOST}), "GPU is lost"),
        (Gpu("GPU-a", errors={"utilization": pynvml.NVML_ERROR_RESET_REQUIRED}), "GPU requires restart"),
        (Gpu("GPU-a", errors={"name": pynvml.NVML_ERROR_UNKNOWN}), "Unknown Error"),
        (Gpu("GPU-a", failed_rows=1), "rows of its memory could not be replaced"),
    ],
)
def test_a_broken_gpu_is_listed_with_its_problem(nvml, gpu, problem):
    assert read_one(nvml, gpu).problem == problem


def test_a_gpu_that_the_driver_lost_does_not_hide_the_others(nvml):
    nvml.show(Gpu("GPU-a", errors={"handle": pynvml.NVML_ERROR_GPU_IS_LOST}), Gpu("GPU-b"))
    devices, problem = nvidia.read_devices(ask)
    assert ([device.uuid for device in devices], problem) == (["GPU-b"], "NVML: GPU 0: GPU is lost")


def test_device_files_returns_the_files_of_one_card(tmp_path):
    (tmp_path / "0000:83:00.0" / "drm" / "renderD129").mkdir(parents=True)
    (tmp_path / "0000:83:00.0" / "drm" / "card1").mkdir()
    assert amd.device_files("0000:83:00.0", tmp_path) == ("/dev/kfd", "/dev/dri/renderD129")
    assert amd.device_files("0000:03:00.0", tmp_path) == amd.device_files("", tmp_path) == ()


def test_only_new_hardware_faults_are_read_from_the_kernel_log(tmp_path):
    log = tmp_path / "kmsg"
    log.write_text("4,1,1,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, old\n")
    kernel = KernelLog(log)
    assert kernel.faults() == {}
    with log.open("a") as file:
        file.write("4,2,2,-;NVRM: Xid (PCI:0000:3B:00): 31, pid=1, name=python, MMU Fault\n")
        file.write("4,3,3,-;NVRM: Xid (PCI:0000:5E:00): 79, pid=1, GPU has fallen off the bus.\n")
    fault = "the driver reported hardware fault Xid 79: pid=1, GPU has fallen off the bus."
    assert kernel.faults() == {"0000:5e:00": fault}
    assert kernel.faults() == {}
    kernel.close()
    assert KernelLog(tmp_path / "none").faults() == {}


@given(st.text())
def test_the_parsers_accept_any_text(text):
    nvidia.parse(text)
    amd.parse(text)
    parse_xid(text)
    number(text)


@given(
    st.dictionaries(
        st.sampled_from(["card0", "card1", "card", "system", "card-1", "cardx"]),
        st.recursive(
            st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
            max_leaves=5,
        ),
    )
)
def test_the_amd_parser_accepts_any_json(output):
    cards = amd.parse(json.dumps(output))
    assert len(cards) <= 2
    assert all(card.type == "rocm" for card in cards)


@given(
    st.lists(st.sampled_from(["GPU-a", "GPU-b", "GPU-c", "GPU-d"]), unique=True, max_size=4).flatmap(
        lambda first: st.tuples(st.just(first), st.permutations(["GPU-a", "GPU-b", "GPU-c", "GPU-d"]))
    )
)
def test_slot_ids_are_unique_and_never_change(tmp_path_factory, lists):
    data = tmp_path_factory.mktemp("agent")

    def find(uuids: Sequence[str]):
        gpus = [{"uuid": uuid, "type": "cuda", "bus": f"0000:{place:02}:00.0"} for place, uuid in enumerate(uuids)]
        text = json.dumps({"devices": gpus, "problems": []})
        return {slot.uuid: slot.id for slot in find_slots(None, data=data, ask=lambda argv, name: ProgramOutput(text))}

    first, second = (find(uuids) for uuids in lists)
    before = {uuid: slot for uuid, slot in first.items() if uuid}
    assert len(set(second.values())) == 4
    assert all(second[uuid] == slot for uuid, slot in before.items())
