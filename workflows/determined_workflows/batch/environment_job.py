"""The virtual environment of a project: built by a job of its own, once per content of its list of packages."""

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import determined
import determined_launch
from determined import environments
from determined.environments import BuildFailed, Inputs
from determined.environments.inputs import PathRefused, files_of
from determined.errors import ConfigError
from determined_workflows.batch import disk_use, slurm_client, status
from determined_workflows.batch.job_script import setup_lines
from determined_workflows.batch.sbatch_options import Option
from determined_workflows.site_profile import SiteProfile

LINK, FOLDER = "virtual_env", ".virtual_envs"
LISTS = ("Pipfile", "requirements.txt")
"""Files that list packages; the first one that exists counts."""
MAX_BUILD_SECONDS = 3600
CPUS, MEMORY = 2, "4G"
POLL_SECONDS, QUEUE_SECONDS = 0.3, 5.0
MAX_SHOWN_LINES = 10
_TASK = Path(__file__).parent / "task"
_OF_JOB = ("partition", "account", "qos", "reservation", "constraint")
"""Options of the job that its build needs too."""


@dataclass(frozen=True)
class Build:
    """An environment that is not there yet."""

    root: Path
    inputs: Inputs
    folder: Path


def find(root: Path, say: Callable[[str], None]) -> Path | Build | None:
    """Returns the environment of a project, what has to be built, or None for a project without a list of packages.

    Raises ConfigError if the list cannot be used.
    """
    link = root / LINK
    if is_own(link):
        say(f"{link} is your own environment; it is used as it is")
        return link
    name = next((each for each in LISTS if (root / each).is_file()), None)
    if name is None:
        return None
    inputs = _read_list(root, name)
    folder = root / FOLDER / inputs.key(".".join(map(str, sys.version_info[:3])), sys.base_prefix)
    if _is_complete(folder):
        say("Virtual environment already exists")
        return _linked(root, folder)
    return Build(root, inputs, folder)


def _is_complete(folder: Path) -> bool:
    result = environments.read_result(folder)
    return result is not None and result.is_complete and (folder / environments.VENV).is_dir()


def _forget_useless(folder: Path) -> None:
    """Removes the result of a build that has failed, or whose environment was removed since.

    That of another submission, which has built it a moment ago, stays: its job uses the environment.
    """
    if not _is_complete(folder):
        (folder / environments.RESULT).unlink(missing_ok=True)


def _read_list(root: Path, name: str) -> Inputs:
    try:
        return environments.read_inputs(name, None, files_of(root), folder=str(root))
    except PathRefused as error:
        raise ConfigError(
            f"{error.place} is a path, and an environment is kept by its list of packages: a later change of that "
            "folder would not reach it. Remove the line: a program imports the modules beside it, and PYTHONPATH "
            "below `environment:` of SITE.yaml names other folders. Or make "
            f"{root / LINK} yourself: it is used as it is"
        ) from None


def is_own(link: Path) -> bool:
    """Returns True if the environment at ``virtual_env`` is the user's own, which is used as it is."""
    # Of this project, or of one of which it is a copy.
    is_ours = link.is_symlink() and link.readlink().parent.parent.name == FOLDER
    return link.exists() and not is_ours


def announced(build: Build, say: Callable[[str], None]) -> Path:
    """Returns where the environment will be, and says that it has to be built."""
    say(f"the virtual environment of {build.inputs.main} would be installed first")
    return build.folder / environments.VENV


def build_here(build: Build, say: Callable[[str], None]) -> Path:
    """Builds on this machine. Raises ConfigError with the sentence of the installer."""
    say(f"Installing the virtual environment of {build.inputs.main} on this machine")
    _forget_useless(build.folder)
    try:
        environments.build(build.inputs, build.root, build.folder, say=lambda _line: None)
    except BuildFailed as error:
        raise _failed(build, str(error)) from None
    return _finished(build, say)


def build_by_job(
    build: Build, options: Sequence[Option], site: SiteProfile, limit_seconds: int | None, say: Callable[[str], None]
) -> Path:
    """Submits the job that builds, and waits for it. Several submissions wait for one build.

    ``limit_seconds``: of the partition, None without one. Raises ConfigError with the sentence of the installer.
    """
    builder = build.folder / "builder"
    _write_builder(builder, build, site)
    _forget_useless(build.folder)
    minutes = max(1, min(MAX_BUILD_SECONDS, limit_seconds or MAX_BUILD_SECONDS) // 60)
    log = build.folder / "build.log"
    argv = [f"--job-name=detent-env-{build.folder.name}", "--dependency=singleton", f"--output={log}", "--nodes=1"]
    argv += ["--ntasks=1", f"--cpus-per-task={CPUS}", f"--mem={MEMORY}", f"--time={minutes}", "--open-mode=append"]
    argv += [option.text for option in options if option.name in _OF_JOB]
    say("Submitting virtualenv installer job")
    job = slurm_client.submit([*argv, str(builder / "build.sh")])
    say(f"Submitted batch job {job}")
    _wait(build, job, log)
    shutil.rmtree(builder, ignore_errors=True)
    return _finished(build, say)


def _finished(build: Build, say: Callable[[str], None]) -> Path:
    say("Finished installing virtualenv")
    results = [environments.read_result(folder) for folder in build.folder.parent.iterdir()]
    sizes = [result.bytes for result in results if result is not None and result.is_complete]
    disk_use.announce("environments", sizes, build.folder.parent, say)
    return _linked(build.root, build.folder)


def _wait(build: Build, job: str, log: Path) -> None:
    asked = time.monotonic()
    while True:
        result = environments.read_result(build.folder)
        if result is not None and result.is_complete:
            return
        if result is not None:
            raise _failed(build, result.failure)
        if time.monotonic() - asked > QUEUE_SECONDS:
            asked = time.monotonic()
            is_alive = _is_alive(job)
            os.listdir(build.folder)  # a shared disk may remember for a while that there was no result
            if not is_alive and environments.read_result(build.folder) is None:
                raise _failed(build, f"the job {job} ended without a result; its output: {_tail(log)}")
        time.sleep(POLL_SECONDS)


def _is_alive(job: str) -> bool:
    try:
        states = {each.state for each in slurm_client.queue() if each.id == job}
    except slurm_client.NoAnswer:
        return True
    return bool(states & status.ALIVE)


def _write_builder(builder: Path, build: Build, site: SiteProfile) -> None:
    """Writes the script of the job with the few modules that it needs: nodes have no det."""
    try:
        for package, names in ((determined, ("errors.py", "environments")), (determined_launch, ("regular_files.py",))):
            source, target = Path(str(package.__file__)).parent, builder / package.__name__
            target.mkdir(parents=True, exist_ok=True)
            (target / "__init__.py").touch()
            for name in names:
                if (source / name).is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(source / name, target / name, dirs_exist_ok=True, ignore=ignored)
                else:
                    shutil.copy(source / name, target / name)
        shutil.copy(_TASK / "build_environment.py", builder)
        words = ["-u", builder / "build_environment.py", build.root, build.inputs.main, build.folder]
        arguments = shlex.join(map(str, words))
        lines = [
            "#!/bin/bash",
            *setup_lines(site),
            f"python={shlex.quote(sys.executable)}",
            '[ -x "$python" ] || python=python3',
        ]
        # Another submission's job has built it, and its programs are removed.
        lines.append(f"[ -e {shlex.quote(str(builder / 'build_environment.py'))} ] || exit 0")
        lines += ["unset PYTHONPATH", f'exec "$python" {arguments}']
        (builder / "build.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"the environment cannot be built: {error.filename or ''} {error.strerror or error}"
        ) from None


def _linked(root: Path, folder: Path) -> Path:
    """Points ``virtual_env`` of the project at the environment, and returns the environment."""
    environment = folder / environments.VENV
    link = root / LINK
    if not link.is_symlink() or link.readlink() != environment:
        draft = root / f".{LINK}.new"
        with suppress(OSError):
            draft.unlink(missing_ok=True)
            draft.symlink_to(environment)
            draft.replace(link)
    return environment


def _failed(build: Build, reason: str) -> ConfigError:
    return ConfigError(f"Failed to install virtualenv from {build.inputs.main}: {reason}; nothing was submitted")


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-MAX_SHOWN_LINES:]
    except OSError:
        lines = []
    return " | ".join(lines) or "none"
