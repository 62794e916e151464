"""Reads AMD GPUs from ``rocm-smi``."""

import json
from pathlib import Path
from typing import Any

from determined_agent.accelerators.device import Ask, Device, number

QUERY = (
    *("rocm-smi", "--showid", "--showuniqueid", "--showproductname", "--showbus"),
    *("--showmeminfo", "vram", "--showuse", "--json"),
)
KFD = "/dev/kfd"
_PCI = Path("/sys/bus/pci/devices")
_MIB = 1 << 20


def read_devices(ask: Ask) -> tuple[list[Device], str]:
    """Returns the devices in the program's order, and a sentence about what prevents that. Blocking."""
    answer = ask(QUERY, QUERY[0])
    if not answer.text:
        return [], answer.problem
    devices = parse(answer.text)
    line = next((each.strip() for each in answer.text.splitlines() if each.strip()), "")
    return devices, answer.problem or ("" if devices else f"rocm-smi says: {line[:300]}")


def parse(text: str) -> list[Device]:
    """Returns the devices of ``rocm-smi --json``, which may print warnings first. It names no programs that compute."""
    try:
        document, _ = json.JSONDecoder().raw_decode(text[max(text.find("{"), 0) :])
    except (ValueError, RecursionError):
        return []
    if not isinstance(document, dict):
        return []
    cards = [
        (int(name[4:]), facts)
        for name, facts in document.items()
        if name.startswith("card") and name[4:].isdecimal() and len(name) < 10 and isinstance(facts, dict)
    ]
    return [_device(place, facts) for place, facts in sorted(cards, key=lambda card: card[0])]


def _device(place: int, facts: dict[str, Any]) -> Device:
    by_name = {name.lower(): str(value) for name, value in facts.items()}
    used = number(by_name.get("vram total used memory (b)"))
    names = ("card series", "device name", "card model", "gpu id")
    return Device(
        uuid=by_name.get("unique id") or f"card{place}",
        type="rocm",
        brand=next((by_name[name] for name in names if by_name.get(name)), ""),
        bus=by_name.get("pci bus", "").lower(),
        memory_used_mib=None if used is None else used // _MIB,
        utilization=number(by_name.get("gpu use (%)")),
    )


def device_files(bus: str, devices: Path = _PCI) -> tuple[str, ...]:
    """Returns the files by which a program reaches the card at a PCI address, and no other card; empty if unknown."""
    nodes = sorted((devices / bus / "drm").glob("renderD*")) if bus else []
    return (KFD, *(f"/dev/dri/{node.name}" for node in nodes)) if nodes else ()
