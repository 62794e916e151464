"""Checks at submission that the context has the files from which ``environment.venv`` is built."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.config.findings import Finding
from determined.context import read
from determined.environments import read_inputs
from determined.errors import ConfigError, ContextError

CODE = "E209"
_AT = ("environment", "venv", "requirements")


async def findings(config: Mapping[str, Any], context: Path | None) -> list[Finding]:
    """Returns an error if the context, a tar.zst, lacks a file or has one that cannot be used."""
    venv = config["environment"]["venv"]
    if venv is None:
        return []
    if context is None:
        return [Finding(CODE, _AT, f"{venv['requirements']} is in no context", "submit the folder that has the file")]
    return await asyncio.to_thread(_read, venv, context)


def _read(venv: Mapping[str, Any], context: Path) -> list[Finding]:
    def content(name: str) -> bytes | None:
        found = read(context, name)
        return None if found is None else found[0]

    try:
        read_inputs(venv["requirements"], venv["python"], content)
    except (ConfigError, ContextError) as problem:
        return [Finding(CODE, _AT, problem.message)]
    return []
