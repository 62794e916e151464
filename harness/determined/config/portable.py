"""Leaves out of a configuration what Determined does not know, as long as it holds its default.

Determined 0.38 refuses a configuration with an unknown field, whatever its value. An experiment that uses none of our
own features therefore answers with a configuration that can be submitted there.
"""

from collections.abc import Mapping
from typing import Any

from determined.config.experiment import Pbs, Retention, Slurm
from determined.config.launch import Health, LaunchSection

OURS: dict[str, Any] = {
    "metric_goals": {},
    "health": Health().to_json(),
    "launch": LaunchSection().to_json(),
    "legacy_launcher": None,
    "outputs": [],
    "pause": None,
    "retention_policy": Retention().to_json(),
}
"""Sections that Determined lacks, or leaves out if they are empty, with their defaults."""
OURS_IN_SECTIONS: dict[str, dict[str, Any]] = {
    "environment": {"harness": "auto", "venv": None, "pip": []},
    "resources": {"agent_label": ""},
    "checkpoint_storage": {"checkpoint_path": None, "tensorboard_path": None, "container_path": None},
    "searcher": {"max_length": None, "stop_once": None},
    "slurm": Slurm().to_json(),
    "pbs": Pbs().to_json(),
}
"""Such fields of other sections."""


def portable(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an effective configuration without fields of ours that hold their default.

    >>> portable({"name": "a", "health": Health().to_json(), "environment": {"harness": "auto", "ports": {}}})
    {'name': 'a', 'environment': {'ports': {}}}
    >>> portable({"health": {"nan": "stop", "silent_after": 1800.0, "hang_timeout": None}})
    {'health': {'nan': 'stop'}}
    """
    kept = _without(config, OURS)
    for name, defaults in OURS_IN_SECTIONS.items():
        if isinstance(kept.get(name), Mapping):
            kept[name] = _without(kept[name], defaults)
    if isinstance(kept.get("log_policies"), list):
        kept["log_policies"] = [_without(policy, {"name": None, "action": None}) for policy in kept["log_policies"]]
    return kept


def _without(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in values.items():
        if name not in defaults:
            kept[name] = value
        elif value != defaults[name]:
            is_section = isinstance(value, Mapping) and isinstance(defaults[name], Mapping)
            kept[name] = _without(value, defaults[name]) if is_section else value
    return kept
