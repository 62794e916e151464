"""The virtual environment of one attempt: initially empty, based on a task base, deleted with the run folder.

It is written file by file because ``python -m venv`` with pip takes seconds and the base's pip works as well. All
attempts on a base share the folder of its programs: some forty files would be most of what an attempt writes.
"""

import hashlib
import os
import re
import shlex
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path

from determined.environments.build import BASE_FILE
from determined_agent.environments.task_base import TaskBase
from determined_launch import environment as names

FOLDER = "venv"
"""Folder of the environment in the task's run folder."""

_OWN_PROGRAM = re.compile(r"(pip|python)[\d.]*")
"""Programs that an attempt has of its own."""
_PIP = b"""import importlib.util, sys
if importlib.util.find_spec("pip") is None:
    sys.exit("pip: the environment that this task builds on has no pip; add it there: python -m ensurepip")
from pip._internal.cli.main import main
sys.exit(main())
"""


def make_attempt_venv(folder: Path, seen_as: Path, base: TaskBase) -> None:
    """Creates the environment in ``folder``, which the task sees at ``seen_as``. Blocking, a few milliseconds."""
    shutil.rmtree(folder, ignore_errors=True)  # a killed agent may have left an incomplete one
    number = f"{base.version[0]}.{base.version[1]}"
    site = folder / "lib" / f"python{number}" / "site-packages"
    programs = folder / "bin"
    site.mkdir(parents=True)
    programs.mkdir()
    (folder / "lib64").symlink_to("lib")
    (folder / "pyvenv.cfg").write_text(
        f"home = {base.interpreter.parent}\ninclude-system-site-packages = false\nversion = {number}\n"
    )
    # addsitedir, unlike a bare path, reads the base's own .pth files too: editable installations, for example.
    lines = [f"import site; site.addsitedir({str(path)!r})" for path in base.site_folders]
    (site / BASE_FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (programs / "python").symlink_to(base.interpreter)
    for name in ("python3", f"python{number}"):
        _link(programs / "python", programs / name)
    python = shlex.quote(str(seen_as / "bin" / "python"))
    _write_scripts(programs, python, {"pip": _PIP})
    for name in ("pip3", f"pip{number}"):
        _link(programs / "pip", programs / name)


def keep_programs(data: Path, base: TaskBase) -> Path:
    """Returns the folder ``DATA/task-programs/KEY`` with the base's Python programs; creates it once. Blocking.

    They run under the Python of the attempt that calls them.
    """
    scripts = {name: body for name, body in base.scripts.items() if not _OWN_PROGRAM.fullmatch(name)}
    digest = hashlib.sha256()
    for name, body in sorted(scripts.items()):
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    folder = data / "task-programs" / digest.hexdigest()[:16]
    if not folder.exists():
        partial = folder.with_name(f".{folder.name}.{os.getpid()}-{threading.get_ident()}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _write_scripts(partial, f'"${{{names.TASK_PYTHON}:-python3}}"', scripts)
        partial.chmod(0o755)  # tasks of other users read it
        try:
            partial.rename(folder)
        except OSError:  # another container created it first
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def use_attempt_venv(environment: dict[str, str], seen_as: Path, base: TaskBase, programs: Path) -> Path:
    """Activates the attempt's environment in ``environment``; returns its Python as the task sees it.

    ``programs`` is the folder of ``keep_programs`` as the task sees it.
    """
    python = seen_as / "bin" / "python"
    rest = environment.get("PATH") or os.defpath
    # Programs of the base that are not written in Python are run from where they are.
    folders = [python.parent, programs, base.added_programs, base.scripts_folder]
    environment["PATH"] = os.pathsep.join([*(str(each) for each in folders if each is not None), rest])
    environment["VIRTUAL_ENV"] = str(seen_as)
    environment["PIP_USER"] = "0"  # a pip.conf with another target would install outside of the attempt
    environment.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    environment.pop("PYTHONHOME", None)
    environment["DET_PYTHON_EXECUTABLE"] = environment["DET_TASK_PYTHON"] = str(python)
    return python


def _link(path: Path, other: Path) -> None:
    """Gives a file, or a link, another name. A copy would take an inode, whose number is limited."""
    try:
        os.link(path, other, follow_symlinks=False)
    except OSError:  # a file system without hard links
        shutil.copy2(path, other, follow_symlinks=False)


def _write_scripts(folder: Path, python: str, scripts: Mapping[str, bytes]) -> None:
    """Writes scripts that run under ``python``, a word of the shell."""
    # Valid as shell and as Python: a first line with the path of the Python is limited and may hold no space.
    head = f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n".encode()
    for name, body in scripts.items():
        path = folder / name
        path.write_bytes(head + body)
        path.chmod(0o755)
