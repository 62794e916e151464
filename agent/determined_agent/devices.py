"""Finds the slots of this machine: accelerators by the vendors' tools, otherwise CPU slots."""

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence

from determined.link.messages import SlotFacts

_PATIENCE = 10.0

Ask = Callable[[Sequence[str]], str]


def find_slots(cpu_slots: int | None, ask: Ask | None = None) -> list[SlotFacts]:
    """Returns ``cpu_slots`` CPU slots if the number is given; else the accelerators; else one CPU slot."""
    if cpu_slots is not None:
        return [SlotFacts(id=number, type="cpu", brand="CPU") for number in range(cpu_slots)]
    asked = ask or _ask
    return _cuda(asked) or _rocm(asked) or [SlotFacts(id=0, type="cpu", brand="CPU")]


def cores() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _cuda(ask: Ask) -> list[SlotFacts]:
    text = ask(["nvidia-smi", "--query-gpu=index,name,uuid", "--format=csv,noheader"])
    rows = [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(text)) if len(row) == 3]
    return [
        SlotFacts(id=int(index), type="cuda", brand=name, uuid=uuid) for index, name, uuid in rows if index.isdigit()
    ]


def _rocm(ask: Ask) -> list[SlotFacts]:
    try:
        found = json.loads(ask(["rocm-smi", "--showid", "--showuniqueid", "--json"]) or "{}")
    except ValueError:
        return []
    slots = []
    for name, facts in found.items():
        if name.startswith("card") and name[4:].isdigit() and isinstance(facts, dict):
            uuid = str(facts.get("Unique ID", ""))
            brand = str(facts.get("Device Name") or facts.get("GPU ID") or "")
            slots.append(SlotFacts(id=int(name[4:]), type="rocm", brand=brand, uuid=uuid))
    return sorted(slots, key=lambda slot: slot.id)


def _ask(argv: Sequence[str]) -> str:
    if shutil.which(argv[0]) is None:
        return ""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
