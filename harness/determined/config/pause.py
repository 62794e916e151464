"""The ``pause`` section: how a script that knows nothing of the Core API is asked to save and end."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from determined.config.diagnostics import Path
from determined.config.findings import Finding, nearest
from determined.config.launch import Seconds
from determined.config.model import Model, kind_of, wrong
from determined_launch.durations import parse_duration
from determined_launch.pause_signal import DEFAULT, NAMES

DEFAULT_GRACE_SECONDS = 60.0
MAX_GRACE_SECONDS = 86_400
PREEMPTION_TIMEOUT_SECONDS = 3600
"""The time after which the master kills a trial whose configuration has no ``preemption_timeout``."""
UNCATCHABLE = ("SIGKILL", "SIGSTOP")
_TRIAL_CLASS = re.compile(r"\s*[a-zA-Z0-9_.]+:[a-zA-Z0-9_.]+\s*\Z")


def _signal(value: object) -> object:
    """Returns the name of a signal with its ``SIG``, which may be left out."""
    if not isinstance(value, str):
        raise wrong("E201", f"expected the name of a signal such as {DEFAULT}, got {kind_of(value)}")
    name = value.upper() if value.upper().startswith("SIG") else f"SIG{value.upper()}"
    if name in UNCATCHABLE:
        raise wrong("E206", f"no script can handle {name}, so it could not save; use {DEFAULT} or SIGTERM")
    if name in NAMES:
        return name
    near = nearest(name, NAMES)
    meant = f'did you mean "{near}"? ' if near else ""
    raise wrong("E206", f'unknown signal "{value}"; {meant}One of {", ".join(NAMES)}')


class Pause(Model):
    """The signal that each rank of a script gets, and the seconds in which the script has to end by itself."""

    signal: Annotated[str, BeforeValidator(_signal)] = DEFAULT
    grace: Annotated[Seconds, Field(ge=1, le=MAX_GRACE_SECONDS)] = DEFAULT_GRACE_SECONDS


def check(config: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields what contradicts the section in a merged configuration; silent about values of a wrong type."""
    pause = config.get("pause")
    if not isinstance(pause, dict):
        return
    entrypoint = config.get("entrypoint")
    if isinstance(entrypoint, str) and _TRIAL_CLASS.match(entrypoint):
        message = '"pause" has no effect on a trial class, which saves a checkpoint when its trial has to leave'
        yield Finding("W501", ("pause",), message, "remove it", "key", "warning")
    yield from _grace(config, pause)
    yield from _hang_timeout(config, pause)


def _grace(config: Mapping[str, Any], pause: Mapping[str, Any]) -> Iterator[Finding]:
    grace, timeout = _seconds_of(pause.get("grace", DEFAULT_GRACE_SECONDS)), config.get("preemption_timeout")
    limit = PREEMPTION_TIMEOUT_SECONDS if timeout is None else timeout
    if grace is None or not isinstance(limit, int) or isinstance(limit, bool) or grace <= limit:
        return
    origin = "" if timeout is not None else " (its default)"
    message = f"pause.grace is {grace:g} s, but the trial is killed after preemption_timeout, {limit} s{origin}"
    path: Path = ("pause", "grace") if "grace" in pause else ("pause",)
    hint = "raise preemption_timeout or lower pause.grace"
    yield Finding("E302", path, message, hint, "value" if "grace" in pause else "key")


def _hang_timeout(config: Mapping[str, Any], pause: Mapping[str, Any]) -> Iterator[Finding]:
    """The watchdog asks each process that handles SIGUSR1 for its stack, and the script's handler would end it."""
    name = pause.get("signal", DEFAULT)
    for section in ("health", "launch"):
        other = config.get(section)
        if isinstance(other, dict) and other.get("hang_timeout") and str(name).upper() in ("SIGUSR1", "USR1"):
            message = f"{section}.hang_timeout asks for stacks with SIGUSR1, which is the signal of pause too"
            yield Finding("E302", ("pause",), message, "set pause.signal to SIGUSR2", "key")


def _seconds_of(value: object) -> float | None:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
