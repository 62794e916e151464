"""The ``launch`` and ``health`` sections: how workers are started, and what is looked for while they run."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from determined.config.model import Model, kind_of, wrong
from determined_launch.durations import parse_duration


def _seconds(value: object) -> object:
    """Returns a duration of the configuration, a number of seconds or a text such as ``10m``, in seconds."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise wrong("E206", str(error)) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("E201", f"expected a duration such as 10m, got {kind_of(value)}")
    return float(value)


Seconds = Annotated[float, BeforeValidator(_seconds)]


class Health(Model):
    """Signs of a trial that is alive and of no use.

    ``nan`` says what follows from the first metric that is NaN or infinite. ``silent_after`` and ``hang_timeout`` are
    in seconds: a trial that reports nothing for the first time gets a note (0: never), and an attempt in which no rank
    makes a step for the second one fails (None: never).
    """

    nan: Literal["warn", "stop"] = "warn"
    silent_after: Annotated[Seconds, Field(ge=0)] = 1800.0
    hang_timeout: Annotated[Seconds | None, Field(gt=0)] = None


class LaunchSection(Model):
    """How workers are started and watched.

    ``hang_timeout`` is the earlier name of ``health.hang_timeout``.
    ``remote_shell`` selects our own remote shell or a real ssh for launchers that need one.
    """

    hang_timeout: Annotated[Seconds | None, Field(gt=0)] = None
    remote_shell: Literal["channel", "ssh"] = "channel"
