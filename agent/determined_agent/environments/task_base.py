"""The task base: the read-only packages and programs under the virtual environment of each attempt.

A Python environment that a user chose is its own base. The product's own environment is not used directly: a base of
links to it is created under the data folder, without the product and the packages that only the product needs.
"""

import csv
import hashlib
import os
import re
import shlex
import shutil
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from determined.environments.inputs import canonical, installed_in
from determined_agent.environments.task_python import PythonFacts
from determined_agent.task_process.namespaces import Mount

PRODUCT = "detent-cluster"
TASK_EXTRAS = ("pytorch", "deepspeed", "horovod", "tasks", "hydra", "rlhf", "keras", "optuna", "s3", "gcs", "azure")
"""Optional dependency groups of the product for tasks."""
INSTALLERS = ("pip", "setuptools", "wheel")
MAX_SCRIPT_BYTES = 1 << 20

_NAME = re.compile(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


@dataclass(frozen=True)
class TaskBase:
    """The base of an attempt's environment."""

    interpreter: Path
    version: tuple[int, int]
    site_folders: tuple[Path, ...]
    scripts_folder: Path
    scripts: Mapping[str, bytes]
    """Bodies of the base's Python scripts without the first line; an attempt runs them under its own Python."""
    protected: tuple[Path, ...]
    """Folders that a task sees read-only if it can have mounts of its own."""
    added_programs: Path | None = None
    """Folder of the programs of packages that were added to it."""

    def with_added(self, layer: "TaskBase") -> "TaskBase":
        """Returns this base with the packages of ``layer`` before its own."""
        return replace(
            self,
            site_folders=(*layer.site_folders, *self.site_folders),
            scripts={**self.scripts, **layer.scripts},
            protected=(*self.protected, *layer.protected),
            added_programs=layer.scripts_folder,
        )


def base_seen_at(place: Path, base: TaskBase, data: Path) -> tuple[TaskBase, Mount | None]:
    """Returns the base and its mount, for a task that cannot pass the data folder; None if the base is elsewhere."""
    kept = base.scripts_folder.parent
    if not kept.is_relative_to(data):
        return base, None
    sites = tuple(place / site.relative_to(kept) if site.is_relative_to(kept) else site for site in base.site_folders)
    return replace(base, site_folders=sites, scripts_folder=place / base.scripts_folder.name), Mount(
        str(kept), str(place), True
    )


class TaskBases:
    """Returns the base of a Python; recomputed only after the Python was probed again. Blocking."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._found: dict[Path, tuple[PythonFacts, TaskBase]] = {}
        self._lock = threading.Lock()

    def find(self, facts: PythonFacts) -> TaskBase:
        """Returns the base for tasks of this Python; it is in the data folder if the Python is the product's own."""
        with self._lock:
            known = self._found.get(facts.prefix)
            if known is None or known[0] is not facts or not known[1].scripts_folder.is_dir():
                known = self._found[facts.prefix] = (facts, _find_base(facts, self._data))
            return known[1]


def base_version(facts: PythonFacts) -> tuple[str, ...]:
    """Returns words that differ when the packages of a Python differ. Blocking, a few calls of the system."""
    return (str(facts.prefix), *installed_in(facts.site_folders))


def built_base(facts: PythonFacts) -> TaskBase:
    """Returns the base of an environment that a user's task has built. Blocking. Follows no links: the user may have
    placed some to files that only the agent may read."""
    scripts = _python_scripts(facts.scripts, follow_links=False)
    return TaskBase(
        facts.interpreter, facts.version, facts.site_folders, facts.scripts, scripts, protected=facts.site_folders
    )


def _find_base(facts: PythonFacts, data: Path) -> TaskBase:
    folders, scripts, protected = facts.site_folders, facts.scripts, facts.site_folders
    if facts.prefix.resolve() == Path(sys.prefix).resolve() and facts.version == sys.version_info[:2]:
        made = _keep_product_base(data, facts.site_folders)
        # The targets of the links are protected too.
        folders, scripts, protected = (made / "site-packages",), made / "bin", (made, *facts.site_folders)
    return TaskBase(facts.interpreter, facts.version, folders, scripts, _python_scripts(scripts), protected)


def packages_for_tasks(installed: Mapping[str, metadata.Distribution]) -> set[str]:
    """Returns the names of the packages of the product's environment that tasks see.

    These are the packages of the product's groups for tasks, the packages needed to install more, and those that the
    user installed additionally, each with its requirements.
    """
    product = installed.get(PRODUCT)
    meant_for_tasks = [*INSTALLERS, *(_required(product, TASK_EXTRAS) if product else ())]
    owned = _closure([PRODUCT, *(_required(product, None) if product else ())], installed)
    return _closure([*meant_for_tasks, *(installed.keys() - owned)], installed) - {PRODUCT}


def _closure(names: Iterable[str], installed: Mapping[str, metadata.Distribution]) -> set[str]:
    members: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name in installed and name not in members:
            members.add(name)
            if name != PRODUCT:
                left.extend(_required(installed[name], ()))
    return members


def _required(distribution: metadata.Distribution, extras: Iterable[str] | None) -> Iterator[str]:
    """Yields the required names: without an extra if ``extras`` is empty, of one of ``extras``, or of any for None.

    Other markers are not evaluated: a requirement of another system is not installed anyway.
    """
    wanted = None if extras is None else set(extras)
    for line in distribution.requires or ():
        name = _NAME.match(line)
        asked = set(_EXTRA.findall(line))
        is_wanted = wanted is None or (bool(asked & wanted) if wanted else not asked)
        if name is not None and is_wanted:
            yield canonical(name[1])


def _keep_product_base(data: Path, site_folders: Collection[Path]) -> Path:
    """Returns the folder ``DATA/task-base/KEY`` of links to the product's environment.

    The folder is created once per set of packages.
    """
    installed: dict[str, metadata.Distribution] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if name is not None and _root(distribution) in site_folders:
            installed.setdefault(canonical(name), distribution)
    chosen = [installed[name] for name in sorted(packages_for_tasks(installed))]
    links: dict[str, Path] = {}
    for distribution in chosen:
        links |= _links(distribution)
    named = "\n".join(f"{place} {target}" for place, target in sorted(links.items()))
    versions = "\n".join(f"{one.metadata['Name']} {one.version}" for one in chosen)
    key = hashlib.sha256(f"{sys.prefix}\n{versions}\n{named}".encode()).hexdigest()[:16]
    folder = data / "task-base" / key
    if not folder.exists():
        _make(folder, links)
    # Tasks of other users read it; earlier versions kept it closed.
    for base, _folders, _names in os.walk(folder):
        os.chmod(base, 0o755)
    return folder


def _make(folder: Path, links: Mapping[str, Path]) -> None:
    plan = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.rmtree(plan, ignore_errors=True)
    for part in ("site-packages", "bin"):
        (plan / part).mkdir(parents=True)
    for place, target in links.items():
        (plan / place).parent.mkdir(parents=True, exist_ok=True)
        (plan / place).symlink_to(target)
    client = Path(sys.executable).with_name("det")
    if client.exists():
        # The client needs the product's packages, which tasks do not see.
        (plan / "bin" / "det").write_text(f'#!/bin/sh\nexec env -u PYTHONPATH {shlex.quote(str(client))} "$@"\n')
        (plan / "bin" / "det").chmod(0o755)
    try:
        plan.rename(folder)
    except OSError:  # another agent on the same data folder created it first
        shutil.rmtree(plan, ignore_errors=True)


def _links(distribution: metadata.Distribution) -> dict[str, Path]:
    """Returns place in the base → link target, for the top-level entries and programs of one distribution."""
    links: dict[str, Path] = {}
    root = _root(distribution)
    for file in _files(distribution):
        parts = file.split("/")
        if parts[0] not in ("..", "", "__pycache__"):
            links[f"site-packages/{parts[0]}"] = root / parts[0]
        elif parts[0] == "__pycache__" and len(parts) == 2:
            links[f"site-packages/__pycache__/{parts[1]}"] = root / file
        elif parts[0] == ".." and parts[-2:-1] == ["bin"]:
            links[f"bin/{parts[-1]}"] = Path(os.path.normpath(root / file))
    return {place: target for place, target in links.items() if target.exists()}


def _files(distribution: metadata.Distribution) -> Iterable[str]:
    """Returns a path for each top-level entry and program.

    The library's ``files`` is slow for the many files of torch.
    """
    record = distribution.read_text("RECORD")
    paths = [str(path) for path in distribution.files or ()] if record is None else []
    paths += [row[0] for row in csv.reader((record or "").splitlines()) if row]
    return {path if path.startswith(("..", "__pycache__")) else path.partition("/")[0] for path in paths}


def _root(distribution: metadata.Distribution) -> Path:
    return Path(str(distribution.locate_file("")))


def _python_scripts(folder: Path, *, follow_links: bool = True) -> dict[str, bytes]:
    """Returns name → body of each Python program in ``folder``, without the lines that name its Python."""
    scripts = {}
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return {}
    for entry in entries:
        try:
            if (
                entry.is_file(follow_symlinks=follow_links)
                and entry.stat().st_size <= MAX_SCRIPT_BYTES
                and os.access(entry.path, os.X_OK)
            ):
                body = _script_body(Path(entry.path))
                if body is not None:
                    scripts[entry.name] = body
        except OSError:
            continue
    return scripts


def _script_body(path: Path) -> bytes | None:
    with path.open("rb") as file:
        first = file.readline(512)
        if not first.startswith(b"#!"):
            return None
        if b"python" in first:
            return file.read()
        second = file.readline(4096)
        # Installers write this if the path of the Python is too long for the first line or holds a space.
        if second.startswith(b"'''exec'") and b"python" in second:
            file.readline(16)
            return file.read()
    return None
