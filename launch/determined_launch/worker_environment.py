"""The environment of workers whose launcher shows its own environment on command lines.

Such a launcher is started with a minimal environment. Each container saves its full environment in a file that only
its owner can read, with a script that starts ``wrap_rank`` under this container's own Python. The wrapper combines the
saved environment with the variables that the launcher set.
"""

import json
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from determined_launch import environment

MARK = "BASH_FUNC_DET_CONTAINER"
"""Passes this container's run folder to its workers. horovod never exports a name with this prefix."""

# the variables that a launcher needs; none has a value of a task or a user
_BARE = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "TZ")
# set by shells themselves
_SHELLS = ("PWD", "OLDPWD", "SHLVL", "_", "SHELL", "MAIL", "TERM")
_SSH = "SSH_"
_OWN_PYTHON = "@container-python@"


def bare(environ: Mapping[str, str], run: Path) -> dict[str, str]:
    """Returns the minimal environment for the launcher."""
    kept = {name: environ[name] for name in _BARE if environ.get(name)}
    return {**kept, "PYTHONUNBUFFERED": "1", MARK: str(run)}


def keep(run: Path, environ: Mapping[str, str], pinned: Mapping[str, str], python: str) -> None:
    """Saves this container's environment.

    ``pinned`` overrides the launcher for values that differ between containers.
    """
    target = run / "info" / "worker-environment.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    value = {"environment": dict(environ), "pinned": dict(pinned), "folder": os.getcwd(), "layer": os.getpid()}
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        json.dump(value, file)
    path = ":".join(part for part in (_package_folder(), environ.get("PYTHONPATH", "")) if part)
    script = (
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(path)} exec {shlex.quote(python)} "
        f'-m determined_launch.wrap_rank --kept {shlex.quote(str(run))} "$@"\n'
    )
    (run / "info" / "worker").write_text(script, encoding="utf-8")


def command(rank_variables: str, words: Sequence[str], python: str) -> list[str]:
    """Returns the command that the launcher runs in each container.

    It uses ``exec``: horovod ends its shell's child only.

    ``python`` is this container's; each other container replaces it by its own.
    """
    words = [_OWN_PYTHON, *words[1:]] if list(words[:1]) == [python] else words
    return ["sh", "-c", f'exec sh "${MARK}/info/worker" "$@"', "worker", rank_variables, "--", *words]


def restore(run: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a worker and changes to its working directory.

    ``run`` is the container's run folder.
    """
    value = _read(run)
    ignored = {*_BARE, *_SHELLS, MARK}
    set_by_launcher = {
        name: text for name, text in environ.items() if name not in ignored and not name.startswith(_SSH)
    }
    os.chdir(value["folder"])
    _write_where(value["layer"])
    return {**value["environment"], **set_by_launcher, **value["pinned"]}


def with_own_python(words: Sequence[str], python: str) -> list[str]:
    """Returns ``words`` of :func:`command` with the Python of this container."""
    return [python, *words[1:]] if list(words[:1]) == [_OWN_PYTHON] else list(words)


def read_key(run: str) -> str:
    """Returns the allocation's key for a program that was started without the environment."""
    return str(_read(run)["environment"].get(environment.ALLOCATION_KEY, ""))


def _read(run: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(Path(run, "info", "worker-environment.json").read_text(encoding="utf-8"))
    return value


def _write_where(layer: int) -> None:
    """Redirects output to the layer's own output: the launcher would add its prefix before the rank's."""
    for number in (1, 2):
        try:
            theirs = os.open(f"/proc/{layer}/fd/{number}", os.O_WRONLY | os.O_APPEND)
        except OSError:
            continue  # a socket cannot be opened a second time
        kind = os.fstat(theirs).st_mode
        if stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):  # two openings of one file would write over each other
            os.dup2(theirs, number)
        os.close(theirs)


def _package_folder() -> str:
    return str(Path(__file__).resolve().parent.parent)
