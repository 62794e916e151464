"""``det run``: composes the experiment of one command, which has no configuration file."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from determined.errors import ConfigError
from determined_workflows.composed_experiment import completed, refuse_composed

CONFIG_NAME = "run.yaml"
METRIC = "validation_loss"
"""Metric of the search, which has one trial: a command may report none."""
MAX_NAME_CHARACTERS = 100
_PYTHON = re.compile(r"python[0-9.]*\Z")
_WITH_VALUE = ("-W", "-X")
"""Options of Python whose value is the next word."""


def prepare(
    command: Sequence[str],
    *,
    slots: int | None = None,
    pool: str | None = None,
    outputs: Sequence[str] = (),
    changes: Sequence[str] = (),
) -> tuple[str, str]:
    """Returns the configuration of the experiment as YAML, and its warnings as lines, or "".

    ``command``: the program and its arguments, which no shell reads. ``slots``: slots of the trial; None leaves the
    default of a configuration. ``changes``: settings (``key.path=value``). Raises ConfigError if the configuration is
    wrong, or if a change sets what the command line sets.
    """
    config: dict[str, Any] = {
        "name": name_of(command),
        "entrypoint": list(command),
        "searcher": {"name": "single", "metric": METRIC},
        "max_restarts": 0,
    }
    refuse_composed(changes, origin="the command after --", keys=("entrypoint",))
    if slots is not None:
        refuse_composed(changes, origin="--slots; give one of them", keys=("resources.slots_per_trial",))
        config.setdefault("resources", {})["slots_per_trial"] = slots
    if pool is not None:
        refuse_composed(changes, origin="--pool; give one of them", keys=("resources.resource_pool",))
        config.setdefault("resources", {})["resource_pool"] = pool
    if outputs:
        refuse_composed(changes, origin="--outputs; give one of them", keys=("outputs",))
        config["outputs"] = list(outputs)
    if not changes and (text := _yaml(config)) is not None:
        return text, ""
    return completed(config, changes, name=CONFIG_NAME, title=f"`{config['name']}`", is_checked=False)


def _yaml(config: Mapping[str, Any]) -> str | None:
    """Returns the configuration as YAML, each value as JSON; None if YAML does not take each character as it is.

    Most commands are submitted without the time that it takes to load PyYAML.
    """
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in config.items()]
    return "\n".join([*lines, ""]) if all(map(str.isprintable, lines)) else None


def name_of(command: Sequence[str]) -> str:
    """Returns the name of the experiment: the program of the command, or what Python runs.

    >>> name_of(["python3", "-u", "src/train.py", "--lr", "0.1"]), name_of(["python", "-m", "app.train"])
    ('train.py', 'app.train')
    """
    if not command or not command[0].strip():
        raise ConfigError("the command has no program; write it after --: det run -- python3 train.py")
    program = PurePosixPath(command[0]).name or command[0]
    if _PYTHON.match(program):
        program = _of_python(command[1:]) or program
    return program[:MAX_NAME_CHARACTERS]


def _of_python(words: Sequence[str]) -> str | None:
    """Returns the script or the module that Python runs; None for code in an argument."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, None)
        elif word == "-m":
            return next(rest, None)
        elif not word.startswith("-"):
            return PurePosixPath(word).name or None
        elif word in ("-c", "-"):
            return None
    return None
