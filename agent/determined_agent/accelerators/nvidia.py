"""Reads NVIDIA GPUs and MIG instances from ``nvidia-smi``."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from xml.etree import ElementTree

from determined_agent.accelerators.device import Answer, Ask, Device, number

QUERY = ("nvidia-smi", "-q", "-x")
LIST = ("nvidia-smi", "-L")
_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[^)]+)\)")
_INSTANCE = re.compile(r"\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)]+)\)")
_BROKEN = ("GPU is lost", "requires reset", "Unknown Error", "ERR!")

Instances = Mapping[tuple[str, int], tuple[str, str]]
"""UUID of a GPU and number of its instance → profile and UUID of the instance."""


def read_devices(ask: Ask) -> tuple[list[Device], str]:
    """Returns the devices by their place on the bus, and a sentence about what prevents that. Blocking."""
    answer = ask(QUERY)
    if not answer.text:
        return [], answer.problem
    listed = ask(LIST) if "<mig_device>" in answer.text else Answer()
    devices = parse(answer.text, parse_instances(listed.text))
    # One lost GPU makes the program fail after it has described the others.
    return devices, answer.problem or ("" if devices else _first_line(answer.text))


def parse(text: str, instances: Instances) -> list[Device]:
    """Returns the devices of ``nvidia-smi -q -x``. A partitioned GPU is represented by its instances."""
    try:
        log = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError):
        return []
    found = [device for gpu in log.iter("gpu") for device in _of_gpu(gpu, instances)]
    return sorted(found, key=lambda device: device.bus)


def parse_instances(text: str) -> dict[tuple[str, int], tuple[str, str]]:
    """Returns the instances of ``nvidia-smi -L``."""
    found: dict[tuple[str, int], tuple[str, str]] = {}
    gpu = ""
    for line in text.splitlines():
        if whole := _GPU.match(line):
            gpu = whole[1]
        elif part := _INSTANCE.match(line):
            found[gpu, int(part[2][:9])] = (part[1], part[3])
    return found


def _of_gpu(gpu: ElementTree.Element, instances: Instances) -> Iterator[Device]:
    uuid = _text(gpu, "uuid")
    if not uuid:
        return
    whole = Device(
        uuid=uuid,
        type="cuda",
        brand=_text(gpu, "product_name"),
        bus=_bus(gpu.get("id", "")),
        problem=_problem(gpu),
        memory_used_mib=number(_text(gpu, "fb_memory_usage/used")),
        utilization=number(_text(gpu, "utilization/gpu_util")),
        uncorrected_errors=_uncorrected(gpu),
    )
    processes = list(_processes(gpu))
    if _text(gpu, "mig_mode/current_mig") != "Enabled":
        yield replace(whole, processes=tuple(pid for pid, _ in processes))
        return
    for part in gpu.iterfind("mig_devices/mig_device"):
        place = number(_text(part, "index"))
        profile, part_uuid = instances.get((uuid, -1 if place is None else place), ("", ""))
        if not part_uuid:
            continue
        mine = _instance(part)
        yield replace(
            whole,
            uuid=part_uuid,
            brand=f"{whole.brand} MIG {profile}",
            memory_used_mib=number(_text(part, "fb_memory_usage/used")),
            utilization=None,
            processes=tuple(pid for pid, of in processes if of == mine),
        )


def _processes(gpu: ElementTree.Element) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yields the programs that compute; a desktop that draws on a GPU does not keep others from it."""
    for each in gpu.iterfind("processes/process_info"):
        pid = number(_text(each, "pid"))
        if pid is not None and "C" in _text(each, "type"):
            yield pid, _instance(each)


def _instance(element: ElementTree.Element) -> tuple[str, str]:
    return _text(element, "gpu_instance_id"), _text(element, "compute_instance_id")


def _uncorrected(gpu: ElementTree.Element) -> int:
    """Adds up the counters since the driver was loaded; their names differ by generation."""
    counted = gpu.find("ecc_errors/volatile")
    if counted is None:
        return 0
    figures = [each.text for each in counted.iter() if "uncorrectable" in each.tag]
    figures.append(_text(counted, "double_bit/total"))
    return sum(number(figure) or 0 for figure in figures)


def _problem(gpu: ElementTree.Element) -> str:
    if _text(gpu, "remapped_rows/remapped_row_failure") == "Yes":
        return "rows of its memory could not be replaced"
    for path in ("product_name", "fb_memory_usage/used", "utilization/gpu_util"):
        value = _text(gpu, path)
        if any(word in value for word in _BROKEN):
            return value.strip("[]")
    return ""


def _bus(text: str) -> str:
    """``00000000:3B:00.0`` as the kernel writes it: ``0000:3b:00.0``."""
    domain, colon, rest = text.lower().partition(":")
    return f"{domain[-4:]}{colon}{rest}"


def _text(element: ElementTree.Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _first_line(text: str) -> str:
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    return "nvidia-smi lists no device" if line.startswith("<") else f"nvidia-smi says: {line[:300]}"
