"""Names of services: a task, or one of its ports."""

import re
from typing import NamedTuple

MAX_PORT = 65535
_NAME = re.compile(r"([0-9A-Za-z][0-9A-Za-z.-]{0,254})(?::([1-9][0-9]{0,4}))?")


class ServiceName(NamedTuple):
    """A service of a task, as it stands in ``/proxy/SERVICE/``."""

    task_id: str
    port: int | None = None
    """None: the default service of the task."""


def parse(text: str) -> ServiceName | None:
    """Returns the service that a text names, or None for any other text.

    >>> parse("3.3f2b:8888"), parse("3f2b"), parse("3f2b:0"), parse("../etc")
    (ServiceName(task_id='3.3f2b', port=8888), ServiceName(task_id='3f2b', port=None), None, None)
    """
    match = _NAME.fullmatch(text)
    if match is None:
        return None
    port = int(match[2]) if match[2] else None
    if port is not None and port > MAX_PORT:
        return None
    return ServiceName(match[1], port)
