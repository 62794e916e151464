"""Accelerators that the vendors' programs describe: the slots of a machine and their numbers."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.fake_smi import FakeSmi, Gpu, xml

from determined.errors import DeterminedError
from determined_agent.accelerators import amd, nvidia
from determined_agent.accelerators.device import Answer, ask, number
from determined_agent.accelerators.kernel_log import KernelLog, parse_xid
from determined_agent.devices import find_slots

CARD = {"Unique ID": "0x9246348f24d9a1a5", "Card Series": "AMD Instinct MI250X", "PCI Bus": "0000:83:00.0"}


@pytest.fixture
def smi(tmp_path, monkeypatch):
    created = FakeSmi(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return created


def facts_of(slots):
    return [(slot.id, slot.type, slot.uuid) for slot in slots]


def test_gpus_become_slots_in_the_order_of_their_bus_addresses(smi):
    smi.show(Gpu("GPU-b", "00000000:5E:00.0"), Gpu("GPU-a"))
    slots = find_slots(None)
    assert facts_of(slots) == [(0, "cuda", "GPU-a"), (1, "cuda", "GPU-b")]
    assert slots[0].brand == "NVIDIA H100 80GB HBM3"


def test_each_instance_of_a_partitioned_gpu_is_a_slot(smi):
    parts = [("3g.40gb", "MIG-1"), ("1g.10gb", "MIG-2")]
    smi.show(Gpu("GPU-a", instances=parts), Gpu("GPU-b", "00000000:5E:00.0"))
    slots = find_slots(None)
    assert facts_of(slots) == [(0, "cuda", "MIG-1"), (1, "cuda", "MIG-2"), (2, "cuda", "GPU-b")]
    assert slots[1].brand == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"


def test_a_slot_keeps_its_id_when_another_device_is_removed(smi, tmp_path):
    gpus = [Gpu(f"GPU-{name}", f"00000000:{place}0:00.0") for place, name in enumerate("abc", 1)]
    smi.show(*gpus)
    find_slots(None, data=tmp_path)
    smi.show(gpus[0], gpus[2], Gpu("GPU-d", "00000000:05:00.0"))
    assert facts_of(find_slots(None, data=tmp_path)) == [
        (0, "cuda", "GPU-a"),
        (2, "cuda", "GPU-c"),
        (3, "cuda", "GPU-d"),
    ]


@pytest.mark.parametrize("broken", ["{", "[]", '{"GPU-a": "x"}', '{"GPU-a": null}'])
def test_a_broken_slots_file_is_replaced(smi, tmp_path, broken):
    (tmp_path / "slots.json").write_text(broken)
    smi.show(Gpu("GPU-a"))
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


def test_slot_type_chooses_the_devices_that_become_slots(smi):
    smi.show(Gpu("GPU-a"))
    assert facts_of(find_slots(None, slot_type="gpu")) == [(0, "cuda", "GPU-a")]
    assert facts_of(find_slots(None, slot_type="cpu")) == [(0, "cpu", "")]
    assert find_slots(None, slot_type="none") == []
    assert facts_of(find_slots(2)) == [(0, "cpu", ""), (1, "cpu", "")]
    with pytest.raises(DeterminedError, match="slot_type is rocm, and no such device is found: no driver"):
        find_slots(None, slot_type="rocm")


FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nMake sure that it runs."


@pytest.mark.parametrize(
    ("text", "code", "problem"),
    [
        (FAILED, 9, "nvidia-smi failed with exit code 9: NVIDIA-SMI has failed because it couldn't communicate"),
        ("\n<nvidia_smi_log></nvidia_smi_log>", 0, "nvidia-smi lists no device"),
        ("No devices were found\n", 0, "nvidia-smi says: No devices were found"),
    ],
)
def test_a_driver_that_fails_is_logged_and_the_cpu_is_used(smi, caplog, text, code, problem):
    smi.say(text, code)
    assert facts_of(find_slots(None)) == [(0, "cpu", "")]
    assert [record.message.startswith(f"no accelerator is used: {problem}") for record in caplog.records] == [True]
    with pytest.raises(DeterminedError, match="slot_type is cuda"):
        find_slots(None, slot_type="cuda")


def test_a_vendor_program_that_hangs_is_reported_after_the_time_limit(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert ask(["nvidia-smi"], 0.2).problem == "nvidia-smi did not answer within 0.2 s"
    program.write_text("no program")
    assert ask(["nvidia-smi"]).problem.startswith("nvidia-smi cannot be run")
    assert ask(["no-such-program"]) == Answer()


def test_memory_utilization_errors_and_processes_of_a_gpu_are_parsed():
    [gpu] = nvidia.parse(
        xml(
            Gpu(
                "GPU-a",
                used="512 MiB",
                utilization="97 %",
                uncorrected="3",
                processes=[(7, "C", "N/A"), (8, "G", "N/A")],
            )
        ),
        {},
    )
    assert (gpu.memory_used_mib, gpu.utilization, gpu.uncorrected_errors, gpu.processes) == (512, 97, 3, (7,))
    assert (gpu.bus, gpu.problem) == ("0000:3b:00.0", "")


def test_figures_that_an_old_driver_does_not_support_are_none():
    old = Gpu("GPU-a", used="[N/A]", utilization="[Not Supported]", uncorrected="N/A")
    [gpu] = nvidia.parse(xml(old), {})
    assert (gpu.memory_used_mib, gpu.utilization, gpu.uncorrected_errors, gpu.problem) == (None, None, 0, "")


def test_instances_have_their_own_memory_and_processes():
    parts = [("3g.40gb", "MIG-1"), ("1g.10gb", "MIG-2")]
    gpu = Gpu(
        "GPU-a", used="900 MiB", instances=parts, instance_used="33 MiB", processes=[(7, "C", "2"), (8, "C", "1")]
    )
    instances = nvidia.parse(xml(gpu), {("GPU-a", 0): parts[0], ("GPU-a", 1): parts[1]})
    assert [(instance.uuid, instance.memory_used_mib, instance.processes) for instance in instances] == [
        ("MIG-1", 33, (8,)),
        ("MIG-2", 33, (7,)),
    ]


@pytest.mark.parametrize(
    ("gpu", "problem"),
    [
        (Gpu("GPU-a", used="[GPU is lost]"), "GPU is lost"),
        (Gpu("GPU-a", utilization="[GPU requires reset]"), "GPU requires reset"),
        (Gpu("GPU-a", name="ERR!"), "ERR!"),
        (
            Gpu("GPU-a", extra="<remapped_rows><remapped_row_failure>Yes</remapped_row_failure></remapped_rows>"),
            "rows of its memory could not be replaced",
        ),
    ],
)
def test_a_broken_gpu_is_parsed_with_its_problem(gpu, problem):
    assert [each.problem for each in nvidia.parse(xml(gpu), {})] == [problem]


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
    assert nvidia.parse(text, {}) == []
    nvidia.parse_instances(text)
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
        text = xml(*(Gpu(uuid, f"00000000:{place:02}:00.0") for place, uuid in enumerate(uuids)))
        return {slot.uuid: slot.id for slot in find_slots(None, data=data, ask=lambda argv: Answer(text))}

    first, second = (find(uuids) for uuids in lists)
    before = {uuid: slot for uuid, slot in first.items() if uuid}
    assert len(set(second.values())) == 4
    assert all(second[uuid] == slot for uuid, slot in before.items())
