"""Checks at submission that the context has the files from which ``environment.venv`` is built."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.config.findings import Finding
from determined.context import small_files
from determined.environments import read_inputs
from determined.environments.inputs import MAX_FILE_BYTES
from determined.errors import ConfigError, ContextError
from determined_master.offloading import Offloader

CODE = "E209"
_AT = ("environment", "venv", "requirements")


async def findings(config: Mapping[str, Any], context: Path | None, offloader: Offloader) -> list[Finding]:
    """Returns an error if the context, a tar.zst, lacks a file or has one that cannot be used.

    Reads it in a process of its own: unpacking takes as long as its sender likes.
    """
    venv = config["environment"]["venv"]
    if venv is None:
        return []
    if context is None:
        return [Finding(CODE, _AT, f"{venv['requirements']} is in no context", "submit the folder that has the file")]
    return await offloader.run(_read, venv, context)


def _read(venv: Mapping[str, Any], context: Path) -> list[Finding]:
    try:
        with small_files(context, MAX_FILE_BYTES) as content:
            read_inputs(venv["requirements"], venv["python"], content)
    except (ConfigError, ContextError) as problem:
        return [Finding(CODE, _AT, problem.message)]
    return []
