"""The docker driver: each container is one of the engine's, and the shim runs inside it.

The run folder is mounted at its own path, so that the shim in the container writes the same files as one on the
machine: output segments, exit record, ranks' records. The engine is asked only to create, start, end and remove; its
own log is switched off. ``tini`` is the first process of the container: when the shim ends, the kernel ends the rest.
"""

import asyncio
import contextlib
import json
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined.link.run_folder import RunFolder
from determined_agent.drivers import docker_config
from determined_agent.drivers.container_account import add_account
from determined_agent.drivers.driver import (
    PRIVATE_UMASK,
    ContainerLaunch,
    NotStarted,
    OutputLimits,
    RunEnd,
    SystemFailure,
)
from determined_agent.drivers.engine import (
    Engine,
    EngineError,
    EngineEvents,
    EngineUnavailable,
    NoSuchObject,
    NotRunning,
    attached,
)
from determined_agent.drivers.exit_record import add_cause, has_ended, read_end, write_lost
from determined_agent.host_access.host_mounts import HostMounts
from determined_agent.task_process.namespaces import Mount
from determined_launch import end_request
from determined_launch.atomic_file import write_atomic
from determined_launch.regular_files import read_regular

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

STOP_SECONDS = 8.0
"""Time for the shim to end its task and to write the last output; then the engine kills the container."""
RETRY_SECONDS = 1.0
MAX_ORDER_BYTES = 64 << 20
_STARTED = b"started"
_ALIVE = ("running", "paused", "restarting", "stopping")
"""States of a container whose processes may live; the last is Podman's."""


class DockerDriver:
    """Runs containers on an engine that speaks Docker's API."""

    def __init__(
        self,
        engine: Engine,
        shim: Path,
        *,
        labels: Mapping[str, str],
        limits: OutputLimits | None = None,
        umask: int = 0o022,
        user: str = "",
        host_mounts: HostMounts | None = None,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        """Creates the driver.

        Args:
            engine: where containers run.
            shim: folder with the shim's packages, which is mounted into each container.
            labels: labels by which this agent finds its containers again; at least one.
            limits: bounds of the output that is kept on disk.
            umask: umask of the tasks.
            user: ``UID:GID`` of every container; empty for root, which an agent that is root needs.
            host_mounts: look at folders of the machine that configurations name; without them there may be none.
            stop_seconds: time for a shim to end its task before the engine kills the container.
        """
        self._engine = engine
        self._shim = shim
        self._labels = dict(labels)
        self._limits = limits or OutputLimits()
        self._umask = umask
        self._user = user
        self._host_mounts = host_mounts
        self._stop_seconds = stop_seconds
        self._events = EngineEvents(engine.url, [f"{name}={value}" for name, value in self._labels.items()])
        self._ending: set[str] = set()
        self._runtime_ids: dict[str, str] = {}
        """The engine's ids of containers that have not been removed, by name."""
        self._background: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    async def start(self, launch: ContainerLaunch) -> None:
        if launch.container is None:
            raise NotStarted("a container needs an image")
        write_atomic(launch.folder.order, json.dumps(self._order(launch)), is_durable=False)
        if launch.identity is not None:
            os.chown(launch.folder.order, os.geteuid(), launch.identity.gid)
            launch.folder.order.chmod(0o440)
        if launch.folder.exit.exists():
            return  # a restarted agent considered this container dead before it had started
        async with self._mounts_of(launch) as mounts:
            has_started = await self._create_and_start(replace(launch, mounts=mounts))
        if not has_started:
            ended = await self.wait(launch.folder)
            if ended.kind == "failed_to_start":
                raise NotStarted(ended.message)

    async def _create_and_start(self, launch: ContainerLaunch) -> bool:
        """Creates a container and starts it. Returns False if it ended before its task ran."""
        name = name_of(launch.folder)
        config = docker_config.container_config(
            launch, shim=self._shim, labels=self._labels, user=self._user, name=name
        )
        try:
            await self._create(config)
            if launch.identity is not None:
                await add_account(self._engine, name, launch.identity)
            return await self._engine.call(lambda api: _start(api, name))
        except EngineUnavailable as problem:
            self._in_background(name, self._remove_until_gone(name))  # the engine may have done what it was asked for
            raise SystemFailure(problem.message) from problem
        except EngineError as problem:
            with contextlib.suppress(EngineError):
                await self._remove(name)
            said = self._host_mounts.explain(problem.message) if self._host_mounts else problem.message
            raise NotStarted(f"cannot start a container of {config.image}: {said}") from problem

    def _mounts_of(self, launch: ContainerLaunch) -> contextlib.AbstractAsyncContextManager[tuple[Mount, ...]]:
        """Returns the mounts of a container as its engine has to make them."""
        if self._host_mounts is not None:
            return self._host_mounts.held(launch)
        if any(mount.named_by for mount in launch.mounts):
            raise NotStarted("this agent looks at no folders of its machine, so it mounts none")
        return contextlib.nullcontext(launch.mounts)

    async def wait(self, folder: RunFolder) -> RunEnd:
        name = name_of(folder)
        with self._events.watch(name) as changed:
            while True:
                changed.clear()
                try:
                    state = await self._state(name)
                except EngineUnavailable as problem:
                    # The shim writes the record last: whoever finds it needs no engine.
                    if await asyncio.to_thread(has_ended, folder):
                        self._in_background(name, self._remove_until_gone(name))
                        return await asyncio.to_thread(_recorded_end, folder)
                    logger.warning("waiting for the container engine: %s", problem)
                    await _sleep_or(changed, RETRY_SECONDS)
                    continue
                except EngineError as problem:  # Podman cannot say it of a container that is just ending
                    logger.info("asking for container %s again: %s", name, problem)
                    await _sleep_or(changed, RETRY_SECONDS)
                    continue
                if state is None or state["Status"] not in _ALIVE:
                    ended = await asyncio.to_thread(_settle, folder, state)
                    # Nobody waits for it: the slot is free, and an agent that ends now leaves it to the next one.
                    self._in_background(name, self._remove_until_gone(name))
                    return ended
                if folder.stop.exists():  # requested before this agent could end it
                    self._end(folder)
                await changed.wait()

    def runtime_id(self, folder: RunFolder, /) -> str:
        return self._runtime_ids.get(name_of(folder), "")

    def stop(self, folder: RunFolder) -> None:
        # An end that nobody requested is another program's doing, and the trial continues.
        folder.request_stop()
        self._end(folder)

    async def close(self) -> None:
        """Ends the connections to the engine, and no container."""
        self._closing.set()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._events.close()
        self._engine.close()

    async def remove_others(self, known: Callable[[], Set[str]]) -> list[str]:
        """Removes this agent's containers without a run folder; returns their names.

        ``known`` returns the ids of those with a run folder; called after the engine has listed its containers.
        """
        labels = [f"{name}={value}" for name, value in self._labels.items()]
        found = await self._engine.call(lambda api: api.containers(all=True, filters={"label": labels}))
        names = [name.lstrip("/") for container in found for name in container["Names"][:1]]
        others = [name for name in names if name not in {name_of_id(each) for each in known()}]
        for name in others:
            await self._remove(name)
        return others

    def _end(self, folder: RunFolder) -> None:
        name = name_of(folder)
        if name not in self._ending:
            self._ending.add(name)
            keeps_outputs = end_request.is_there(str(folder.end_request))
            seconds = self._stop_seconds + (end_request.END_SECONDS if keeps_outputs else 0.0)
            self._in_background(name, self._end_now(name, seconds))

    def _in_background(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _create(self, config: docker_config.ContainerConfig) -> None:
        def create(api: "APIClient") -> dict[str, Any]:
            made: dict[str, Any] = api.create_container(**docker_config.arguments(api, config))
            return made

        try:
            created = await self._engine.call(create)
        except NotRunning:  # an attempt that ended on a full disk has left one of this name
            await self._remove(config.name)
            created = await self._engine.call(create)
        self._runtime_ids[config.name] = str(created.get("Id") or "")

    async def _end_now(self, name: str, seconds: float) -> None:
        """Asks the shim to end its task, and kills the container if it does not end in this time."""
        try:
            await self._signal_until_end(name, seconds)
        finally:
            self._ending.discard(name)

    async def _signal_until_end(self, name: str, seconds: float, number: signal.Signals = signal.SIGTERM) -> None:
        with self._events.watch(name) as changed:
            while not self._closing.is_set():
                try:
                    await self._engine.call(partial(_kill, name=name, number=number))
                except (NoSuchObject, NotRunning):
                    return
                except EngineError as problem:
                    logger.warning("cannot end container %s: %s", name, problem)
                if await self._ends_within(name, changed, seconds):
                    return
                # Again and again: an engine may fail to carry out what it accepted.
                number, seconds = signal.SIGKILL, RETRY_SECONDS

    async def _ends_within(self, name: str, changed: asyncio.Event, seconds: float) -> bool:
        """Returns False if the container is alive after this time, or the engine does not say."""
        until = time.monotonic() + seconds
        while True:
            changed.clear()  # the signal itself is an event too
            with contextlib.suppress(EngineError):
                state = await self._state(name)
                if state is None or state["Status"] not in _ALIVE:
                    return True
            if time.monotonic() >= until:
                return False
            await _sleep_or(changed, until - time.monotonic())

    async def _state(self, name: str) -> dict[str, Any] | None:
        try:
            facts = await self._engine.call(lambda api: api.inspect_container(name))
        except NoSuchObject:
            return None
        self._runtime_ids[name] = str(facts.get("Id") or "")  # also of one that an earlier agent created
        state: dict[str, Any] = facts["State"]
        return state

    async def _remove_until_gone(self, name: str) -> None:
        """Removes a container, also one of an engine that is away for now."""
        while not await self._remove(name) and not self._closing.is_set():
            await _sleep_or(self._closing, RETRY_SECONDS)

    async def _remove(self, name: str) -> bool:
        """Returns False if the container is still there; the next agent removes it if this one does not."""
        self._runtime_ids.pop(name, None)
        try:
            await self._engine.call(lambda api: api.remove_container(name, force=True, v=True))
        except (NoSuchObject, NotRunning):
            return True  # the second: its removal is in progress
        except (EngineError, OSError) as problem:
            logger.warning("cannot remove container %s: %s", name, problem)
            return False
        return True

    def _order(self, launch: ContainerLaunch) -> dict[str, Any]:
        folder = launch.folder
        is_private = launch.identity is not None
        of_shim = folder.shim if is_private else folder.path  # the folder itself stays the agent's
        return {
            "format": 1,
            "argv": list(launch.argv),
            "environment": {**launch.environment, "DET_CONTAINER_ID": folder.path.name},
            "inherits_environment": True,  # of the image, such as its PATH
            "workdir": str(launch.workdir),
            "umask": self._umask | PRIVATE_UMASK if is_private else self._umask,
            "output": str(folder.output),
            "wake": str(folder.wake),
            "exit": str(of_shim / folder.exit.name),
            "end_request": str(folder.end_request),
            "lock": str(of_shim / folder.lock.name),
            "pid": str(of_shim / folder.pid.name),
            "log": str(of_shim / folder.shim_log.name),
            "engine": self._engine.url,
            "segment_bytes": self._limits.segment_bytes,
            "output_limit": self._limits.unsent_bytes,
            "line_limit": self._limits.line_bytes,
        }


def engine_of(folder: RunFolder) -> str:
    """Returns the address of the engine that runs a container, or an empty text for a process."""
    try:
        order = json.loads(read_regular(folder.order, MAX_ORDER_BYTES))
        return str(order.get("engine") or "")
    except (OSError, ValueError, AttributeError):
        return ""


def end_container(folder: RunFolder) -> bool:
    """Ends a container without an agent; returns False if its engine does not. Blocking."""
    engine = Engine(engine_of(folder))
    try:
        folder.request_stop()
        engine.call_now(lambda api: api.stop(name_of(folder), timeout=int(STOP_SECONDS)))
        return True
    except (NoSuchObject, NotRunning):
        return True
    except EngineError as problem:
        logger.warning("cannot end container %s: %s", name_of(folder), problem)
        return False
    finally:
        engine.close()


def name_of(folder: RunFolder) -> str:
    return name_of_id(folder.path.name)


def name_of_id(container_id: str) -> str:
    """Returns the engine's name of a container."""
    return f"detent-{container_id}"


def _start(api: "APIClient", name: str) -> bool:
    """Starts the container; returns True once its shim has reported that the task runs. Blocking."""
    # Attached before the start: a message is lost if nobody reads when it is written.
    with attached(api, name) as connection:
        api.start(name)
        connection.settimeout(None)  # the package's timeout is for answers
        seen = b""
        while _STARTED not in seen:
            piece = connection.recv(256)
            if not piece:
                return False
            seen += piece
        return True


def _kill(api: "APIClient", name: str, number: signal.Signals) -> None:
    api.kill(name, int(number))


def _settle(folder: RunFolder, state: Mapping[str, Any] | None) -> RunEnd:
    """Records the end of a container that no longer runs, and returns it. ``state``: None if it is gone."""
    if not has_ended(folder):
        write_lost(folder, _lost_reason(state))
    ended = read_end(folder)
    is_killed = ended.kind == "exited" and (ended.signal == signal.SIGKILL or ended.code not in (0, None))
    if is_killed and state is not None and state.get("OOMKilled"):
        add_cause(folder, "out_of_memory")
    return _recorded_end(folder)


def _recorded_end(folder: RunFolder) -> RunEnd:
    """Returns the end as the shim recorded it; one that this agent did not request is a failure of the system."""
    ended = read_end(folder)
    if ended.kind == "stopped" and not folder.stop.exists():
        return RunEnd("system", message="the container was stopped by another program than this agent")
    return ended


def _lost_reason(state: Mapping[str, Any] | None) -> str:
    if state is None:
        return "the container was removed by another program than this agent"
    if state.get("OOMKilled"):
        return "the container ended without an exit record: out of memory"
    if state["Status"] == "created":
        return "the container was created and never started"
    problem = f": {state['Error']}" if state.get("Error") else ""
    return f"the task's shim ended without an exit record, and its container with code {state.get('ExitCode')}{problem}"


async def _sleep_or(changed: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await changed.wait()
