"""The ``launch`` section: how launch layers start and watch workers."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from determined.config.model import Model, kind_of, wrong

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|m|h)?\Z")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _seconds(value: Any) -> Any:
    if isinstance(value, str):
        found = _DURATION.match(value.strip())
        if not found:
            raise wrong("E206", f"not a duration: {value!r}; write seconds, or 90s, 10m, 1h")
        return float(found[1]) * _SECONDS[found[2] or "s"]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong("E201", f"expected a duration such as 10m, got {kind_of(value)}")
    return float(value)


class Launch(Model):
    """``hang_timeout``, in seconds: an attempt fails when no rank has made a step for so long; off by default.
    ``remote_shell``: what stands for ssh where a launcher wants it, ours or a real one."""

    hang_timeout: Annotated[float | None, BeforeValidator(_seconds), Field(gt=0)] = None
    remote_shell: Literal["channel", "ssh"] = "channel"
