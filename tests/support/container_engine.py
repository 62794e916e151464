"""Starts a real container engine once on this machine, with a base image that needs no registry."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from determined_agent.images.image_store import DEFAULT_IMAGES

BASE_IMAGE = "detent-base:bookworm"
ENGINE_URL = "unix:///var/run/docker.sock"
TASK_IMAGE = DEFAULT_IMAGES["cpu"]
LAUNCHERS_IMAGE = "detent-test:launchers"
ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "container-engine"


def need_engine() -> None:
    """Starts the engine. Skips the test where that needs root or packages that are missing."""
    if os.geteuid() != 0:
        pytest.skip("starting a container engine needs root")
    if shutil.which("apt-get") is None and shutil.which("dockerd") is None:
        pytest.skip("this machine has no container engine and no Debian packages")
    lock = Path(tempfile.gettempdir()) / "detent-container-engine.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # only one worker of a test run starts it
        subprocess.run(["sh", "scripts/container_engine.sh", str(FOLDER)], cwd=ROOT, check=True)


def containers(label: str = "") -> list[str]:
    """Returns the names of the engine's containers, running or not, with a label ``NAME=VALUE``."""
    argv = ["docker", "ps", "--all", "--format", "{{.Names}}", *(["--filter", f"label={label}"] if label else [])]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()


def remove_containers(label: str) -> None:
    """Ends and removes containers that a failed test left."""
    names = containers(label)
    if names:
        subprocess.run(["docker", "rm", "--force", *names], check=False, capture_output=True)


def need_task_image() -> None:
    """Builds the default image of tasks if it is missing. ``make container-engine`` builds it beforehand."""
    need_engine()
    if not has_image(TASK_IMAGE):
        environment = {**os.environ, "DETENT_BASE_IMAGE": BASE_IMAGE}
        subprocess.run(["sh", "scripts/images.sh", sys.prefix, "cpu"], cwd=ROOT, check=True, env=environment)


def need_launchers_image() -> str:
    """Builds the default image with deepspeed and horovod if it is missing, and returns its name."""
    need_task_image()
    if not has_image(LAUNCHERS_IMAGE):
        argv = ["sh", "scripts/launchers_image.sh", sys.prefix, LAUNCHERS_IMAGE]
        subprocess.run(argv, cwd=ROOT, check=True)
    return LAUNCHERS_IMAGE


def has_image(name: str) -> bool:
    """Returns True if the engine has an image."""
    inspected = subprocess.run(["docker", "image", "inspect", name], check=False, capture_output=True)
    return inspected.returncode == 0


def make_image(name: str, *steps: str) -> None:
    """Builds an image on the base image; ``steps`` are lines of a Dockerfile."""
    text = "\n".join([f"FROM {BASE_IMAGE}", *steps])
    argv = ["docker", "build", "--quiet", "--tag", name, "-"]
    subprocess.run(argv, input=text, check=True, capture_output=True, text=True)


def events_of_engine() -> str:
    """Returns the engine's events of the last minute, as lines of JSON."""
    argv = ["docker", "events", "--since", "1m", "--until", "0s", "--format", "{{json .}}"]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def tag_image(image: str, name: str) -> None:
    """Gives an image of the engine a second name."""
    subprocess.run(["docker", "tag", image, name], check=True)


def remove_image(name: str) -> None:
    subprocess.run(["docker", "rmi", "--force", name], check=False, capture_output=True)
