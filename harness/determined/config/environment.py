"""The software around a trial: image or Python environment, variables, ports."""

import posixpath
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from determined.config.model import Model, kind_of, wrong
from determined.environments.inputs import MAX_PACKAGES, read_packages
from determined.errors import ConfigError

DEVICES = ("cpu", "cuda", "rocm")
_VERSION = re.compile(r"3\.[0-9]{1,2}(\.[0-9]{1,2})?\Z")
_VARIABLE = re.compile(r"[^=\0]+(=.*)?\Z", re.DOTALL)


def per_device(value: object) -> Any:  # noqa: ANN401  # a value of a YAML document
    """Returns one value for all devices, or a mapping by device; accepts the old name ``gpu`` for ``cuda``."""
    if isinstance(value, dict):
        if "gpu" in value and "cuda" not in value:
            return {"cuda" if device == "gpu" else device: part for device, part in value.items()}
        return value
    return dict.fromkeys(DEVICES, value)


def _image(value: object) -> object:
    if not isinstance(value, (str, dict)):
        raise wrong("E201", f"expected an image name or a mapping by device, got {kind_of(value)}")
    return per_device(value)


def _variables(value: object) -> object:
    if not isinstance(value, (list, dict)):
        raise wrong("E201", f"expected a list of NAME=VALUE or a mapping by device, got {kind_of(value)}")
    if isinstance(value, dict):
        return per_device(value)
    for index, each in enumerate(value):
        if not isinstance(each, str):
            raise wrong("E201", f"expected NAME=VALUE, got {kind_of(each)}", index)
        _variable(each, index)
    return per_device(value)


def _variable(value: str, *at: int) -> str:
    if not _VARIABLE.match(value):
        raise wrong("E206", f'"{value}" is not NAME=VALUE', *at)
    return value


Variable = Annotated[str, AfterValidator(_variable)]
Port = Annotated[int, Field(ge=1, le=65535)]


class Image(Model):
    """The image for each kind of device; ``venv:PATH`` names a Python environment instead."""

    cpu: str | None = None
    cuda: str | None = None
    rocm: str | None = None


class Variables(Model):
    """``NAME=VALUE`` for each kind of device."""

    cpu: list[Variable] = []
    cuda: list[Variable] = []
    rocm: list[Variable] = []


class ProxyPort(Model):
    """A port of the chief that the master forwards."""

    proxy_port: Port
    proxy_tcp: bool = False
    unauthenticated: bool = False
    default_service_id: bool = False


def _requirements(value: str) -> str:
    path = posixpath.normpath(value)
    if not value or path.startswith(("/", "..")) or "\0" in value or path == ".":
        raise wrong("E206", f'"{value}" is not the path of a file in the context')
    return path


def _version(value: object) -> object:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise wrong("E201", f'expected text, got the number {value}; write it in quotes: "3.10"')
    if isinstance(value, str) and not _VERSION.match(value):
        raise wrong("E206", f'"{value}" is not a version of Python, such as "3.11"')
    return value


class PythonEnvironment(Model):
    """Python packages that each agent installs once, and that all tasks with the same list share.

    ``requirements`` is a file of the context: ``requirements.txt``, ``Pipfile``, ``uv.lock`` or ``pyproject.toml``.
    ``python`` is a version such as ``"3.11"``; without it, the version of the agent's tasks.
    """

    requirements: Annotated[str, AfterValidator(_requirements)] = "requirements.txt"
    python: Annotated[str | None, BeforeValidator(_version)] = None


def _packages(value: list[str]) -> list[str]:
    for index, each in enumerate(value):
        try:
            read_packages([each])
        except ConfigError as problem:
            raise wrong("E206", problem.message.removeprefix("environment.pip:1: "), index) from problem
    read_packages(value)
    return value


class RegistryAuth(Model):
    """Credentials of an image registry."""

    username: str | None = None
    password: str | None = None
    auth: str | None = None
    email: str | None = None
    serveraddress: str | None = None
    identitytoken: str | None = None
    registrytoken: str | None = None


class Environment(Model):
    """The software around a trial. ``harness`` selects the library that ``import determined`` finds."""

    image: Annotated[Image, BeforeValidator(_image)] = Image()
    environment_variables: Annotated[Variables, BeforeValidator(_variables)] = Variables()
    proxy_ports: list[ProxyPort] = []
    ports: dict[str, Port] = {}
    force_pull_image: bool = False
    registry_auth: RegistryAuth | None = None
    add_capabilities: list[str] = []
    drop_capabilities: list[str] = []
    pod_spec: dict[str, Any] | None = None
    harness: Literal["auto", "ours", "installed"] = "auto"
    venv: PythonEnvironment | None = None
    pip: Annotated[list[str], Field(max_length=MAX_PACKAGES), AfterValidator(_packages)] = []
