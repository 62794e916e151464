"""Podman's Docker-compatible socket, served from a folder of the test's own. Needs root."""

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.container_engine import BASE_IMAGE, need_engine
from tests.support.engine_leftovers import end_leftovers
from tests.support.live_cluster import Program
from tests.support.waiting import wait_until

MAX_PROCESSES = 4096


@contextlib.contextmanager
def podman_engine() -> Iterator[str]:
    """Yields the address of a Podman that has the base image. Skips the test if Podman is missing."""
    # The run folder of Podman must have a shorter path than the folders of pytest.
    with tempfile.TemporaryDirectory(prefix="podman-") as folder, _podman_in(Path(folder)) as address:
        yield address


@contextlib.contextmanager
def _podman_in(folder: Path) -> Iterator[str]:
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed; as root, scripts/container_engine.sh adds it")
    need_engine()  # provides the base image
    environment = {**os.environ, "CONTAINERS_CONF": str(_settings(folder))}
    argv = ["podman", "--root", f"{folder}/root", "--runroot", f"{folder}/run", "--storage-driver", "overlay"]
    argv += ["--events-backend", "file", "--cgroup-manager", "cgroupfs"]
    with subprocess.Popen(["docker", "save", BASE_IMAGE], stdout=subprocess.PIPE) as saved:
        subprocess.run([*argv, "load"], stdin=saved.stdout, env=environment, check=True, capture_output=True)
    # Docker's name for an image without a registry.
    names = [f"localhost/{BASE_IMAGE}", f"docker.io/library/{BASE_IMAGE}"]
    subprocess.run([*argv, "tag", *names], env=environment, check=True, capture_output=True)
    socket = folder / "podman.sock"
    service = Program([*argv, "system", "service", "--time", "0", f"unix://{socket}"], folder / "log", environment)
    try:
        wait_until(socket.exists, what="Podman listens")
        yield f"unix://{socket}"
    finally:
        service.end(signal.SIGKILL)  # SIGTERM would wait for its connections
        subprocess.run(
            [*argv, "rm", "--force", "--all", "--time", "0"], env=environment, check=False, capture_output=True
        )
        end_leftovers(folder)


def _settings(folder: Path) -> Path:
    """Writes limits that this process may set. Podman's own are higher, and no container starts without
    CAP_SYS_RESOURCE."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    lines = ["[containers]", f'default_ulimits = ["nofile={files}:{files}", "nproc={MAX_PROCESSES}:{MAX_PROCESSES}"]']
    lines += ["[engine]", 'init_path = "/usr/bin/tini-static"']
    path = folder / "containers.conf"
    path.write_text("\n".join(lines) + "\n")
    return path
