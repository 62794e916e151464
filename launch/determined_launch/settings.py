"""Settings of the launch layers from the experiment's configuration."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from determined_launch import environment
from determined_launch.durations import parse_duration
from determined_launch.errors import LaunchError

_SHELLS = ("channel", "ssh")


@dataclass(frozen=True)
class LaunchSettings:
    """Settings of the launch layers. ``hang_seconds`` is 0 if the hang watchdog is off; ``hang_setting`` names it."""

    hang_seconds: float = 0.0
    hang_setting: str = "health.hang_timeout"
    remote_shell: str = "channel"
    autotune: bool = False
    fusion_megabytes: int = 64
    cycle_milliseconds: int = 1
    horovod_arguments: tuple[str, ...] = ()


def read(environ: Mapping[str, str]) -> LaunchSettings:
    """Returns the settings of this task's configuration; the defaults off the cluster. Raises LaunchError."""
    try:
        config = json.loads(environment.value_of(environ, environment.EXPERIMENT_CONFIG) or "{}")
    except ValueError:
        raise LaunchError(f"{environment.EXPERIMENT_CONFIG} is not JSON") from None
    sections = ("health", "launch", "optimizations", "data")
    health, launch, optimizations, data = (_mapping(config, name) for name in sections)
    section, hang = ("health", health) if health.get("hang_timeout") else ("launch", launch)
    shell = launch.get("remote_shell") or "channel"
    if shell not in _SHELLS:
        raise LaunchError(f"launch.remote_shell is one of {', '.join(_SHELLS)}; found: {shell}")
    return LaunchSettings(
        hang_seconds=seconds(hang.get("hang_timeout"), f"{section}.hang_timeout"),
        hang_setting=f"{section}.hang_timeout",
        remote_shell=shell,
        autotune=bool(optimizations.get("auto_tune_tensor_fusion", False)),
        fusion_megabytes=_number(optimizations, "tensor_fusion_threshold", 64),
        cycle_milliseconds=_number(optimizations, "tensor_fusion_cycle_time", 1),
        horovod_arguments=_words(data.get("__det_dtrain_args")),
    )


def seconds(value: object, name: str) -> float:
    """Returns a duration of the configuration in seconds, 0 if it is empty.

    Raises LaunchError with the setting's name.
    """
    if value in (None, "", False):
        return 0.0
    try:
        return parse_duration(str(value))
    except ValueError as error:
        raise LaunchError(f"{name}: {error}") from None


def _mapping(config: object, name: str) -> Mapping[str, Any]:
    value = config.get(name) if isinstance(config, dict) else None
    return value if isinstance(value, dict) else {}


def _number(optimizations: Mapping[str, Any], name: str, default: int) -> int:
    value = optimizations.get(name)
    if value is None:
        return default
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise LaunchError(f"optimizations.{name} is a whole number; found: {value}") from None


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        try:
            return tuple(shlex.split(value))
        except ValueError as error:
            raise LaunchError(f"data.__det_dtrain_args: {error}: {value}") from None
    return tuple(str(word) for word in value) if isinstance(value, list) else ()
