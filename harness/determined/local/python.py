"""Finds the Python of a local run and its installed packages."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from determined.config.environment import PythonEnvironment
from determined.environments import VENV as BUILT
from determined.environments import build, read_inputs, read_packages
from determined.environments.inputs import files_of, installed_in
from determined.errors import ConfigError

VENV = "venv:"
OLDEST = (3, 10)


def choose(named: str | None, image: str | None, environ: Mapping[str, str]) -> str:
    """Returns ``--python``, else a ``venv:`` image, else ``$VIRTUAL_ENV``, else this Python."""
    if named:
        found = shutil.which(named)
        if found is None:
            raise ConfigError(f"--python {named}: no such program")
        return os.path.abspath(found)
    for folder, origin in ((image, "environment.image"), (environ.get("VIRTUAL_ENV"), "$VIRTUAL_ENV")):
        if not folder or (folder is image and not folder.startswith(VENV)):
            continue
        place = Path(folder.removeprefix(VENV)).expanduser()
        program = place / "bin" / "python"
        if os.access(program, os.X_OK):
            return os.path.abspath(program)
        if folder is image:
            raise ConfigError(f"{origin}: {place} is not a Python environment")
    return sys.executable


def make(wanted: PythonEnvironment, context: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> str:
    """Returns the Python of the environment that ``environment.venv`` describes. It is built once, in the user's cache.

    Raises ConfigError if the context lacks its files, BuildFailed if it cannot be built.
    """
    inputs = read_inputs(wanted.requirements, wanted.python, files_of(context))
    folder = _cache(environ) / inputs.key(sys.version, sys.base_prefix)
    say(f"environment: {inputs.main}, in {folder}")
    build(inputs, context, folder, environ, say)
    return str(folder / BUILT / "bin" / "python")


def add_packages(
    packages: Sequence[str], base: str, context: Path, environ: Mapping[str, str], say: Callable[[str], None]
) -> str:
    """Returns a Python that has the packages of ``environment.pip`` beside those of ``base``. It is built once.

    Raises BuildFailed if a package cannot be installed.
    """
    inputs = read_packages(packages)
    code = "import site, sys; print(sys.version.replace(chr(10), ' '), *site.getsitepackages(), sep=chr(10))"
    shown = subprocess.run([base, "-c", code], capture_output=True, text=True, timeout=60, check=False).stdout
    version, *sites = shown.splitlines() or [""]
    folder = _cache(environ) / inputs.key(base, version, *installed_in(filter(Path.is_dir, map(Path, sites))))
    say(f"environment: {', '.join(packages)}, in {folder}")
    build(inputs, context, folder, environ, say, base)
    return str(folder / BUILT / "bin" / "python")


def _cache(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "detent" / "environments"


def check_version(program: str) -> None:
    """Raises ConfigError if the interpreter is older than tasks need. An agent refuses it with the same text."""
    if program == sys.executable:
        return
    code = "import sys; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([program, "-c", code], capture_output=True, text=True, timeout=60, check=True).stdout
        version = tuple(map(int, answer.split()))
    except (OSError, ValueError, subprocess.SubprocessError):
        return  # starting the trial reports what is wrong with the interpreter
    if version < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigError(f"{program} is version {'.'.join(map(str, version))}; tasks need {oldest} or newer")


def link_harness(folder: Path) -> Path:
    """Creates a folder with our in-task packages only, so that none of our dependencies is visible to the trial."""
    import determined
    import determined_launch

    folder.mkdir()
    for package in (determined, determined_launch):
        assert package.__file__ is not None
        source = Path(package.__file__).parent
        (folder / source.name).symlink_to(source, target_is_directory=True)
    return folder
