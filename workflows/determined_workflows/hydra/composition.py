"""What Hydra makes of a script and its overrides, found by a program under the user's Python."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from determined.errors import ConfigError

MAX_JOBS = 2_000
"""Limit of a multirun. Each job is composed before anything is submitted."""
MULTIRUN_FLAG = "--multirun"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*\Z")
_PACKAGE = Path(__file__).resolve().parents[1]
# A package of this name that loads only what it is asked for: the user's Python needs none of our dependencies.
_START = f"""
import sys, types
package = types.ModuleType("determined_workflows")
package.__path__ = [{str(_PACKAGE)!r}]
sys.modules["determined_workflows"] = package
sys.path[:1] = []
from determined_workflows.hydra.composer.program import main
main()
"""


class CompositionError(ConfigError):
    """The Hydra application cannot be composed."""


@dataclass(frozen=True)
class Job:
    """One run of the script: its overrides beyond those of the command, and its values."""

    overrides: list[str]
    values: list[dict[str, Any]]
    number: int = 0
    """Hydra's number of the job, which counts over all batches of a sweeper."""
    subfolder: str | None = None

    @property
    def config(self) -> dict[str, Any]:
        """Returns the resolved values by their dotted keys."""
        return {each["key"]: each["value"] for each in self.values}


@dataclass(frozen=True)
class ImportFolder:
    """A folder of the application's import path.

    Modules were imported from it (``is_used``), or may be when the job runs. ``is_installed`` if the Python environment
    names it, such as an editable installation.
    """

    path: Path
    is_used: bool
    is_installed: bool


@dataclass(frozen=True)
class Composition:
    """An application with its overrides; ``arguments`` are those of the command line."""

    script: Path
    working_folder: Path
    arguments: list[str]
    jobs: list[Job]
    is_sweep: bool
    name: str
    job_name: str
    config_folder: Path | None
    config_name: str | None
    run_dir: str | None
    sweep_dir: str | None
    output_folders: list[str]
    moving_folders: list[str]
    """``run`` and ``sweep``, if the folder of results begins with a variable, so that a task has another."""
    launcher_target: str | None
    launcher: dict[str, Any] = field(repr=False)
    launcher_setup: list[str] | None = None
    """The lines of the launcher's ``setup`` with their interpolations; None if they are not written as a list."""
    launcher_keys: Mapping[str, str] = field(default_factory=dict)
    """The keys of the launcher that the project sets, and what sets each: `configuration` or `override`."""
    python: Path = field(default=Path(sys.prefix))
    """The Python environment in which the application was composed."""
    module: str | None = None
    """The module that is started by ``python -m``, whose file ``script`` is; None if the script itself is started."""
    import_folders: list[ImportFolder] = field(default_factory=list)

    @property
    def flags(self) -> list[str]:
        """Returns the flags of the command line that choose a configuration, with their values."""
        return split_arguments(self.arguments)[0]

    @property
    def overrides(self) -> list[str]:
        """Returns the overrides of the command line without its flags."""
        return split_arguments(self.arguments)[1]


def active_python(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the Python that ``python`` starts in the user's shell, else the one that runs this program."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        program = Path(environ.get(variable) or "/nonexistent", "bin", "python")
        if program.exists():
            return str(program)
    return shutil.which("python", path=environ.get("PATH")) or sys.executable


def compose(
    script: Path,
    arguments: Sequence[str],
    *,
    python: str | None = None,
    working_folder: Path | None = None,
    max_jobs: int = MAX_JOBS,
) -> Composition:
    """Composes a script without running its task, as if it were started in ``working_folder``.

    What is no file and looks like ``package.module`` is started as by ``python -m``.

    Raises CompositionError with every problem that was found, each with its place and advice.
    """
    module = as_module(script)
    if module is None and not script.is_file():
        raise CompositionError(f"{script}: " + ("not a file" if script.exists() else "no such file"))
    folder = working_folder or Path.cwd()
    request = {"script": str(script.resolve()), "module": module, "arguments": list(arguments), "max_jobs": max_jobs}
    answer = _ask(request, python or active_python(), folder)
    refuse_problems(script, answer)
    file = script if module is None else Path(answer["script"])
    return from_answer(file, arguments, answer, working_folder=folder, module=module)


def as_module(script: Path) -> str | None:
    """Returns the name of a module that a command names in the place of a script; None for a script.

    >>> as_module(Path("package.train")), as_module(Path("missing.py"))
    ('package.train', None)
    """
    name = str(script)
    return name if script.suffix != ".py" and not script.is_file() and _MODULE.match(name) else None


def from_answer(
    script: Path,
    arguments: Sequence[str],
    answer: Mapping[str, Any],
    *,
    working_folder: Path,
    first_job: int = 0,
    module: str | None = None,
) -> Composition:
    """Returns a composition from the answer of the composer, or of a launcher inside the application."""
    folder = answer["config_folder"]
    return Composition(
        script=script,
        working_folder=working_folder,
        arguments=list(arguments),
        jobs=[
            Job(each["overrides"], each["values"], number, each.get("subfolder"))
            for number, each in enumerate(answer["jobs"], first_job)
        ],
        is_sweep=answer["mode"] == "MULTIRUN",
        name=answer["name"],
        job_name=answer["job_name"],
        config_folder=Path(folder) if folder else None,
        config_name=answer["config_name"],
        run_dir=answer["run_dir"],
        sweep_dir=answer.get("sweep_dir"),
        output_folders=answer["output_folders"],
        moving_folders=answer["moving_folders"],
        launcher_target=answer["launcher_target"],
        launcher=answer["launcher"],
        launcher_setup=written if isinstance(written := answer.get("launcher_setup"), list) else None,
        launcher_keys=answer.get("launcher_keys", {}),
        python=Path(answer["python"]),
        module=module,
        import_folders=[
            ImportFolder(Path(each["path"]), each["is_used"], each["is_installed"]) for each in answer["import_folders"]
        ],
    )


def refuse_problems(script: Path, answer: Mapping[str, Any]) -> None:
    """Raises CompositionError if an answer has problems, with all of them."""
    problems = list(_problems(answer))
    if problems:
        raise CompositionError("\n".join([f"{script} cannot be composed: {_count(problems)}", *problems]))


def split_arguments(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the flags that choose a configuration, with their values, and the overrides.

    >>> split_arguments(["--multirun", "--config-name", "other", "lr=1"])
    (['--config-name', 'other'], ['lr=1'])
    """
    flags: list[str] = []
    overrides: list[str] = []
    words = iter(arguments)
    for word in words:
        if not word.startswith("--"):
            overrides.append(word)
        elif word != MULTIRUN_FLAG:
            flags += [word, next(words)]
    return flags, overrides


def _ask(request: Mapping[str, Any], python: str, working_folder: Path) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "answer.json")
        # The output of the script is no answer: it goes where messages go.
        ended = subprocess.run(
            [python, "-c", _START],
            input=json.dumps({**request, "answer": str(path)}),
            text=True,
            stdout=sys.stderr.fileno() if _is_file(sys.stderr) else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=working_folder,
            check=False,
        )
        if not path.exists():
            text = ended.stderr.strip()[-2000:]
            name = request["module"] or request["script"]
            raise CompositionError(f"{python} could not compose {name} (exit code {ended.returncode}):\n{text}")
        sys.stderr.write(ended.stderr)
        return dict(json.loads(path.read_text(encoding="utf-8")))


def _is_file(stream: Any) -> bool:  # noqa: ANN401  # streams of test runners have no number
    try:
        stream.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True


def _problems(answer: Mapping[str, Any]) -> Iterator[str]:
    seen = set()
    for number, each in enumerate([{"problems": answer.get("problems", ())}, *answer.get("jobs", ())]):
        for problem in each["problems"]:
            text = rendered(problem)
            if text not in seen:
                seen.add(text)
                job = f" (job {number - 1}: {' '.join(each['overrides'])})" if number and each["overrides"] else ""
                yield text.replace("\n", f"{job}\n", 1) if "\n" in text else text + job


def rendered(problem: Mapping[str, Any]) -> str:
    """Returns a problem as lines: place, message, help."""
    file = problem["file"]
    if file:
        path = Path(file)
        file = str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else file
    place = ":".join(str(each) for each in (file, problem["line"], problem["column"]) if each)
    lines = problem["message"].split("\n")
    override = f" (override {problem['override']})" if problem["override"] else ""
    text = f"{place + ': ' if place else ''}error: {lines[0]}{override}"
    hint = [f"  help: {problem['hint']}"] if problem["hint"] else []
    return "\n".join([text, *(f"  {line}" for line in lines[1:]), *hint])


def _count(problems: Sequence[str]) -> str:
    return f"{len(problems)} error{'s' if len(problems) > 1 else ''}"
