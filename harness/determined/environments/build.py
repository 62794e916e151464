"""Builds a Python environment in a folder; complete or not there, however often it is interrupted."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from determined.environments import installers
from determined.environments.failures import explain
from determined.environments.inputs import Inputs, requirements
from determined.errors import DeterminedError
from determined_launch.regular_files import read_regular

VENV, RESULT, LOCK = "venv", "result.json", "lock"
"""The environment in its folder, the result of the newest build, and the lock of a build that runs."""
BASE_FILE = "zzz_task_base.pth"
"""Python reads this file last, so that packages added to a Python precede its own."""
_LAYER = """
import pathlib, site, sys, venv
folder = pathlib.Path(sys.argv[1])
venv.create(folder, symlinks=True)
lines = [f"import site; site.addsitedir({each!r})\\n" for each in site.getsitepackages()]
next(folder.glob("lib/python3*/site-packages")).joinpath(sys.argv[2]).write_text("".join(lines))
"""
"""Runs under the Python to which packages are added."""
_KEPT_LINES = 2000
_MAX_RESULT_BYTES = 1 << 16


class BuildFailed(DeterminedError):
    """The environment cannot be built."""


@dataclass(frozen=True)
class Result:
    """The result of a build, also in the file ``result.json`` of its folder."""

    is_complete: bool
    failure: str = ""
    """Why it failed, in a sentence."""
    seconds: float = 0.0
    packages: int = 0
    bytes: int = 0
    """Size of the files on the disk."""


def build(
    inputs: Inputs,
    context: Path,
    folder: Path,
    environ: Mapping[str, str] | None = None,
    say: Callable[[str], None] | None = None,
    base: str = sys.executable,
) -> Result:
    """Builds the environment ``folder/venv`` unless it is complete. A second build of a folder waits for the first.

    Parameters:
        inputs: what is installed; see ``read_inputs``.
        context: folder in which the files of ``inputs`` are.
        folder: is created. An incomplete environment in it is removed first.
        environ: variables of the installers; default: this process's own.
        say: gets each line of the output; default: ``print``.
        base: the Python whose packages a list of ``environment.pip`` is added to; default: this one.

    Raises:
        BuildFailed: with a sentence that names the requirement. The folder has the same sentence in its result.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> inputs = Inputs("requirements", "r.txt", {"r.txt": b""})
        >>> (folder / "r.txt").write_bytes(b"")
        0
        >>> build(inputs, folder, folder / "environment", say=lambda line: None).is_complete
        True
    """
    variables = dict(os.environ if environ is None else environ)
    write = say or _print
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / LOCK, write):
        known = read_result(folder)
        if known is not None and known.is_complete:
            write(f"the environment {folder.name} is complete already")
            return known
        (folder / RESULT).unlink(missing_ok=True)
        shutil.rmtree(folder / VENV, ignore_errors=True)
        start = time.monotonic()
        try:
            _make(inputs, context, folder, variables, write, base)
            result = _measured(folder / VENV, time.monotonic() - start)
        except (DeterminedError, OSError) as problem:
            shutil.rmtree(folder / VENV, ignore_errors=True)
            failure = str(problem)
            _store(folder, Result(False, failure))
            raise BuildFailed(failure) from problem
        _store(folder, result)
        size = f"{result.bytes / 1e6:.0f} MB"
        write(f"built the environment {folder.name}: {result.packages} packages, {size}, {result.seconds:.1f} s")
        return result


def read_result(folder: Path) -> Result | None:
    """Returns the result of the newest build in ``folder``; None if there is none, or none that can be read."""
    try:
        stored: dict[str, Any] = json.loads(read_regular(folder / RESULT, _MAX_RESULT_BYTES))
        return Result(
            bool(stored["is_complete"]),
            str(stored["failure"]),
            float(stored["seconds"]),
            int(stored["packages"]),
            int(stored["bytes"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _make(
    inputs: Inputs,
    context: Path,
    folder: Path,
    environ: Mapping[str, str],
    write: Callable[[str], None],
    base: str,
) -> None:
    venv = folder / VENV
    installers.steps(inputs, context, venv, environ, base)  # raises for a missing installer before anything is made
    if inputs.kind == "packages":
        _make_layer(venv, context, environ, write, base)
    else:
        _make_venv(inputs, venv, context, environ, write)
    for step in installers.steps(inputs, context, venv, environ, base):
        write(f"$ {' '.join(step.argv)}")
        code, lines = _run(step.argv, context, {**environ, **step.environment}, write)
        if code != 0:
            raise BuildFailed(explain(lines, requirements(inputs)))


def _make_layer(venv: Path, context: Path, environ: Mapping[str, str], write: Callable[[str], None], base: str) -> None:
    """Creates an environment that sees the packages of ``base``, so that only what is missing is installed."""
    code, lines = _run([base, "-c", _LAYER, str(venv), BASE_FILE], context, environ, write)
    if code != 0:
        raise BuildFailed(f"{base} cannot make an environment: {explain(lines, [])}")


def _make_venv(
    inputs: Inputs, venv: Path, context: Path, environ: Mapping[str, str], write: Callable[[str], None]
) -> None:
    interpreter = installers.find_python(inputs.python, venv.parent / "python", environ)
    code, lines = _run([interpreter, "-m", "venv", str(venv)], context, environ, write)
    if code != 0:
        # Debian has the part that installs pip in a package of its own.
        shutil.rmtree(venv, ignore_errors=True)
        code, lines = _run([interpreter, "-m", "venv", "--without-pip", str(venv)], context, environ, write)
    if code != 0:
        raise BuildFailed(f"{interpreter} cannot make an environment: {explain(lines, [])}")


def _run(
    argv: "tuple[str, ...] | list[str]", cwd: Path, environ: Mapping[str, str], write: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Returns the exit code and the last lines of the output."""
    # The library of the task is on this path; an installer must see only its own.
    own = {name: value for name, value in environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    lines: list[str] = []
    with subprocess.Popen(
        argv, cwd=cwd, env=own, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip()
            write(line)
            lines.append(line)
            del lines[:-_KEPT_LINES]
    return process.returncode, lines


def _measured(venv: Path, seconds: float) -> Result:
    size = sum(os.lstat(os.path.join(base, name)).st_blocks * 512 for base, _, files in os.walk(venv) for name in files)
    return Result(True, "", seconds, len(list(venv.glob("lib/python*/site-packages/*.dist-info"))), size)


def _store(folder: Path, result: Result) -> None:
    draft = folder / f".{RESULT}"
    draft.write_text(json.dumps(asdict(result)))
    draft.replace(folder / RESULT)


@contextmanager
def _locked(path: Path, write: Callable[[str], None]) -> Iterator[None]:
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            write("another build of this environment runs; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _print(line: str) -> None:
    print(line, file=sys.stdout, flush=True)
