"""A container engine that speaks Docker's API: calls in threads, errors in plain words, and a stream of events.

The ``docker`` package is imported only here and only when an agent runs containers (extra ``docker``).
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from determined.errors import DeterminedError

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

CALL_SECONDS = 120
MAX_CALLS = 16
_FIRST_WAIT, _LAST_WAIT = 0.1, 2.0
_NO_SPACE = "no space left on device"
_NAME_IN_USE = "is already in use"


class EngineError(DeterminedError):
    """The container engine refused a call."""


class EngineUnavailable(EngineError):
    """The container engine does not answer."""


class NoSuchObject(EngineError):
    """The container engine has no such container or image."""


class NotRunning(EngineError):
    """The container is not in a state that allows this call."""


class Engine:
    """Calls one container engine.

    Example::

        engine = Engine("unix:///var/run/docker.sock")
        facts = await engine.call(lambda api: api.inspect_container("name"))
    """

    def __init__(self, url: str, *, seconds: int = CALL_SECONDS) -> None:
        """Sends nothing yet.

        Args:
            url: address of the engine, such as ``unix:///var/run/docker.sock``.
            seconds: time for one answer; an engine that is slower counts as unavailable.
        """
        self.url = url
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="engine")
        self._lock = threading.Lock()
        self._api: APIClient | None = None

    async def call(self, work: Callable[["APIClient"], Result]) -> Result:
        """Runs ``work`` in a thread and returns its result.

        Raises EngineError, or OSError if the engine's disk is full.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.call_now, work)

    def call_now(self, work: Callable[["APIClient"], Result]) -> Result:
        """The same in the calling thread. Blocking."""
        with _plain_errors(self.url):
            return work(self._connect())

    def close(self) -> None:
        """Ends the connections. Calls in progress fail."""
        with self._lock:
            if self._api is not None:
                self._api.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _connect(self) -> "APIClient":
        from docker import APIClient  # an agent that runs processes does not need the package

        with self._lock:
            if self._api is None:
                self._api = APIClient(self.url, version="auto", timeout=self._seconds, num_pools=MAX_CALLS)
            return self._api


@contextlib.contextmanager
def attached(api: "APIClient", name: str) -> Iterator[socket.socket]:
    """Yields the connection on which the engine sends a container's output, in frames with a header of 8 bytes.

    Attach before the start: output that nobody reads when it is written is lost. Blocking.
    """
    stream: Any = api.attach_socket(name, {"stdout": 1, "stderr": 1, "stream": 1})
    connection: socket.socket = stream._sock  # noqa: SLF001  # the package offers no other access
    try:
        yield connection
    finally:
        _close(connection, stream._response)  # noqa: SLF001


class EngineEvents:
    """Wakes those who wait for a change of a container. Reconnects, and wakes everybody after it has."""

    def __init__(self, url: str, labels: Sequence[str]) -> None:
        """``url``: address of the engine. ``labels``: only events of containers with these labels count."""
        self._url = url
        self._filters = json.dumps({"type": ["container"], "label": list(labels)})
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def watch(self, name: str) -> Iterator[asyncio.Event]:
        """Yields an event that is set when something happened to the container ``name``; the caller clears it."""
        if self._task is None:
            self._task = asyncio.create_task(self._follow(), name="engine events")
        changed = asyncio.Event()
        self._waiting.setdefault(name, set()).add(changed)
        try:
            yield changed
        finally:
            self._waiting[name].discard(changed)
            if not self._waiting[name]:
                del self._waiting[name]

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow(self) -> None:
        wait = _FIRST_WAIT
        while True:
            try:
                async with self._client() as client, client.stream("GET", "/events", params=self._query) as answer:
                    answer.raise_for_status()
                    wait = _FIRST_WAIT
                    self._wake(None)
                    async for line in answer.aiter_lines():
                        self._wake(_name_of(json.loads(line)))
            except Exception as problem:  # also of an event of another shape: containers wait for this loop
                logger.warning("the container engine's events ended; connecting again: %s", problem)
            await asyncio.sleep(wait)
            wait = min(wait * 2, _LAST_WAIT)

    @property
    def _query(self) -> dict[str, str]:
        return {"filters": self._filters}

    def _client(self) -> httpx.AsyncClient:
        # Events may be hours apart; everything else is answered at once.
        timeout = httpx.Timeout(CALL_SECONDS, read=None)
        if self._url.startswith("unix://"):
            transport = httpx.AsyncHTTPTransport(uds=self._url.removeprefix("unix://"))
            return httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=timeout)
        return httpx.AsyncClient(base_url=self._url.replace("tcp://", "http://", 1), timeout=timeout)

    def _wake(self, name: str | None) -> None:
        for key, events in self._waiting.items():
            if name is None or key == name:
                for event in events:
                    event.set()


def _close(connection: socket.socket, response: Any) -> None:  # noqa: ANN401  # an answer of the package
    with contextlib.suppress(Exception):
        response.close()
    descriptor = connection.detach()  # the package's own objects keep the socket open otherwise
    if descriptor >= 0:
        os.close(descriptor)


def _name_of(event: Mapping[str, Any]) -> str:
    return str(event.get("Actor", {}).get("Attributes", {}).get("name", ""))


@contextlib.contextmanager
def _plain_errors(url: str) -> Iterator[None]:
    """Turns the errors of the ``docker`` package and its transport into ours."""
    from docker import errors
    from requests import RequestException

    try:
        yield
    except errors.NotFound as problem:
        raise NoSuchObject(_reason(problem)) from problem
    except errors.APIError as problem:
        reason = _reason(problem)
        if _NO_SPACE in reason:
            raise OSError(errno.ENOSPC, reason) from problem
        if problem.status_code == 409 or _NAME_IN_USE in reason:  # Podman answers 500 to the latter
            raise NotRunning(reason) from problem
        raise EngineError(reason) from problem
    except (errors.DockerException, RequestException, OSError) as problem:
        if isinstance(problem, OSError) and problem.errno == errno.ENOSPC:
            raise
        raise EngineUnavailable(f"the container engine at {url} does not answer: {problem}") from problem


def _reason(problem: Any) -> str:  # noqa: ANN401  # an error of a package without types
    return str(problem.explanation or problem)
