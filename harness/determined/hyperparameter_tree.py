"""Tells the groups in a configuration's hyperparameters from the hyperparameters in them."""

from collections.abc import Mapping
from typing import Any, TypeGuard


def is_group(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Returns True for a mapping of further hyperparameters.

    A group may have a hyperparameter with the name ``type``, which then is a mapping itself. The section as a whole is
    a group whatever it contains.

    Args:
        value: a part of the section ``hyperparameters``.

    Returns:
        True for a group, False for a hyperparameter and for a plain value.

    Example:
        >>> is_group({"lr": 0.1}), is_group({"type": "const", "val": 0.1}), is_group({"type": {"type": "const"}})
        (True, False, True)
    """
    return isinstance(value, Mapping) and isinstance(value.get("type", {}), Mapping)
