"""Sweeps of Weights & Biases: the size of a grid, and the sweep's id in the command."""

import math
import re
from pathlib import Path
from typing import Any

from determined.errors import ConfigError

FILE_NAME = "sweeper.yml"
PLACEHOLDER = "SWEEP_ID"
MAX_BYTES = 1 << 20
_AGENT = re.compile(r"\bwandb\s+agent\b")
_LAST_PART = re.compile(r"(?P<before>\bwandb\s+agent\b.*?(?:\s|/))(?P<id>[^\s/]+)(?P<after>\s*)\Z", re.DOTALL)
_ID = re.compile(r"[A-Za-z0-9_-]+\Z")


def replace_id(command: str, sweep: str) -> str:
    """Returns the command with another sweep. If ``sweep`` is an id, it replaces the last part of the path in the
    command; if it is a path, it replaces the whole path.

    >>> replace_id("wandb agent --count 1 me/project/SWEEP_ID", "ab12")
    'wandb agent --count 1 me/project/ab12'
    """
    match = _LAST_PART.search(command)
    if not match:
        raise _no_agent()
    if "/" in sweep:
        start = command.rfind(" ", 0, match.end("before")) + 1
        return f"{command[:start]}{sweep}"
    return f"{match['before'] if not match.start() else command[: match.end('before')]}{sweep}"


def current_id(command: str) -> str | None:
    """Returns the sweep that the command names, or None for the placeholder. Raises ConfigError without an agent."""
    found = _LAST_PART.search(command)
    if not found or not _AGENT.search(command):
        raise _no_agent()
    return None if found["id"] in (PLACEHOLDER, "agent") else found["id"]


def is_agent(command: str) -> bool:
    """Returns True for the command of an agent of Weights & Biases."""
    return _AGENT.search(command) is not None


def check_id(text: str) -> str:
    """Returns a sweep's id, or its path ENTITY/PROJECT/ID. Raises ConfigError."""
    if not text or not all(_ID.match(part) for part in text.split("/")):
        raise ConfigError(f'the sweep "{text}" is not valid: its id, as `wandb sweep` prints it, or ENTITY/PROJECT/ID')
    return text


def runs_of(path: Path) -> int | None:
    """Returns the number of runs of a file's grid, or of its ``run_cap``; None without a file or a number.

    Raises ConfigError if the file cannot be read.
    """
    content = read(path)
    return None if content is None else count_runs(content)


def read(path: Path) -> dict[str, Any] | None:
    """Returns the content of a sweep's file, None without a file. Raises ConfigError if it cannot be read."""
    import yaml

    from determined import yaml_places

    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path} has more than {MAX_BYTES >> 20} MiB; it is no sweep")
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    except yaml.MarkedYAMLError as error:
        place = yaml_places.error_position(error) or ()
        raise ConfigError(f"{':'.join(map(str, (path, *place)))}: {error.problem}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"{path}:1:1: a sweep is a mapping with `method` and `parameters`")
    return content


def count_runs(sweep: dict[str, Any]) -> int | None:
    """Returns the number of runs of a sweep, None if it has no end.

    >>> count_runs({"method": "grid", "parameters": {"lr": {"values": [1, 2]}, "seed": {"values": [1, 2, 3]}}})
    6
    """
    cap = sweep.get("run_cap")
    size = _size(sweep.get("parameters")) if sweep.get("method") == "grid" else None
    known = [number for number in (size, cap) if isinstance(number, int) and number > 0]
    return min(known) if known else None


def _size(parameters: object) -> int | None:
    if not isinstance(parameters, dict):
        return None
    sizes = []
    for parameter in parameters.values():
        if not isinstance(parameter, dict):
            return None
        if isinstance(parameter.get("values"), list):
            sizes.append(len(parameter["values"]))
        elif "parameters" in parameter:
            sizes.append(_size(parameter["parameters"]) or 0)
        elif "value" in parameter:
            sizes.append(1)
        else:
            return None
    return math.prod(sizes) or None


def _no_agent() -> ConfigError:
    return ConfigError(
        "the command of a sweep is a line such as `wandb agent --count 1 USER/PROJECT/SWEEP_ID`; nothing was submitted"
    )
