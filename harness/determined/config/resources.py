"""The ``resources`` section: slots, pool, priority, devices."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from determined.config.model import Count, Model, kind_of, wrong

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtp]?)(i?)b?\Z", re.IGNORECASE | re.ASCII)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


def parse_size(text: str) -> int:
    """Returns the bytes of a size with a suffix; as in docker, ``g`` is 2**30 with or without the ``i``.

    >>> parse_size("4g"), parse_size("1.5 KiB"), parse_size("128")
    (4294967296, 1536, 128)
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a size; give a number of bytes, or a size such as 4GiB')
    return int(float(match[1]) * 1024 ** _POWER[match[2].lower()])


def size_of(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise wrong("E201", f"expected a size such as 4GiB, got {kind_of(value)}")
    try:
        size = parse_size(value) if isinstance(value, str) else value
    except ValueError as error:
        raise wrong("E206", str(error)) from None
    except OverflowError:
        size = 2**63
    if not 0 <= size < 2**63:
        raise wrong("E205", "a size must be between 0 and 8 EiB")
    return size


def device_of(value: object) -> object:
    if not isinstance(value, str):
        return value
    parts = value.split(":")
    if len(parts) not in (2, 3) or not all(parts):
        raise wrong("E206", f'"{value}" is not host_path:container_path[:mode]')
    return {"host_path": parts[0], "container_path": parts[1], "mode": parts[2] if len(parts) == 3 else "mrw"}


def _mode(value: str) -> str:
    # An engine takes other letters without a word, and the device cannot be opened.
    if not value or set(value) - set("rwm"):
        raise wrong("E206", f'"{value}" is not made of r, w and m')
    return value


class DeviceFile(Model):
    """A device of the host that the task sees. ``mode``: r(ead), w(rite), m(ake a device file)."""

    host_path: str
    container_path: str
    mode: Annotated[str, AfterValidator(_mode)] = "mrw"


class Resources(Model):
    """The number of slots, and the pool that provides them."""

    slots_per_trial: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    max_slots: Count | None = None
    weight: Annotated[float, Field(gt=0)] = 1
    priority: Annotated[int, Field(ge=1, le=99)] | None = None
    resource_pool: str = ""
    shm_size: Annotated[int, BeforeValidator(size_of)] | None = None
    is_single_node: bool | None = None
    devices: list[Annotated[DeviceFile, BeforeValidator(device_of)]] = []
    native_parallel: bool = False
    agent_label: str = ""
