"""What a configuration says about the containers of its tasks; the same keys for trials and commands."""

from collections.abc import Mapping
from typing import Any

from determined.config.environment import DEVICES


def container_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a container spec that come from ``environment``, ``resources`` and ``bind_mounts``."""
    env, resources = config["environment"], config["resources"]
    images, variables = by_device(env.get("image")), by_device(env.get("environment_variables"))
    return {
        "user_environment": [str(each) for each in variables.get("cpu") or []],
        "device_environment": variables,
        "image": images.get("cpu"),
        "images": {device: name for device, name in images.items() if name},
        "force_pull_image": bool(env.get("force_pull_image")),
        "registry_auth": env.get("registry_auth"),
        "venv": env.get("venv") or ({"pip": env["pip"]} if env.get("pip") else None),
        "harness": env.get("harness") or "auto",
        "bind_mounts": config.get("bind_mounts") or [],
        "proxy_ports": [int(port["proxy_port"]) for port in env.get("proxy_ports") or []],
        "shm_bytes": resources.get("shm_size"),
        "devices": resources.get("devices") or [],
        "add_capabilities": env.get("add_capabilities") or [],
        "drop_capabilities": env.get("drop_capabilities") or [],
        "ports": env.get("ports") or {},
    }


def by_device(value: object) -> dict[str, Any]:
    """Returns the values of a mapping by type of slot; one value alone is for every type.

    >>> by_device({"cpu": "a", "cuda": None})
    {'cpu': 'a'}
    >>> by_device(["A=1"])["rocm"]
    ['A=1']
    """
    if isinstance(value, dict):
        return {device: each for device, each in value.items() if device in DEVICES and each is not None}
    return {} if value is None else dict.fromkeys(DEVICES, value)
