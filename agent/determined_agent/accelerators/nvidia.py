"""Reads NVIDIA GPUs and MIG instances from the driver's library (NVML), in a child process: a driver may hang."""

import sys
from dataclasses import dataclass

from pydantic import TypeAdapter, ValidationError

from determined_agent.accelerators.device import Ask, Device

QUERY = (sys.executable, "-P", "-m", "determined_agent.accelerators.nvml")
NAME = "NVML"


@dataclass(frozen=True)
class Reading:
    """Everything that the child process prints."""

    devices: list[Device]
    problems: list[str]


_READING = TypeAdapter(Reading)


def read_devices(ask: Ask) -> tuple[list[Device], str]:
    """Returns the devices by their place on the bus, and a sentence about what prevents that. Blocking."""
    answer = ask(QUERY, NAME)
    if not answer.text:
        return [], answer.problem
    reading = parse(answer.text)
    problem = f"{NAME}: {'; '.join(reading.problems)}" if reading.problems else ""
    return sorted(reading.devices, key=lambda device: device.bus), answer.problem or problem[:300]


def parse(text: str) -> Reading:
    """Returns the reading that the child process printed."""
    try:
        return _READING.validate_json(text)
    except ValidationError:
        return Reading([], ["its answer cannot be read"])
