"""Cost of containers: the agent's start of one against the Docker package's own, and the first batch and a pause of a
trial in a container against those of a process."""

import asyncio
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.figure import Figure, Skipped, paired
from bench.pause import BENCH, CONFIG, SEED, Paused
from bench.servers import cluster
from bench.submitting import context_of, create, rows, until
from determined.client.session import Session
from determined.link.messages import ContainerSpec
from determined.link.run_folder import RunFolder
from determined_agent.devices import find_slots
from determined_agent.drivers import docker_config
from determined_agent.drivers.docker import name_of
from determined_agent.drivers.driver import ContainerLaunch
from determined_agent.drivers.engine import Engine, EngineError
from determined_agent.environments.harness_copy import keep_shim
from determined_agent.hooks.hook import ContainerPlan
from determined_agent.images.image_store import DEFAULT_IMAGES
from determined_agent.runtime import Runtime, make_runtime
from determined_agent.settings import Settings


def figures(rounds: int = 7) -> list[Figure]:
    _need_image()
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as name:
        start = runner.run(_starts(Path(name), rounds))
    return [start, _first_batches(rounds), _pauses(rounds)]


def _need_image() -> None:
    engine = Engine("unix:///var/run/docker.sock")
    try:
        engine.call_now(lambda api: api.inspect_image(DEFAULT_IMAGES["cpu"]))  # type: ignore[no-untyped-call]
    except (EngineError, ImportError) as problem:
        raise Skipped(f"needs a Docker engine with the default image: make container-engine ({problem})") from problem
    finally:
        engine.close()


async def _starts(data: Path, rounds: int) -> Figure:
    """Measures from a desired container to its running task, against create and start of the same container."""
    slots = find_slots(1)
    settings = Settings(data=data, slots=1, tasks_as_me=True, container_runtime="docker")
    runtime = make_runtime(settings, "bench", slots, "")
    engine = Engine(settings.engine_address)
    ours: list[float] = []
    theirs: list[float] = []
    try:
        await _agents_part(runtime, data)  # the image is examined once
        for number in range(rounds):
            for measured in (ours, theirs) if number % 2 else (theirs, ours):
                if measured is ours:
                    ours.append(await _agents_part(runtime, data))
                else:
                    theirs.append(await _packages_part(engine, runtime, data))
    finally:
        await runtime.close()
        engine.close()
    ratios = [our_seconds / their_seconds for our_seconds, their_seconds in zip(ours, theirs, strict=True)]
    note = f"{sorted(ours)[rounds // 2]:.3f} against {sorted(theirs)[rounds // 2]:.3f} s"
    return Figure("start of a container by the agent / create and start", 1.3, ratios, note=note)


async def _agents_part(runtime: Runtime, data: Path) -> float:
    start = time.perf_counter()
    launch = await _launch(runtime, data)
    await runtime.driver.start(launch)
    taken = time.perf_counter() - start
    runtime.driver.stop(launch.folder)
    await runtime.driver.wait(launch.folder)
    return taken


async def _packages_part(engine: Engine, runtime: Runtime, data: Path) -> float:
    launch = await _launch(runtime, data)
    name = name_of(launch.folder)
    config = docker_config.container_config(launch, shim=keep_shim(data), labels={}, user="", name=name)

    def work(api: Any) -> float:
        start = time.perf_counter()
        api.create_container(**docker_config.arguments(api, config))
        api.start(name)
        taken = time.perf_counter() - start
        api.remove_container(name, force=True)
        return taken

    return await engine.call(work)


async def _launch(runtime: Runtime, data: Path) -> ContainerLaunch:
    folder = RunFolder(data / "runs" / uuid.uuid4().hex)
    folder.make()
    spec = ContainerSpec(task_id="1.bench", slots=[0], environment={}, entrypoint="sleep 60")
    draft = ContainerPlan(folder.path.name, spec, folder)
    for hook in runtime.hooks:
        await hook.do(draft)
    return ContainerLaunch(
        folder, ("sleep", "60"), draft.environment, draft.workdir, tuple(draft.mounts), draft.container
    )


def _first_batches(rounds: int) -> Figure:
    with _created("docker") as in_container, _created("process") as as_process:
        ratios, note = paired(in_container, as_process, rounds)
    return Figure("create to first batch in a container / as a process", 1.25, ratios, note=f"{note} s")


@contextmanager
def _created(runtime: str) -> Iterator[Callable[[], float]]:
    """Yields a function that creates a trial on a cluster, waits for its first batch, kills it and returns the seconds."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data", container_runtime=runtime) as running:
        context = context_of(Path(name) / "context", [BENCH / "trials" / "pause_trial.py"])
        with running.session() as session:

            def first_batch() -> float:
                start = time.perf_counter()
                experiment, trial = create(session, CONFIG, context)
                until(lambda: rows(session, trial, "training"), "the first batch", pause=0.02)
                taken = time.perf_counter() - start
                session.post(f"/api/v1/experiments/{experiment}/kill")
                until(lambda: _is_free(session), "the free slot")
                return taken

            first_batch()
            yield first_batch


def _is_free(session: Session) -> bool:
    agents = session.get("/api/v1/agents")["agents"]
    return all(slot["container"] is None for agent in agents for slot in agent["slots"].values())


def _pauses(rounds: int) -> Figure:
    with _paused("docker") as in_container, _paused("process") as as_process:
        ratios, note = paired(in_container, as_process, rounds)
    return Figure("pause to free slot in a container / as a process", 1.3, ratios, note=f"{note} s")


@contextmanager
def _paused(runtime: str) -> Iterator[Paused]:
    """Yields a function that lets a trial of a cluster train, pauses it and returns the seconds."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data", container_runtime=runtime) as running:
        context = context_of(Path(name) / "context", [BENCH / "trials" / "pause_trial.py"])
        with running.session() as session:
            experiment, trial = create(session, CONFIG, context)
            paused = Paused(session, experiment, trial, random.Random(SEED))
            paused()
            yield paused
            session.post(f"/api/v1/experiments/{experiment}/kill")


if __name__ == "__main__":
    for figure in figures(*map(int, sys.argv[1:])):
        print(figure.line())
