"""Merges layers of configuration; the first layer wins, by rules that depend on the kind of field."""

from collections.abc import Callable, Mapping
from typing import Any

from determined.config import searcher, storage
from determined.config.environment import DEVICES, per_device
from determined.hyperparameter_tree import is_group

Layer = Mapping[str, Any]

FREE_FORM = ("data", "hyperparameters")
"""Fields in which a null is a value and not "unset"."""


def without_nulls(value: Any, *, top: bool = True) -> Any:  # noqa: ANN401  # a value of a YAML document
    """Removes nulls, which mean "unset" everywhere except in free-form fields."""
    if isinstance(value, dict):
        return {
            key: part if top and key in FREE_FORM else without_nulls(part, top=False)
            for key, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [without_nulls(each, top=False) if isinstance(each, dict) else each for each in value]
    return value


def merge(high: Layer, low: Layer) -> dict[str, Any]:
    """Merges ``high`` over ``low``. Values of the wrong type stay as they are; the check reports them."""
    merged = dict(high)
    for key, below in low.items():
        if key not in high:
            merged[key] = below
        elif rule := _RULES.get(key):
            merged[key] = rule(high[key], below)
        else:
            merged[key] = _plain(high[key], below)
    return merged


def _plain(high: Any, low: Any) -> Any:  # noqa: ANN401  # a value of a YAML document
    """Merges mappings key by key; replaces any other value completely."""
    if not isinstance(high, dict) or not isinstance(low, dict):
        return high
    merged = dict(high)
    for key, below in low.items():
        merged[key] = _plain(high[key], below) if key in high else below
    return merged


def _labels(high: Any, low: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    names = [_label_names(side) for side in (high, low)]
    if names[0] is None or names[1] is None:
        return high
    return names[0] + [name for name in names[1] if name not in names[0]]


def _label_names(value: Any) -> list[Any] | None:  # noqa: ANN401  # a value of a YAML document
    if isinstance(value, dict):
        return [name for name, is_set in value.items() if is_set]
    return list(value) if isinstance(value, list) else None


def _hyperparameters(high: Any, low: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    """Merges groups recursively; a hyperparameter with a type, or a plain value, replaces the lower one."""
    if not isinstance(high, dict) or not isinstance(low, dict):
        return high
    merged = dict(high)
    for key, below in low.items():
        are_groups = key in high and is_group(high[key]) and is_group(below)
        merged[key] = _hyperparameters(high[key], below) if are_groups else high.get(key, below)
    return merged


def _union(tag: str, common: frozenset[str]) -> Callable[[Any, Any], Any]:
    def rule(high: Any, low: Any) -> Any:  # noqa: ANN401  # a value of a YAML document
        if not isinstance(high, dict) or not isinstance(low, dict):
            return high
        if tag in high and high[tag] != low.get(tag):
            low = {key: value for key, value in low.items() if key in common}
        elif low.get(tag) == "azure" and AZURE_CREDENTIALS & high.keys():
            low = {key: value for key, value in low.items() if key not in AZURE_CREDENTIALS}
        return _plain(high, low)

    return rule


AZURE_CREDENTIALS = {"connection_string", "account_url", "credential"}


def _appended(*same: str) -> Callable[[Any, Any], Any]:
    """Concatenates lists, without the lower entries that equal a higher one in the fields ``same``."""

    def rule(high: Any, low: Any) -> Any:  # noqa: ANN401  # a value of a YAML document
        if not isinstance(high, list) or not isinstance(low, list):
            return high
        taken = [_identity(each, same) for each in high]
        return high + [each for each in low if _identity(each, same) not in taken]

    return rule


def _identity(entry: Any, fields: tuple[str, ...]) -> object:  # noqa: ANN401  # a value of a YAML document
    if isinstance(entry, str):
        # A device as docker writes it: host:container[:mode].
        return (entry.split(":")[1],) if entry.count(":") else (entry,)
    return tuple(entry.get(field) for field in fields) if isinstance(entry, dict) else entry


def _policies(high: Any, low: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    if not isinstance(high, list) or not isinstance(low, list):
        return high
    taken = [_policy_identity(each) for each in high]
    return high + [each for each in low if _policy_identity(each) not in taken]


def _policy_identity(policy: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    if not isinstance(policy, dict):
        return policy
    if policy.get("name"):
        return policy["name"]
    action = policy.get("action")
    return policy.get("pattern"), action.get("type") if isinstance(action, dict) else action


def _variables(high: Any, low: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    """Puts the lower layer first, since a later entry wins in the environment of a process."""
    if not isinstance(high, (list, dict)) or not isinstance(low, (list, dict)):
        return high
    if isinstance(high, list) and isinstance(low, list):
        return low + high
    above, below = per_device(high), per_device(low)
    merged = dict(above)
    for device in DEVICES:
        parts = [side.get(device, []) for side in (below, above)]
        if all(isinstance(part, list) for part in parts):
            merged[device] = parts[0] + parts[1]
    return merged


def _image(high: Any, low: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    if isinstance(high, str) or not isinstance(high, dict) or not isinstance(low, (str, dict)):
        return high
    return _plain(per_device(high), per_device(low))


def _nested(rules: Mapping[str, Callable[[Any, Any], Any]]) -> Callable[[Any, Any], Any]:
    def rule(high: Any, low: Any) -> Any:  # noqa: ANN401  # a value of a YAML document
        if not isinstance(high, dict) or not isinstance(low, dict):
            return high
        merged = dict(high)
        for key, below in low.items():
            merged[key] = rules.get(key, _plain)(high[key], below) if key in high else below
        return merged

    return rule


def _arguments(field: str) -> Callable[[Any, Any], Any]:
    """Puts the arguments of the lower layer before those of the higher one."""

    def rule(high: Any, low: Any) -> Any:  # noqa: ANN401  # a value of a YAML document
        return low + high if isinstance(high, list) and isinstance(low, list) else high

    return _nested({field: rule})


def _replaced(high: Any, low: Any) -> object:  # noqa: ANN401  # a value of a YAML document
    return high


_RULES: dict[str, Callable[[Any, Any], Any]] = {
    "labels": _labels,
    "hyperparameters": _hyperparameters,
    "searcher": _union("name", searcher.COMMON_FIELDS),
    "checkpoint_storage": _union("type", storage.COMMON_FIELDS),
    "bind_mounts": _appended("container_path"),
    "log_policies": _policies,
    "resources": _nested({"devices": _appended("container_path")}),
    "environment": _nested(
        {
            "proxy_ports": _appended("proxy_port"),
            "environment_variables": _variables,
            "image": _image,
        }
    ),
    "slurm": _arguments("sbatch_args"),
    "pbs": _arguments("pbsbatch_args"),
    "min_validation_period": _replaced,
    "min_checkpoint_period": _replaced,
}
