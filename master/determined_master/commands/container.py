"""Builds the container spec of a command or a service."""

from collections.abc import Mapping
from typing import Any

from determined.link.messages import ContainerSpec, ContextRef
from determined_launch import environment as names
from determined_master.tasks.container_settings import container_settings


def command_spec(
    config: Mapping[str, Any],
    context_hash: str | None,
    context_size: int,
    *,
    owner: str,
    pool_hook: str,
    interface: str,
    port: int | None = None,
) -> ContainerSpec:
    """Returns the spec without slots, rank, tokens, and the ids of task and attempt. ``config`` is effective.
    ``port``: the one at which a service serves."""
    settings = container_settings(config)
    if port is not None:
        settings["proxy_ports"] = [port, *settings["proxy_ports"]]
    return ContainerSpec(
        task_id="",
        owner=owner,
        slots=[],
        environment={names.NETWORK_INTERFACE: interface} if interface else {},
        entrypoint=argv_of(config["entrypoint"]),
        context=ContextRef(hash=context_hash, size=context_size) if context_hash else None,
        startup_hook=pool_hook,
        **settings,
    )


def argv_of(entrypoint: str | list[str]) -> list[str]:
    """Returns the argv. A text, or a list of one text with spaces, is a shell command and never a trial class.

    >>> argv_of(["ls", "-l"]), argv_of("ls | wc"), argv_of(["ls | wc"])
    (['ls', '-l'], ['sh', '-c', 'ls | wc'], ['sh', '-c', 'ls | wc'])
    """
    words = [entrypoint] if isinstance(entrypoint, str) else entrypoint
    is_shell = isinstance(entrypoint, str) or (len(words) == 1 and len(words[0].split()) > 1)
    return ["sh", "-c", words[0]] if is_shell else words
