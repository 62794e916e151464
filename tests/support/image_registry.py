"""Debian's image registry on localhost, with or without a password. An engine may use it without TLS."""

import contextlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.support.live_cluster import Program
from tests.support.waiting import wait_until

USER, PASSWORD = "lab", "only-for-tests"
# bcrypt of PASSWORD, the only scheme that the registry accepts.
_HTPASSWD = "lab:$2b$04$kQ4/O2D17kqjf3FM1BsmdOkCn7ri2v0gl/JzYXz9DcqwgmM3meipu"


@contextlib.contextmanager
def image_registry(folder: Path, *, has_password: bool = False) -> Iterator[str]:
    """Yields the registry's address, ``localhost:PORT``."""
    folder.mkdir(parents=True, exist_ok=True)
    text = ["version: 0.1", "storage:", f"  filesystem: {{rootdir: {folder / 'images'}}}", "http: {addr: 127.0.0.1:0}"]
    if has_password:
        (folder / "htpasswd").write_text(_HTPASSWD + "\n")
        text += ["auth:", f"  htpasswd: {{realm: lab, path: {folder / 'htpasswd'}}}"]
    (folder / "config.yml").write_text("\n".join(text) + "\n")
    argv = ["docker-registry", "serve", str(folder / "config.yml")]
    registry = Program(argv, folder / "registry.log", dict(os.environ))
    try:
        yield wait_until(lambda: _address(registry.log), what="the registry listens")
    finally:
        registry.end()


def push(image: str, name: str, *, has_password: bool = False) -> None:
    """Pushes an image of the engine under another name, and removes that name from the engine."""
    address = name.partition("/")[0]
    if has_password:
        argv = ["docker", "login", "--username", USER, "--password-stdin", address]
        subprocess.run(argv, input=PASSWORD, text=True, check=True, capture_output=True)
    subprocess.run(["docker", "tag", image, name], check=True)
    subprocess.run(["docker", "push", "--quiet", name], check=True, capture_output=True)
    subprocess.run(["docker", "rmi", name], check=True, capture_output=True)
    if has_password:
        subprocess.run(["docker", "logout", address], check=True, capture_output=True)


def _address(log: Path) -> str:
    match = re.search(r"listening on 127\.0\.0\.1:(\d+)", log.read_text())
    return f"localhost:{match[1]}" if match else ""
