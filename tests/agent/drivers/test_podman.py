"""Podman through its Docker-compatible socket: the address of the socket, and a real run where Podman works."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.agents import outcome
from tests.support.container_engine import BASE_IMAGE
from tests.support.podman_engine import podman_engine

from determined_agent.images import image_store as images
from determined_agent.settings import read_settings

pytestmark = pytest.mark.budget(15, "starts a real engine")

PODMAN = ["--container-runtime", "podman"]


@pytest.mark.parametrize(
    ("user", "environ", "arguments", "address"),
    [
        (0, {}, [], "unix:///run/podman/podman.sock"),
        (0, {"XDG_RUNTIME_DIR": "/run/user/0"}, [], "unix:///run/podman/podman.sock"),
        (1000, {"XDG_RUNTIME_DIR": "/run/user/1000"}, [], "unix:///run/user/1000/podman/podman.sock"),
        (1000, {"CONTAINER_HOST": "unix:///mine"}, [], "unix:///mine"),
        (0, {"DOCKER_HOST": "unix:///dockers"}, [], "unix:///run/podman/podman.sock"),
        (0, {"CONTAINER_HOST": "unix:///mine"}, ["--engine-url", "unix:///flag"], "unix:///flag"),
    ],
)
def test_the_podman_engine_address_follows_user_variables_and_flag(
    monkeypatch: pytest.MonkeyPatch, user: int, environ: dict[str, str], arguments: list[str], address: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert read_settings([*PODMAN, *arguments], {"HOME": "/h", **environ}).engine_address == address


def test_the_docker_engine_address_follows_docker_host() -> None:
    docker = ["--container-runtime", "docker"]
    assert read_settings(docker, {"HOME": "/h"}).engine_address == "unix:///var/run/docker.sock"
    assert read_settings(docker, {"HOME": "/h", "DOCKER_HOST": "tcp://d:1"}).engine_address == "tcp://d:1"
    assert read_settings(docker, {"HOME": "/h", "CONTAINER_HOST": "x"}).engine_address == "unix:///var/run/docker.sock"


@pytest.fixture(scope="module")
def podman() -> Iterator[str]:
    with podman_engine() as address:
        yield address


@pytest.mark.xdist_group("podman")
async def test_a_real_podman_runs_a_task_as_docker_does(podman: str, tmp_path: Path) -> None:
    """The image is examined, the library is mounted, and output and exit code are reported."""
    settings = {"container_runtime": "podman", "engine_url": podman, "default_images": {"cpu": BASE_IMAGE}}
    script = "python3 -c 'import determined; print(determined.__file__)'; pwd; echo $DET_TASK_ID; exit 7"
    exit_, lines, notes = await outcome(tmp_path, script, settings=settings, shm_bytes=1 << 20)
    assert (exit_.kind, exit_.code) == ("exited", 7), (exit_, notes)
    assert lines == ["/opt/detent/harness/determined/__init__.py", "/run/determined/workdir", "1.task"]


@pytest.mark.xdist_group("podman")
async def test_an_image_that_podman_cannot_pull_is_named(
    podman: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PULL_ATTEMPTS", 1)
    settings = {"container_runtime": "podman", "engine_url": podman}
    exit_, _, _ = await outcome(tmp_path, "true", settings=settings, images={"cpu": "localhost:1/lab/none:1"})
    assert exit_.kind == "failed_to_start"
    assert exit_.message.startswith("cannot pull image localhost:1/lab/none:1: ")
