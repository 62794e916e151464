"""Checks at submission that the context has the files from which ``environment.venv`` is built."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.config.findings import Finding
from determined.context import ArchiveTooLarge, small_files
from determined.environments import read_inputs
from determined.environments.inputs import MAX_FILE_BYTES
from determined.errors import ConfigError, ContextError
from determined_master.offloading.offloader import Offloader
from determined_master.offloading.threads import USER_FILES

MAX_SMALL_BYTES = 64 << 10
"""Of a context that is read in a thread, unpacked too."""
CODE = "E209"
_AT = ("environment", "venv", "requirements")


async def findings(config: Mapping[str, Any], context: Path | None, offloader: Offloader) -> list[Finding]:
    """Returns an error if the context, a tar.zst, lacks a file or has one that cannot be used.

    Reads a small context in a thread, which takes milliseconds, and others in a process of their own: unpacking takes
    as long as its sender likes, and a process 0.2 s to start.
    """
    venv = config["environment"]["venv"]
    if venv is None:
        return []
    if context is None:
        return [Finding(CODE, _AT, f"{venv['requirements']} is in no context", "submit the folder that has the file")]
    try:
        return await USER_FILES.run(_read, venv, context, MAX_SMALL_BYTES)
    except ArchiveTooLarge:
        return await offloader.run(_read, venv, context)


def _read(venv: Mapping[str, Any], context: Path, total: int | None = None) -> list[Finding]:
    if total is not None and context.stat().st_size > total:
        raise ArchiveTooLarge("the packed context is too large")
    try:
        with small_files(context, MAX_FILE_BYTES, total) as content:
            read_inputs(venv["requirements"], venv["python"], content)
    except ArchiveTooLarge:
        raise
    except (ConfigError, ContextError) as problem:
        return [Finding(CODE, _AT, problem.message)]
    return []
