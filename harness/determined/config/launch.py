"""The ``launch`` section: how launch layers start and watch workers."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from determined.config.model import Model, kind_of, wrong
from determined_launch.durations import parse_duration


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return parse_duration(value)
        except ValueError as error:
            raise wrong("E206", str(error)) from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("E201", f"expected a duration such as 10m, got {kind_of(value)}")
    return float(value)


class Launch(Model):
    """``hang_timeout``, in seconds: an attempt fails when no rank has made a step for so long; off by default.
    ``remote_shell``: what stands for ssh where a launcher wants it, ours or a real one."""

    hang_timeout: Annotated[float | None, BeforeValidator(_seconds), Field(gt=0)] = None
    remote_shell: Literal["channel", "ssh"] = "channel"
