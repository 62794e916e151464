"""Secrets among the values of a composition, which are neither printed nor sent as hyperparameters."""

from __future__ import annotations

import re
from typing import Any

MASK = "********"
MIN_LENGTH = 4
"""A shorter value would mask parts of ordinary words."""
# Not each token: pad_token and eos_token are words of a tokenizer.
_KEY = re.compile(
    r"(^|[_.-])(password|passwd|secrets?|credentials?|(api|access|private|secret)_?key|(access|api|auth|hf|hub)_?token)$",
    re.IGNORECASE,
)
_PAIR = re.compile(r"""(?<![\w.-])([\w.-]+)(\s*:\s*)("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^,{}\[\]]+)""")
"""A key of a mapping in an override, with its value."""
_VARIABLE = re.compile(r"oc\.env:\s*\w*(KEY|TOKEN|SECRET|PASS|CREDENTIAL)", re.IGNORECASE)


def is_secret(key: str, expression: object = None) -> bool:
    """Returns True for a key that names a secret, and for a value from an environment variable that names one.

    >>> is_secret("logger.api_key"), is_secret("wandb.id", "${oc.env:WANDB_TOKEN}"), is_secret("data.label_key")
    (True, True, False)
    >>> is_secret("hub.hf_token"), is_secret("tokenizer.pad_token")
    (True, False)
    """
    return bool(_KEY.search(key) or _VARIABLE.search(str(expression or "")))


def without(value: Any, secrets: set[str]) -> Any:  # noqa: ANN401  # a value as JSON knows it
    """Returns a value in whose texts every secret is masked.

    >>> without(["user:hunter22", 1], {"hunter22"})
    ['user:********', 1]
    """
    if isinstance(value, str):
        for secret in sorted(secrets, key=len, reverse=True):  # one may contain another
            value = value.replace(secret, MASK)
        return value
    if isinstance(value, list):
        return [without(each, secrets) for each in value]
    if isinstance(value, dict):
        return {key: without(each, secrets) for key, each in value.items()}
    return value


def without_in_override(override: str) -> str:
    """Returns an override, without its value if its key names a secret.

    >>> without_in_override("+logger.api_key=abc")
    '+logger.api_key=********'
    >>> without_in_override("+logger={api_key: abc, name: x}")
    '+logger={api_key: ********, name: x}'
    """
    key, equals, value = override.partition("=")
    if is_secret(key.lstrip("+~")):
        return f"{key}{equals}{MASK}"
    return f"{key}{equals}{_PAIR.sub(_without_value, value)}"


def _without_value(pair: re.Match[str]) -> str:
    return f"{pair[1]}{pair[2]}{MASK}" if is_secret(pair[1]) else pair[0]
