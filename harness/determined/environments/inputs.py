"""The files from which a Python environment is built, and the hash by which it is shared."""

import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from determined.errors import ConfigError

Kind = Literal["requirements", "pipfile", "uv_lock", "pyproject", "packages"]
Read = Callable[[str], "bytes | None"]
"""Returns the content of a file of the context by its path there, or None if there is no such file."""

FORMAT = 1
"""Part of every hash; a higher number makes all environments anew."""
_BY_NAME: Mapping[str, tuple[Kind, tuple[str, ...]]] = {
    "Pipfile": ("pipfile", ("Pipfile.lock",)),
    "uv.lock": ("uv_lock", ("pyproject.toml",)),
    "pyproject.toml": ("pyproject", ()),
}
"""Kind by the name of the file, and the files beside it that are used too."""
_REQUIRED_BESIDE = {"uv.lock": ("pyproject.toml",)}

PACKAGES = "environment.pip"
"""Name of the list of packages that a configuration itself has."""
MAX_PACKAGES, MAX_PACKAGE_LENGTH = 200, 500
MAX_NAME_LENGTH = 60
MAX_FILES = 50
"""Number of files of one environment."""
MAX_DEPTH = 10
"""Number of files on a path of files that include each other."""
MAX_FILE_BYTES = 4 << 20
MAX_BYTES = 16 << 20
"""Size of all files together."""

_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:\s+|=)?(\S+)")
_EDITABLE = re.compile(r"(?:-e\s*|--editable(?:\s+|=))(\S+)")
_LOCATION = re.compile(r"(?:^|\s)(?:-[fi]\s*|--(?:find-links|index-url|pypi-url|extra-index-url)(?:\s+|=))(\S+)")
"""Options of pip that say where packages are searched."""
_NAME = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?=$|[\[<>=!~;@, (])")
_TOML_KEY = re.compile(r"""\s*["']?([A-Za-z0-9][A-Za-z0-9._-]*)["']?\s*=""")
_TOML_SECTION = re.compile(r"\s*\[+([^\]#]+)\]")
_TOML_PATH = re.compile(r"""(?:^|[{,\s])(?:path|file)\s*=\s*["']([^"']*)["']""")
_QUOTED = re.compile(r"""["']([A-Za-z0-9][^"']*)["']""")


class PathRefused(ConfigError):
    """A requirement is a path. ``place``: its file, its line and the path."""

    def __init__(self, place: str) -> None:
        super().__init__(
            f"{place} is a path, and an environment is shared by other contexts: import the package from the context, "
            "or install it in startup-hook.sh"
        )
        self.place = place


@dataclass(frozen=True)
class Inputs:
    """Everything that an environment depends on, besides the machine.

    Example:
        >>> Inputs("requirements", "requirements.txt", {"requirements.txt": b"numpy"}).key("3.11")
        '14858b2c0866511a'
    """

    kind: Kind
    main: str
    """Path in the context of the file that the configuration names."""
    files: Mapping[str, bytes]
    """All files by their paths in the context."""
    python: str | None = None
    """Wanted version (``3.11``); None for the Python of the cluster's tasks."""

    def key(self, *others: str) -> str:
        """Returns the hash of the inputs and of ``others``, which name what the machine adds; 16 hex digits."""
        digest = hashlib.sha256()
        for text in (str(FORMAT), self.kind, self.main, self.python or "", *others):
            digest.update(hashlib.sha256(text.encode()).digest())
        for name in sorted(self.files):
            digest.update(hashlib.sha256(name.encode()).digest())
            digest.update(hashlib.sha256(self.files[name]).digest())
        return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Requirement:
    """One wanted package and where it is written. ``name`` is lower case with hyphens."""

    name: str
    text: str
    file: str
    line: int

    def __str__(self) -> str:
        return f'{self.file}:{self.line}: "{self.text}"'


def files_of(context: Path) -> Read:
    """Returns what ``read_inputs`` reads with, for a context that is unpacked in a folder."""

    def content(name: str) -> "bytes | None":
        try:
            with (context / name).open("rb") as file:
                return file.read(MAX_FILE_BYTES + 1)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    return content


def wanted_inputs(wanted: Mapping[str, Any], read: Read) -> Inputs:
    """Returns the inputs that a configuration describes: ``{requirements, python}`` of ``environment.venv``, or
    ``{pip}`` with the list of ``environment.pip``. Raises ConfigError like ``read_inputs``."""
    if "pip" in wanted:
        return read_packages(wanted["pip"])
    return read_inputs(wanted["requirements"], wanted.get("python"), read)


def name_of(wanted: Mapping[str, Any]) -> str:
    """Returns what an environment is made from, as people know it.

    Example:
        >>> name_of({"requirements": "requirements.txt"}), name_of({"pip": ["einops", "numpy<3"]})
        ('requirements.txt', 'einops, numpy<3')
    """
    text = ", ".join(wanted["pip"]) if "pip" in wanted else str(wanted["requirements"])
    return text if len(text) <= MAX_NAME_LENGTH else f"{text[: MAX_NAME_LENGTH - 1]}…"


def read_packages(packages: Sequence[str]) -> Inputs:
    """Returns the inputs of packages that are added to the Python of a task.

    Raises:
        ConfigError: one of them is no requirement with a name, or is a path.

    Example:
        >>> read_packages(["einops==0.8"]).main
        'environment.pip'
    """
    if len(packages) > MAX_PACKAGES:
        raise ConfigError(f"{PACKAGES} has {len(packages)} packages; at most {MAX_PACKAGES} are allowed")
    for number, text in enumerate(packages, 1):
        if len(text) > MAX_PACKAGE_LENGTH or not text.isprintable() or _NAME.match(text) is None:
            raise ConfigError(f'"{text[:80]}" is not a package, such as "einops" or "einops==0.8"')
        _refuse_path(PACKAGES, number, text)
    return Inputs("packages", PACKAGES, {PACKAGES: "\n".join(packages).encode()})


def read_inputs(main: str, python: str | None, read: Read, *, folder: str = "the context") -> Inputs:
    """Reads the file that ``environment.venv.requirements`` names and those that it includes.

    Parameters:
        main: its path in the context. The name selects how it is read: ``Pipfile``, ``uv.lock``, ``pyproject.toml``,
            and every other file as requirements of pip.
        python: the wanted version, or None.
        read: returns a file of the context.
        folder: what messages call the place of the files.

    Raises:
        PathRefused: a requirement is a path of the context.
        ConfigError: a file is missing, or the files are too large or too many.
    """
    kind, beside = _BY_NAME.get(posixpath.basename(main), ("requirements", ()))
    content = read(main)
    if content is None:
        raise ConfigError(f"{main} is not in {folder}")
    files: dict[str, bytes] = {}
    _add(files, main, content)
    if kind == "requirements":
        _include_all(main, files, read, folder)
    elif kind != "uv_lock":
        _refuse_table_paths(main, content)
    for name in beside:
        path = posixpath.join(posixpath.dirname(main), name)
        found = read(path)
        if found is not None:
            _add(files, path, found)
        elif name in _REQUIRED_BESIDE.get(posixpath.basename(main), ()):
            raise ConfigError(f"{main} needs {path}, which is not in {folder}")
    return Inputs(kind, main, files, python)


def _include_all(main: str, files: dict[str, bytes], read: Read, folder: str) -> None:
    """Adds the files that ``main`` includes, and those that they include."""
    depths = {main: 1}
    waiting = [main]
    while waiting:
        name = waiting.pop()
        for line, text in _logical_lines(files[name]):
            _refuse_path(name, line, text)
            include = _INCLUDE.match(text)
            if include is None:
                continue
            target = include[1]
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if "://" in target or path.startswith(("..", "/")):
                raise ConfigError(f"{name}:{line}: {target} is not in {folder}; copy it there")
            if path in files:
                continue
            if depths[name] == MAX_DEPTH:
                raise ConfigError(f"{name}:{line}: more than {MAX_DEPTH} files include each other; put them into one")
            found = read(path)
            if found is None:
                raise ConfigError(f"{name}:{line}: {path} is not in {folder}")
            _add(files, path, found)
            depths[path] = depths[name] + 1
            waiting.append(path)


def _add(files: dict[str, bytes], path: str, content: bytes) -> None:
    """Raises ConfigError if the files of an environment become too many or too large."""
    files[path] = content
    if len(files) > MAX_FILES:
        raise ConfigError(f"{path} is the {len(files)}th file of one environment; {MAX_FILES} are allowed")
    if len(content) > MAX_FILE_BYTES or sum(map(len, files.values())) > MAX_BYTES:
        raise ConfigError(
            f"{path}: the files of an environment have at most {MAX_FILE_BYTES >> 20} MiB each and "
            f"{MAX_BYTES >> 20} MiB together"
        )


def _refuse_path(name: str, line: int, text: str) -> None:
    """Raises ConfigError for a package, or a place of packages, in the context: an environment is shared by other
    contexts."""
    editable = _EDITABLE.match(text)
    if editable:
        targets = [editable[1]]
    elif text.startswith("-"):
        targets = _LOCATION.findall(text)
    else:
        targets = [text.partition("@")[2].strip() or text.split()[0]]
    for target in targets:
        is_remote = "://" in target and not target.startswith("file:")
        is_named = not (editable or text.startswith("-"))
        looks_like_path = "/" in target or target.startswith((".", "file:"))
        is_path = looks_like_path or target.endswith((".whl", ".tar.gz", ".zip")) or not is_named
        if is_path and not is_remote:
            raise PathRefused(f"{name}:{line}: {target}")


def _refuse_table_paths(name: str, content: bytes) -> None:
    """Raises ConfigError for a package of a TOML file whose source is a path."""
    section = ""
    for number, text in enumerate(content.decode(errors="replace").splitlines(), 1):
        header = _TOML_SECTION.match(text)
        section = header[1] if header else section
        source = _TOML_PATH.search(text)
        is_source = not name.endswith("pyproject.toml") or section.startswith("tool.uv.sources")
        if source is not None and is_source and "://" not in source[1]:
            raise PathRefused(f"{name}:{number}: {source[1]}")


def requirements(inputs: Inputs) -> list[Requirement]:
    """Returns the packages that the files name, with their places, in order.

    Example:
        >>> [str(each) for each in requirements(Inputs("requirements", "r.txt", {"r.txt": b"# a\\nNumpy>=2  # b"}))]
        ['r.txt:2: "Numpy>=2"']
    """
    parsed = []
    for file, content in inputs.files.items():
        if inputs.kind in ("requirements", "packages"):
            lines = _logical_lines(content)
        else:
            lines = _keys(content) if inputs.kind == "pipfile" else _strings(content)
        for line, text in lines:
            name = _NAME.match(text)
            if name is not None:
                parsed.append(Requirement(canonical(name[1]), text, file, line))
    return parsed


def installed_in(folders: Iterable[Path]) -> list[str]:
    """Returns names and versions of the packages in folders of packages, as their metadata is named there."""
    ends = (".dist-info", ".egg-info", ".egg-link")
    return sorted(entry for folder in folders for entry in os.listdir(folder) if entry.endswith(ends))


def canonical(name: str) -> str:
    """Returns the name of a package in the form for comparison.

    Example:
        >>> canonical("Ruamel.Yaml")
        'ruamel-yaml'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _logical_lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields number and text of each line that is neither blank nor a comment; continued lines are joined."""
    start, held = 0, ""
    for number, text in enumerate(content.decode(errors="replace").splitlines(), 1):
        start = start or number
        if text.endswith("\\"):
            held += text[:-1] + " "
            continue
        whole = re.sub(r"(^|\s)#.*$", "", held + text).strip()
        if whole:
            yield start, whole
        start, held = 0, ""


def _keys(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields the keys of a TOML file with their lines: enough to find a package of a Pipfile."""
    for number, text in enumerate(content.decode(errors="replace").splitlines(), 1):
        key = _TOML_KEY.match(text)
        if key is not None:
            yield number, key[1]


def _strings(content: bytes) -> Iterator[tuple[int, str]]:
    """Yields the quoted members of the lists of a TOML file with their lines: among them the dependencies."""
    for number, text in enumerate(content.decode(errors="replace").splitlines(), 1):
        is_value = _TOML_KEY.match(text) is not None and "[" not in text
        for quoted in () if is_value else _QUOTED.finditer(text):
            yield number, quoted[1]
