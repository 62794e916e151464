"""The commands that install the packages: uv where installed, else pip; pipenv for a Pipfile."""

import importlib
import importlib.util
import os
import posixpath
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from determined.environments.inputs import Inputs
from determined.errors import ConfigError

_PIP_OPTIONS = ("--disable-pip-version-check", "--no-input", "--progress-bar", "off")


@dataclass(frozen=True)
class Step:
    """One command of an installation, with variables that it needs in addition."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def find(name: str, environ: Mapping[str, str]) -> list[str] | None:
    """Returns the command of an installer: a program of this Python or of PATH, or a module; None without it."""
    beside = Path(sys.executable).with_name(name)
    program = str(beside) if os.access(beside, os.X_OK) else shutil.which(name, path=environ.get("PATH"))
    if program is not None:
        return [program]
    return [sys.executable, "-m", name] if importlib.util.find_spec(name) is not None else None


def find_python(version: str | None, folder: Path, environ: Mapping[str, str]) -> str:
    """Returns the interpreter on which the environment is built.

    Parameters:
        version: the wanted one (``3.11``); None for the base of this Python.
        folder: uv downloads a Python into it where the machine has none of this version.

    Raises:
        ConfigError: there is none.
    """
    own = ".".join(map(str, sys.version_info[:3]))
    if version is None or own == version or own.startswith(f"{version}."):
        return str(getattr(sys, "_base_executable", "") or sys.executable)
    found = shutil.which(f"python{version}", path=environ.get("PATH"))
    if found is not None:
        return found
    uv = find("uv", environ)
    if uv is None:
        raise ConfigError(
            f"environment.venv.python: this machine has no python{version} in PATH; install it, or uv, which downloads "
            "Pythons (pip install uv)"
        )
    variables = {**environ, "UV_PYTHON_INSTALL_DIR": str(folder)}
    for argv in (["python", "find", version], ["python", "install", version], ["python", "find", version]):
        answer = subprocess.run([*uv, *argv], env=variables, capture_output=True, text=True, check=False)
        if answer.returncode == 0 and argv[1] == "find":
            return answer.stdout.strip()
        if answer.returncode != 0 and argv[1] == "install":
            reason = (answer.stderr.strip().splitlines() or ["without a word"])[-1]
            raise ConfigError(f"environment.venv.python: uv cannot install Python {version}: {reason}")
    raise ConfigError(f"environment.venv.python: uv finds no Python {version}")


def steps(
    inputs: Inputs, context: Path, venv: Path, environ: Mapping[str, str], base: str = sys.executable
) -> Sequence[Step]:
    """Returns the commands that install into ``venv``. They start in the folder of the context.

    Until ``venv`` exists, they use this Python's pip instead of the environment's.

    ``base``: the Python to which packages are added, whose pip adds them: uv does not see what it has already.

    Raises:
        ConfigError: the machine lacks an installer that these inputs need.
    """
    if inputs.kind == "packages":
        listed = inputs.files[inputs.main].decode().splitlines()
        return [Step((base, "-m", "pip", "--python", str(venv / "bin" / "python"), "install", *_PIP_OPTIONS, *listed))]
    if inputs.kind == "pipfile":
        return _pipenv(inputs, context, venv, environ)
    uv = find("uv", environ)
    python = str(venv / "bin" / "python")
    if inputs.kind == "uv_lock":
        if uv is None:
            raise ConfigError(
                f"environment.venv.requirements: {inputs.main} needs uv on this machine (pip install uv); "
                "or name a requirements.txt"
            )
        project = ["--project", posixpath.dirname(inputs.main) or "."]
        options = ["--frozen", "--inexact", "--no-install-project", "--compile-bytecode", "--python", python]
        return [Step((*uv, "sync", *project, *options), {"UV_PROJECT_ENVIRONMENT": str(venv)})]
    if uv is not None:
        return [Step((*uv, "pip", "install", "--python", python, "--compile-bytecode", "-r", inputs.main))]
    named = inputs.main if inputs.kind == "requirements" else str(_listed(inputs, venv))
    # Without one of its own (Debian without python3-venv) the environment is served by this Python's.
    pip = (
        (python, "-m", "pip") if (venv / "bin" / "pip").exists() else (sys.executable, "-m", "pip", "--python", python)
    )
    return [Step((*pip, "install", *_PIP_OPTIONS, "-r", named))]


def _pipenv(inputs: Inputs, context: Path, venv: Path, environ: Mapping[str, str]) -> Sequence[Step]:
    pipenv = find("pipenv", environ)
    if pipenv is None:
        raise ConfigError(
            f"environment.venv.requirements: {inputs.main} needs pipenv on this machine (pip install pipenv); "
            "or name a requirements.txt"
        )
    variables = {
        "VIRTUAL_ENV": str(venv),
        "PIPENV_VERBOSITY": "-1",
        "PIPENV_PIPFILE": str(context / inputs.main),
        "PIPENV_NOSPIN": "1",
        "PIPENV_YES": "1",
    }
    verb = "sync" if f"{inputs.main}.lock" in inputs.files else "install"
    return [Step((*pipenv, verb), variables)]


def _listed(inputs: Inputs, venv: Path) -> Path:
    """Writes the dependencies of a pyproject.toml as requirements, for pip, which does not read them from there."""
    # Python 3.10 has no reader of TOML; its pip has.
    name = "tomllib" if importlib.util.find_spec("tomllib") is not None else "pip._vendor.tomli"
    tomllib = importlib.import_module(name)
    try:
        found = tomllib.loads(inputs.files[inputs.main].decode())
    except (ValueError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{inputs.main} is not TOML: {problem}") from problem
    listed = found.get("project", {}).get("dependencies", [])
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise ConfigError(f"{inputs.main}: project.dependencies is not a list of requirements")
    path = venv.parent / "requirements.txt"
    path.write_text("".join(f"{each}\n" for each in listed))
    return path
