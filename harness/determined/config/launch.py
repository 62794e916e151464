"""The ``launch`` section: how launch layers start and watch workers."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from determined.config.health import seconds
from determined.config.model import Model


class Launch(Model):
    """How workers are started and watched.

    ``hang_timeout`` is the earlier name of ``health.hang_timeout``.
    ``remote_shell`` selects our own remote shell or a real ssh for launchers that need one.
    """

    hang_timeout: Annotated[float | None, BeforeValidator(seconds), Field(gt=0)] = None
    remote_shell: Literal["channel", "ssh"] = "channel"
