"""The ``launch`` section: how launch layers start and watch workers."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from determined.config.model import Model, kind_of, wrong
from determined_launch.durations import parse_duration


def _seconds(value: object) -> object:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise wrong("E206", str(error)) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("E201", f"expected a duration such as 10m, got {kind_of(value)}")
    return float(value)


class Launch(Model):
    """How workers are started and watched.

    ``hang_timeout`` is in seconds: an attempt fails if no rank makes a step for that time; off by default.
    ``remote_shell`` selects our own remote shell or a real ssh for launchers that need one.
    """

    hang_timeout: Annotated[float | None, BeforeValidator(_seconds), Field(gt=0)] = None
    remote_shell: Literal["channel", "ssh"] = "channel"
