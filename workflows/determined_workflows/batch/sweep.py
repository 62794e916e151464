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
_WITH_VALUE = ("--count", "-p", "--project", "-e", "--entity")
"""Options of the agent that are followed by their value."""
_ID = re.compile(r"[A-Za-z0-9_-]+\Z")


def replace_id(command: str, sweep: str) -> str:
    """Returns the command with another sweep. If ``sweep`` is an id, it replaces the last part of the path in the
    command; if it is a path, it replaces the whole path.

    >>> replace_id("wandb agent --count 1 me/project/SWEEP_ID", "ab12")
    'wandb agent --count 1 me/project/ab12'
    """
    start, end = _path_of(command)
    kept = "" if "/" in sweep else command[start:end].rpartition("/")[0]
    return f"{command[:start]}{kept}{'/' if kept else ''}{sweep}{command[end:]}"


def current_id(command: str) -> str | None:
    """Returns the sweep that the command names, or None for the placeholder. Raises ConfigError without an agent."""
    start, end = _path_of(command)
    found = command[start:end].rpartition("/")[2]
    return None if found == PLACEHOLDER else found


def _path_of(command: str) -> tuple[int, int]:
    """Returns where the sweep's path begins and ends. Raises ConfigError without an agent that has one."""
    agent = _AGENT.search(command)
    begin = agent.end() if agent else len(command)
    is_value = False
    for word in re.finditer(r"[^\s;&|<>]+", command[begin:]):
        if not is_value and not word[0].startswith("-"):
            return begin + word.start(), begin + word.end()
        is_value = not is_value and word[0] in _WITH_VALUE
    raise _no_agent()


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
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not YAML: {str(error).splitlines()[0]}") from None
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
