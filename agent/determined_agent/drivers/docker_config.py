"""Builds what the engine's API wants to create a container. Pure, except for the client's own conversion."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from determined_agent.drivers.driver import ContainerLaunch, ContainerOptions
from determined_agent.task_process.identity import Identity
from determined_agent.task_process.namespaces import Mount

if TYPE_CHECKING:
    from docker import APIClient

SHIM_FOLDER = "/opt/detent/shim"
"""Folder of the shim's packages inside every container."""


@dataclass(frozen=True)
class ContainerConfig:
    """One container as the engine creates it."""

    name: str
    image: str
    command: tuple[str, ...]
    labels: Mapping[str, str]
    mounts: tuple[Mount, ...]
    options: ContainerOptions
    user: str = ""
    identity: Identity | None = None
    """User of the container if it is not the agent's own."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Only what the shim needs: the task's own variables, with its tokens, are in the order file."""


def container_config(
    launch: ContainerLaunch, *, shim: Path, labels: Mapping[str, str], user: str, name: str
) -> ContainerConfig:
    """Returns the configuration of the container that runs ``launch`` under the shim."""
    options = launch.container
    if options is None:
        raise ValueError("a container needs an image")
    folder = str(launch.folder.path)
    mounts = (Mount(folder, folder), Mount(str(shim), SHIM_FOLDER, True), *launch.mounts)
    program = f"{SHIM_FOLDER}/determined_agent/task_process/shim.py"
    return ContainerConfig(
        name=name,
        image=options.image,
        command=("python3", "-I", "-S", program, str(launch.folder.order), SHIM_FOLDER),
        labels={**options.labels, **labels},
        mounts=mounts,
        options=options,
        user=user,
        identity=launch.identity,
        # Nothing that the shim imports may be compiled into the mounted, read-only folder.
        environment={"PYTHONDONTWRITEBYTECODE": "1", **options.environment},
    )


def arguments(api: "APIClient", config: ContainerConfig) -> dict[str, Any]:
    """Returns the arguments of ``APIClient.create_container``."""
    from docker.types import DeviceRequest, LogConfig  # an agent that runs processes needs no docker
    from docker.types import Mount as EngineMount

    options = config.options
    identity = config.identity
    is_bridge = options.network_mode == "bridge"
    host = api.create_host_config(
        init=True,
        network_mode=options.network_mode,
        log_config=LogConfig(type="none"),
        mounts=[
            EngineMount(m.target, m.source, type="bind", read_only=m.read_only, propagation=m.propagation)
            for m in config.mounts
        ],
        port_bindings={p.container_port: p.host_port for p in options.ports} if is_bridge else None,
        shm_size=options.shm_bytes,
        devices=list(options.devices) or None,
        device_requests=[DeviceRequest(driver="nvidia", device_ids=list(options.gpus), capabilities=[["gpu"]])]
        if options.gpus
        else None,
        cap_add=list(options.add_capabilities) or None,
        cap_drop=list(options.drop_capabilities) or None,
        mem_limit=options.memory_bytes,
        nano_cpus=None if options.cpus is None else int(options.cpus * 1e9),
        pids_limit=options.pids,
        group_add=[str(group) for group in identity.groups] if identity else None,
        # An image may hold programs that make their caller root.
        security_opt=["no-new-privileges"] if identity or config.user else None,
    )
    return {
        "image": config.image,
        # The image's own entry point must not run before the shim.
        "entrypoint": [config.command[0]],
        "command": list(config.command[1:]),
        "name": config.name,
        "labels": dict(config.labels),
        "environment": dict(config.environment),
        "ports": [p.container_port for p in options.ports] if is_bridge else None,
        "user": f"{identity.uid}:{identity.gid}" if identity else config.user or "0:0",
        "working_dir": "/",
        "host_config": host,
    }
