"""Submits a job: checks, environment, data, script, and ``sbatch``. Only caches are made before the confirmation."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.errors import ConfigError, DeterminedError
from determined_workflows import site_profile
from determined_workflows.batch import (
    command_file,
    command_line,
    container,
    data_archive,
    durations,
    environment_job,
    job_record,
    job_script,
    partitions,
    sbatch_options,
    slurm_client,
)
from determined_workflows.batch import project as projects
from determined_workflows.batch.command_line import CommandLine
from determined_workflows.batch.data_archive import Archive
from determined_workflows.batch.environment_job import Build
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.job_script import JobPlan
from determined_workflows.batch.project import Project
from determined_workflows.batch.sbatch_options import Option
from determined_workflows.batch.settings import DISTRIBUTED, LIGHTNING, SWEEP, JobSettings, as_record
from determined_workflows.site_profile import SiteProfile

DEFAULT_KILL_WAIT, DEFAULT_MAX_ARRAY = 30, 1001
Say = Callable[[str], None]


@dataclass(frozen=True)
class Request:
    """What the user asks for. ``words``: the command line, as typed. ``typed``: options of sbatch behind ``--``."""

    settings: JobSettings
    project: Project
    command: str
    words: Sequence[str]
    typed: Sequence[str]
    site: SiteProfile
    sweep_id: str | None = None
    count: int | None = None
    max_parallel: int | None = None
    is_built_here: bool = False


@dataclass(frozen=True)
class _Draft:
    """What follows from a request alone."""

    line: CommandLine
    workdir: Path
    data_paths: Sequence[str]
    tasks: int
    options: Sequence[Option]


@dataclass(frozen=True)
class PreparedJob:
    """A job that can be submitted."""

    request: Request
    plan: JobPlan
    data: Archive | None
    kill_wait: int
    nonce: str

    @property
    def options(self) -> Sequence[Option]:
        return self.plan.options

    @property
    def notes(self) -> Sequence[str]:
        return self.plan.line.notes


def request(
    settings: JobSettings, flags: Mapping[str, Any], words: Sequence[str], environ: Mapping[str, str]
) -> Request:
    """Returns the request of a command line: reads the profile of the site and the command file. Raises ConfigError."""
    root = projects.root(flags.get("project"))
    site = site_profile.find(flags.get("site"), root / projects.FILES_FOLDER, environ)
    project = projects.find(flags.get("project"), environ, site.scratch)
    path = command_file.find(flags.get("configs"), project.files)
    command = command_file.read(path)
    sbatch = tuple(flags.get("sbatch_words") or ())
    return Request(settings, project, command, words, sbatch, site, is_built_here=bool(flags.get("build_here")))


def prepare(asked: Request, environ: Mapping[str, str], say: Say) -> PreparedJob:
    """Checks the request and makes its caches. Raises ConfigError and SlurmError; nothing is submitted then."""
    slurm_client.require()
    draft = _draft(asked, environ)
    configuration, limit = _check_slurm(asked, draft.options)
    environment = _environment(asked, draft.options, limit, say)
    data = data_archive.pack(asked.project, draft.data_paths, say) if draft.data_paths else None
    plan, nonce = _plan(asked, draft, environment)
    return PreparedJob(asked, plan, data, _seconds(configuration.get("KillWait", "")), nonce)


def preview(asked: Request, environ: Mapping[str, str], say: Say) -> JobPlan:
    """Returns the job that would be submitted; makes nothing. Raises ConfigError and SlurmError.

    Without Slurm on this machine the partition is not looked at.
    """
    draft = _draft(asked, environ)
    if slurm_client.is_here():
        _check_slurm(asked, draft.options)
    else:
        say("there is no sbatch on this machine: partition and limits were not looked at")
    found = None if asked.settings.container else environment_job.find(asked.project.root, say)
    environment = environment_job.announced(found, say) if isinstance(found, Build) else found
    return _plan(asked, draft, environment)[0]


def _draft(asked: Request, environ: Mapping[str, str]) -> _Draft:
    """Returns what follows from the request alone. Raises ConfigError."""
    settings, project = asked.settings, asked.project
    line = command_line.plan(settings, asked.command, asked.sweep_id)
    workdir = workdir_of(settings, project)
    if settings.container:
        line = in_container(asked, line, workdir)
    data_paths = data_archive.check(project, settings.data)
    projects.check_writable(project.outputs)
    is_per_task = command_line.is_per_task(settings, line)
    tasks = (settings.gpus or 1) if is_per_task else 1
    options = _options(asked, tasks, environ)
    sbatch_options.check_time(options)
    if settings.kind == DISTRIBUTED and settings.launcher == LIGHTNING and is_per_task:
        sbatch_options.check_tasks(options, tasks)
    return _Draft(line, workdir, data_paths, tasks, options)


def _check_slurm(asked: Request, options: Sequence[Option]) -> tuple[Mapping[str, str], int | None]:
    """Returns the configuration of Slurm and the longest time limit in seconds. Raises ConfigError if the job would
    never start, and SlurmError."""
    known = partitions.parse(slurm_client.partitions())
    wanted, time = (sbatch_options.value_of(options, name) for name in ("partition", "time"))
    problem = partitions.problem(known, wanted, time, asked.settings.nodes)
    if problem:
        raise ConfigError(f"{problem}; nothing was submitted")
    configuration = slurm_client.configuration()
    _check_array(asked, configuration)
    return configuration, partitions.limit(known, wanted)


def _plan(asked: Request, draft: _Draft, environment: Path | None) -> tuple[JobPlan, str]:
    settings, project = asked.settings, asked.project
    folder, nonce = job_record.new_folder(project, settings.label, settings.exp_name)
    plan = JobPlan(
        settings=settings,
        project=project,
        record=folder,
        line=draft.line,
        tasks_per_node=draft.tasks,
        options=draft.options,
        comment=f"{slurm_client.COMMENT_PREFIX}{nonce}",
        site=asked.site,
        environment=environment,
        workdir=draft.workdir,
        array=array_of(asked),
        typed_command=shlex.join(asked.words).replace("\n", " "),
    )
    return plan, nonce


def submit(prepared: PreparedJob) -> tuple[JobRecord, str]:
    """Writes script and record, and submits. Returns the record and the job's id.

    Raises ConfigError if the outputs cannot be written, and SlurmError. Nothing is left behind, unless Slurm did not
    answer: then the job may be in the queue, and its record stays.
    """
    asked, plan = prepared.request, prepared.plan
    project, settings = asked.project, asked.settings
    record = JobRecord(
        folder=plan.record,
        nonce=prepared.nonce,
        label=settings.label,
        job_name=sbatch_options.value_of(plan.options, "job-name") or "",
        output=output_pattern(project, settings),
        command=plan.line.shown,
        words=tuple(asked.words),
        time_seconds=durations.seconds(sbatch_options.value_of(plan.options, "time") or "UNLIMITED"),
        sbatch_words=tuple(asked.typed),
        settings=as_record(settings),
    )
    checkpoints = project.scratch_dir / settings.exp_name / "checkpoints"
    is_new = not checkpoints.exists()
    try:
        checkpoints.mkdir(parents=True, exist_ok=True)
        is_general = settings.kind == DISTRIBUTED and plan.line.started == "node"
        data = prepared.data.as_record() if prepared.data else None
        environment = str(plan.environment) if plan.environment else None
        on_node = {
            "data": data,
            "kill_wait": prepared.kill_wait,
            "is_general": is_general,
            "environment": environment,
        }
        job_record.write_programs(plan.record, job_script.text(plan), plan.line.text, on_node)
        elements = tuple(range(1, (asked.count or 0) + 1))
        job_record.store(job_record.with_job(record, "", elements))
        job = slurm_client.submit([*sbatch_words(record, plan.array), *asked.typed, str(record.script)])
        record = job_record.with_job(record, job, elements)
        job_record.store(record)
    except slurm_client.NoAnswer as error:
        raise slurm_client.NoAnswer(
            f"{error.message}; the job may be in the queue all the same: `det batch status {plan.record.name}` looks "
            "for it"
        ) from None
    except (DeterminedError, OSError) as error:
        job_record.remove(plan.record, project)
        if is_new:
            _remove_empty(checkpoints, project.scratch_dir)
        if isinstance(error, OSError):
            raise ConfigError(f"{error.filename}: {error.strerror}; nothing was submitted") from None
        raise
    return record, job


def sbatch_words(record: JobRecord, array: str | None) -> list[str]:
    """Returns the options that variables of ``sbatch`` must not override."""
    words = [f"--comment={record.comment}", f"--output={record.output}", f"--job-name={record.job_name}"]
    return [*words, f"--array={array}"] if array else words


def output_pattern(project: Project, settings: JobSettings) -> str:
    """Returns the pattern of the output file, with the names that ammunk/hpc gives."""
    number = {SWEEP: "%A_%a", DISTRIBUTED: "%N_%j"}.get(settings.kind, "%j")
    folder = str(project.outputs).replace("%", "%%")
    return f"{folder}/{settings.label}_{settings.exp_name}_{number}.out"


def array_of(asked: Request) -> str | None:
    """Returns the array of a sweep."""
    if asked.count is None:
        return None
    return f"1-{asked.count}" + (f"%{asked.max_parallel}" if asked.max_parallel else "")


def _options(asked: Request, tasks: int, environ: Mapping[str, str]) -> list[Option]:
    settings, project = asked.settings, asked.project
    own = sbatch_options.of_job(
        settings,
        name=f"{settings.label}-{project.name}-{settings.exp_name}",
        output=output_pattern(project, settings),
        tasks_per_node=tasks,
    )
    source = asked.site.source.name if asked.site.source else site_profile.FILE_NAME
    return sbatch_options.merge(own, asked.site.sbatch, asked.typed, environ, source)


def workdir_of(settings: JobSettings, project: Project) -> Path:
    """Returns the working folder of the program. Raises ConfigError if it is not there."""
    folder = project.root / (settings.workdir or "")
    if not folder.is_dir():
        raise ConfigError(f"--workdir {settings.workdir}: there is no folder {folder}; nothing was submitted")
    return folder


def in_container(asked: Request, line: CommandLine, workdir: Path) -> CommandLine:
    """Returns the line whose program runs in the image of the request. Raises ConfigError."""
    settings, project = asked.settings, asked.project
    image = project.root / str(settings.container)
    if not image.exists():
        raise ConfigError(f"--singularity-container {settings.container}: there is no image {image}")
    program = container.runtime(may_be_loaded=bool(asked.site.setup))
    folders = (project.root, project.scratch, workdir)
    return container.wrap(line, program, str(image), folders, has_gpus=settings.gpus > 0)


def _environment(asked: Request, options: Sequence[Option], limit_seconds: int | None, say: Say) -> Path | None:
    if asked.settings.container:
        return None
    environment = environment_job.find(asked.project.root, say)
    if not isinstance(environment, Build):
        return environment
    if asked.is_built_here:
        return environment_job.build_here(environment, say)
    return environment_job.build_by_job(environment, options, asked.site, limit_seconds, say)


def _check_array(asked: Request, configuration: Mapping[str, str]) -> None:
    with suppress(ValueError):
        largest = int(configuration.get("MaxArraySize", DEFAULT_MAX_ARRAY)) - 1
        if asked.count is not None and asked.count > largest:
            raise ConfigError(
                f"--count {asked.count}: an array of this Slurm has at most {largest} elements; submit twice"
            )


def _seconds(text: str) -> int:
    first = text.split()[:1]
    return int(first[0]) if first and first[0].isdigit() else DEFAULT_KILL_WAIT


def _remove_empty(folder: Path, top: Path) -> None:
    while folder != top.parent:
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
