"""The exact calls of the Docker driver, and failures of an engine that a real one cannot be made to show."""

import asyncio
import contextlib
import dataclasses
import errno
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_engine import Call, FakeEngine, fake_engine
from tests.support.waiting import eventually

from determined.link.run_folder import RunFolder
from determined_agent.drivers import docker
from determined_agent.drivers.docker import DockerDriver
from determined_agent.drivers.driver import (
    ContainerLaunch,
    ContainerOptions,
    NotStarted,
    PublishedPort,
    RunEnd,
    SystemFailure,
)
from determined_agent.drivers.engine import Engine
from determined_agent.host_access.access import ClusterFolders, HostAccess
from determined_agent.host_access.host_mounts import HostMounts
from determined_agent.settings import Settings
from determined_agent.task_process.namespaces import Mount

LABELS = {"detent.agent": "one", "detent.data": "/data"}


@contextlib.asynccontextmanager
async def driver_on(
    folder: Path,
    *,
    seconds: int = 5,
    user: str = "",
    host_mounts: HostMounts | None = None,
    stop_seconds: float = 0.2,
    **rules_and_state: Any,
) -> AsyncIterator[tuple[FakeEngine, DockerDriver]]:
    path = folder / "engine.sock"
    async with fake_engine(path, **rules_and_state) as engine:
        driver = DockerDriver(
            Engine(f"unix://{path}", seconds=seconds),
            Path("/shim"),
            labels=LABELS,
            user=user,
            host_mounts=host_mounts,
            stop_seconds=stop_seconds,
        )
        try:
            yield engine, driver
        finally:
            await driver.close()


def make_launch(folder: Path, **options: Any) -> ContainerLaunch:
    run = RunFolder(folder / uuid.uuid4().hex)
    run.make()
    mounts = (Mount("/host/data", "/data", True, "rslave"),)
    return ContainerLaunch(
        run, ("task",), {"SECRET": "token"}, run.workdir, mounts, ContainerOptions("lab/train:1", **options)
    )


def write_end(launch: ContainerLaunch, **record: Any) -> None:
    launch.folder.exit.write_text(json.dumps({"format": 1, **record}))


async def test_a_container_from_start_to_end_needs_five_kinds_of_calls(tmp_path: Path) -> None:
    """Podman's Docker-compatible socket has to answer these calls."""
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path, ports=(PublishedPort(8265, 31000),), network_mode="bridge")
        name = f"detent-{launch.folder.path.name}"
        await driver.start(launch)
        waiting = asyncio.create_task(driver.wait(launch.folder))
        await eventually(lambda: engine.followers)
        write_end(launch, code=3)
        engine.status = {"Status": "exited", "OOMKilled": False, "ExitCode": 3}
        await engine.tell(name)
        assert await waiting == RunEnd("exited", code=3)
    distinct_lines = list(dict.fromkeys(line.replace(name, "NAME") for line in engine.lines))
    assert distinct_lines == [
        "POST /containers/create",
        "POST /containers/NAME/attach",
        "POST /containers/NAME/start",
        "GET /containers/NAME/json",
        "DELETE /containers/NAME",
    ]
    assert engine.lines[-1] == f"DELETE /containers/{name}"


async def test_the_engines_id_is_known_until_the_container_is_removed(tmp_path: Path) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        assert driver.runtime_id(launch.folder) == ""
        await driver.start(launch)
        assert driver.runtime_id(launch.folder) == "made"
        # An agent that did not create it learns the id while it waits.
        later = DockerDriver(Engine(f"unix://{tmp_path / 'engine.sock'}", seconds=5), Path("/shim"), labels=LABELS)
        waiting = asyncio.create_task(later.wait(launch.folder))
        await eventually(lambda: later.runtime_id(launch.folder) == "made")
        write_end(launch, code=0)
        engine.status = {"Status": "exited", "OOMKilled": False, "ExitCode": 0}
        await engine.tell(f"detent-{launch.folder.path.name}")
        await waiting
        await eventually(lambda: later.runtime_id(launch.folder) == "")
        await later.close()


async def test_a_launch_becomes_one_create_call_with_all_its_options(tmp_path: Path) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(
            tmp_path,
            labels={"detent.task": "7.abc"},
            network_mode="bridge",
            ports=(PublishedPort(8265, 31000),),
            shm_bytes=1 << 30,
            devices=("/dev/fuse:/dev/fuse:rw",),
            gpus=("GPU-1", "MIG-2"),
            environment={"NVIDIA_VISIBLE_DEVICES": "GPU-1,MIG-2"},
            add_capabilities=("SYS_PTRACE",),
            drop_capabilities=("CHOWN",),
            memory_bytes=2 << 30,
            cpus=1.5,
            pids=100,
        )
        await driver.start(launch)
    (call,) = [call for call in engine.calls if call.line == "POST /containers/create"]
    folder, host = str(launch.folder.path), call.body.pop("HostConfig")
    assert call.query == f"name=detent-{launch.folder.path.name}"
    assert call.body == {
        "ExposedPorts": {"8265/tcp": {}},
        "User": "0:0",
        "Tty": False,
        "OpenStdin": False,
        "StdinOnce": False,
        "AttachStdin": False,
        "AttachStdout": True,
        "AttachStderr": True,
        "Env": ["PYTHONDONTWRITEBYTECODE=1", "NVIDIA_VISIBLE_DEVICES=GPU-1,MIG-2"],
        "Cmd": [
            "-I",
            "-S",
            "/opt/detent/shim/determined_agent/task_process/shim.py",
            f"{folder}/shim.json",
            "/opt/detent/shim",
        ],
        "Image": "lab/train:1",
        "NetworkDisabled": False,
        "Entrypoint": ["python3"],
        "WorkingDir": "/",
        "Labels": {"detent.task": "7.abc", **LABELS},
    }
    binds = host.pop("Mounts")
    assert [(mount["Source"], mount["Target"], mount["ReadOnly"]) for mount in binds] == [
        (folder, folder, False),
        ("/shim", "/opt/detent/shim", True),
        ("/host/data", "/data", True),
    ]
    assert [mount["BindOptions"]["Propagation"] for mount in binds] == ["rprivate", "rprivate", "rslave"]
    assert host == {
        "NetworkMode": "bridge",
        "Init": True,
        "LogConfig": {"Type": "none", "Config": {}},
        "PortBindings": {"8265/tcp": [{"HostIp": "", "HostPort": "31000"}]},
        "ShmSize": 1 << 30,
        "Devices": [{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse", "CgroupPermissions": "rw"}],
        "DeviceRequests": [
            {"Driver": "nvidia", "Count": 0, "DeviceIDs": ["GPU-1", "MIG-2"], "Capabilities": [["gpu"]], "Options": {}}
        ],
        "CapAdd": ["SYS_PTRACE"],
        "CapDrop": ["CHOWN"],
        "Memory": 2 << 30,
        "NanoCpus": 1_500_000_000,
        "PidsLimit": 100,
    }
    assert "token" not in json.dumps(call.body)


@pytest.mark.parametrize(("user", "options"), [("1000:1000", ["no-new-privileges"]), ("", None)])
async def test_a_container_that_does_not_run_as_root_cannot_become_root(
    tmp_path: Path, user: str, options: list[str] | None
) -> None:
    """An image may hold setuid programs, beside folders that only their owners may read."""
    async with driver_on(tmp_path, user=user) as (engine, driver):
        await driver.start(make_launch(tmp_path))
    (call,) = [call for call in engine.calls if call.line == "POST /containers/create"]
    assert call.body["HostConfig"].get("SecurityOpt") == options


async def test_a_named_folder_is_not_mounted_without_a_second_check(tmp_path: Path) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        named = launch.mounts[0]._replace(named_by="bind_mounts[0].host_path")
        with pytest.raises(NotStarted, match="looks at no folders"):
            await driver.start(dataclasses.replace(launch, mounts=(named,)))
    assert engine.calls == []


async def test_an_engine_that_does_not_see_the_agents_mounts_fails_the_start_with_the_remedy(tmp_path: Path) -> None:
    mounts = HostMounts(HostAccess(Settings(data=tmp_path), ClusterFolders), tmp_path)
    refuses = answering("POST /containers/create", 400, f"bind source path does not exist: {tmp_path}/mounts/c/0")
    async with driver_on(tmp_path, rules=[refuses], host_mounts=mounts) as (_, driver):
        with pytest.raises(
            NotStarted, match=r"does not exist.*name the mounted folder itself in .* allowed_host_paths"
        ):
            await driver.start(make_launch(tmp_path))


def answering(line: str, status: int, message: str, times: int = 100) -> Any:
    left = [times]

    def rule(call: Call) -> Any:
        if not call.line.startswith(line) or left[0] == 0:
            return None
        left[0] -= 1
        return status, {"message": message}

    return rule


@pytest.mark.parametrize(
    ("line", "status", "message"),
    [
        ("POST /containers/create", 400, "invalid CPU count"),
        ("POST /containers/create", 404, "no such image: lab/train:1"),
        ("POST /containers/detent-", 400, 'exec: "python3": executable file not found in $PATH'),
        ("POST /containers/detent-", 500, "could not select device driver with capabilities: [[gpu]]"),
    ],
)
async def test_a_refusal_of_the_engine_is_named_and_leaves_no_container(
    tmp_path: Path, line: str, status: int, message: str
) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        engine.rules = [answering(line, status, message)]
        with pytest.raises(NotStarted, match="cannot start a container of lab/train:1: ") as caught:
            await driver.start(make_launch(tmp_path))
        assert message in str(caught.value)
        assert not engine.exists


async def test_a_full_disk_of_the_engine_is_raised_as_enospc_and_a_later_start_succeeds(tmp_path: Path) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        engine.rules = [answering("POST /containers/create", 500, "write /var/lib: no space left on device", times=1)]
        launch = make_launch(tmp_path)
        with pytest.raises(OSError, match="no space left on device") as caught:
            await driver.start(launch)
        assert caught.value.errno == errno.ENOSPC
        await driver.start(launch)  # the agent retries until there is space
        assert engine.exists


async def test_a_container_of_an_attempt_that_failed_is_replaced(tmp_path: Path) -> None:
    async with driver_on(tmp_path, exists=True) as (engine, driver):
        engine.rules = [answering("POST /containers/create", 409, "the name is already in use", times=1)]
        launch = make_launch(tmp_path)
        await driver.start(launch)
        assert [line.split("/")[0] for line in engine.lines] == ["POST ", "DELETE ", "POST ", "POST ", "POST "]


async def test_podmans_answer_to_a_name_in_use_replaces_the_container_too(tmp_path: Path) -> None:
    async with driver_on(tmp_path, exists=True) as (engine, driver):
        message = 'creating container storage: the container name "detent-1" is already in use by 0a1b'
        engine.rules = [answering("POST /containers/create", 500, message, times=1)]
        await driver.start(make_launch(tmp_path))
        assert [line.split("/")[0] for line in engine.lines] == ["POST ", "DELETE ", "POST ", "POST ", "POST "]


async def test_podmans_error_about_a_container_that_is_just_ending_is_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "RETRY_SECONDS", 0.01)
    async with driver_on(tmp_path, exists=True) as (engine, driver):
        launch = make_launch(tmp_path)
        write_end(launch, code=5)
        engine.status = {"Status": "exited", "OOMKilled": False, "ExitCode": 5}
        message = "read /proc/29517/cgroup: no such process"
        engine.rules = [answering("GET /containers/detent-", 500, message, times=1)]
        assert await driver.wait(launch.folder) == RunEnd("exited", code=5)


async def test_a_container_that_podman_is_stopping_has_not_ended(tmp_path: Path) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        await driver.start(launch)
        engine.status = {"Status": "stopping", "OOMKilled": False, "ExitCode": 0}
        waiting = asyncio.create_task(driver.wait(launch.folder))
        await eventually(lambda: f"GET /containers/detent-{launch.folder.path.name}/json" in engine.lines)
        driver.stop(launch.folder)
        # Killed, although it is not "running".
        await eventually(lambda: [c.query for c in engine.calls if c.path.endswith("/kill")][-1:] == ["signal=9"])
        assert not waiting.done()
        write_end(launch, signal=9, stopped=True)
        engine.status = {"Status": "exited", "OOMKilled": False, "ExitCode": 137}
        await engine.tell(f"detent-{launch.folder.path.name}")
        assert (await waiting).kind == "stopped"


async def test_a_slow_engine_is_a_system_failure(tmp_path: Path) -> None:
    async with driver_on(tmp_path, seconds=1) as (engine, driver):
        engine.slow = "/containers/create"
        with pytest.raises(SystemFailure, match="does not answer"):
            await driver.start(make_launch(tmp_path))


async def test_an_end_is_read_from_the_shims_record_while_the_engine_is_away(tmp_path: Path) -> None:
    """The record of the shim is enough: it is written after all processes of the task have ended."""
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        await driver.start(launch)
        engine.is_away = True
        write_end(launch, code=0)
        assert await driver.wait(launch.folder) == RunEnd("exited", code=0)


async def test_a_stop_by_the_engine_is_a_system_failure(tmp_path: Path) -> None:
    """An engine without live-restore stops its containers in order when it is stopped, and then answers no call."""
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        await driver.start(launch)
        engine.is_away = True
        write_end(launch, signal=9, stopped=True)
        ended = await driver.wait(launch.folder)
        assert (ended.kind, ended.message) == ("system", "the container was stopped by another program than this agent")
        launch.folder.stop.touch()
        assert (await driver.wait(launch.folder)).kind == "stopped", "what the agent requested"


async def test_a_container_is_removed_when_its_engine_is_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker, "RETRY_SECONDS", 0.01)
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        await driver.start(launch)
        engine.is_away = True
        write_end(launch, code=0)
        assert await driver.wait(launch.folder) == RunEnd("exited", code=0)
        engine.is_away = False
        engine.status = {"Status": "exited", "OOMKilled": False, "ExitCode": 0}
        await eventually(lambda: not engine.exists)


@pytest.mark.parametrize(
    ("state", "record", "ended"),
    [
        ({"Status": "exited", "OOMKilled": True, "ExitCode": 137}, {"signal": 9}, ("exited", "out_of_memory")),
        ({"Status": "exited", "OOMKilled": True, "ExitCode": 0}, {"code": 0}, ("exited", "")),
        ({"Status": "exited", "OOMKilled": False, "ExitCode": 143}, {"signal": 9, "stopped": True}, ("system", "")),
        ({"Status": "created", "OOMKilled": False, "ExitCode": 0}, None, ("system", "")),
        ({"Status": "dead", "OOMKilled": False, "ExitCode": 137, "Error": "lost"}, None, ("system", "")),
    ],
)
async def test_the_end_of_a_container_is_derived_from_the_engine_and_the_shims_record(
    tmp_path: Path, state: dict[str, Any], record: dict[str, Any] | None, ended: tuple[str, str]
) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        engine.exists, engine.status = True, state
        if record is not None:
            write_end(launch, **record)
        result = await driver.wait(launch.folder)
        assert (result.kind, result.cause) == ended
        await eventually(lambda: not engine.exists)
        assert await driver.wait(launch.folder) == result, "the same answer after the container is gone"


async def test_a_container_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        await driver.start(launch)
        driver.stop(launch.folder)
        await eventually(
            lambda: [c.query for c in engine.calls if c.path.endswith("/kill")] == ["signal=15", "signal=9"]
        )


def signals(engine: FakeEngine) -> list[str]:
    return [call.query for call in engine.calls if call.path.endswith("/kill")]


async def test_a_stop_that_the_engine_does_not_carry_out_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(docker, "RETRY_SECONDS", 0.01)
    async with driver_on(tmp_path) as (engine, driver):
        launch = make_launch(tmp_path)
        await driver.start(launch)
        engine.rules = [answering(f"POST /containers/detent-{launch.folder.path.name}/kill", 500, "no", times=3)]
        driver.stop(launch.folder)
        await eventually(lambda: signals(engine)[:5] == ["signal=15", *["signal=9"] * 4])


async def test_the_event_of_sigterm_does_not_end_the_time_that_a_container_has(tmp_path: Path) -> None:
    async with driver_on(tmp_path, stop_seconds=60) as (engine, driver):
        launch = make_launch(tmp_path)
        name = f"detent-{launch.folder.path.name}"
        await driver.start(launch)
        driver.stop(launch.folder)
        await eventually(lambda: engine.followers and signals(engine))
        await engine.tell(name, "kill")
        await eventually(lambda: len([line for line in engine.lines if line.startswith("GET ")]) > 1)
        write_end(launch, signal=15, stopped=True)
        engine.status = {"Status": "exited", "OOMKilled": False, "ExitCode": 143}
        await engine.tell(name)
        assert (await driver.wait(launch.folder)).kind == "stopped"
        assert signals(engine) == ["signal=15"]


async def test_remove_others_removes_only_unknown_containers_of_the_same_agent(tmp_path: Path) -> None:
    known, names = uuid.uuid4().hex, ["/detent-left", "/detent-known"]

    def listing(call: Call) -> Any:
        containers = [{"Names": [name.replace("known", known)]} for name in names]
        return (200, containers) if call.line == "GET /containers/json" else None

    async with driver_on(tmp_path, exists=True) as (engine, driver):
        engine.rules = [listing]
        assert await driver.remove_others(lambda: {known}) == ["detent-left"]
        assert [line for line in engine.lines if line.startswith("DELETE")] == ["DELETE /containers/detent-left"]
        (listed,) = [call for call in engine.calls if call.path == "/containers/json"]
    assert "detent.agent%3Done" in listed.query
    assert "detent.data%3D%2Fdata" in listed.query, "another agent on the same engine has another data folder"
