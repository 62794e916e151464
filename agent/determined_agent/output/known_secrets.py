"""Masks the secrets of a task in its log, which every user of the cluster may read.

Known are the secrets of its configuration, and the tokens that the master gave it. A secret that a task or its start-up
hook gets elsewhere is not known, and is shown if it is printed.
"""

import json
from collections.abc import Callable
from typing import Any

from determined.config.masking import MASK, is_secret_name, secret_values
from determined_launch.environment import EXPERIMENT_CONFIG

MIN_LENGTH = 8
"""A shorter value is not masked: it may be a word, which logs have everywhere."""
MAX_SECRETS = 100
"""Every line is compared with each of them; the longest are masked."""


def mask_of(spec: dict[str, Any]) -> Callable[[str], str]:
    """Returns the function that replaces the secrets of a container's spec in a line of its output."""
    known = _known(spec)

    def mask(line: str) -> str:
        for secret in known:
            if secret in line:
                line = line.replace(secret, MASK)
        return line

    return mask


def _known(spec: dict[str, Any]) -> list[str]:
    given = spec.get("environment") or {}
    by_device = (spec.get("device_environment") or {}).values()
    variables = [*(spec.get("user_environment") or ()), *(pair for pairs in by_device for pair in pairs)]
    config = {
        "environment": {"environment_variables": variables, "registry_auth": spec.get("registry_auth")},
        "checkpoint_storage": spec.get("checkpoint_storage") or {},
    }
    found = secret_values(config) | secret_values(_config_of(given.get(EXPERIMENT_CONFIG)))
    found |= {value for name, value in given.items() if is_secret_name(name)}
    # The output has lines, and a key may have several.
    lines = {line for value in found for line in value.splitlines() if len(line) >= MIN_LENGTH}
    return sorted(lines, key=len, reverse=True)[:MAX_SECRETS]


def _config_of(text: str | None) -> dict[str, Any]:
    try:
        config = json.loads(text or "{}")
    except ValueError:
        return {}
    return config if isinstance(config, dict) else {}
