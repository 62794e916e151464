"""``--on local``: prepares a job for this machine, and runs it in the foreground."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from determined.errors import ConfigError, Conflict
from determined_workflows.batch import (
    command_line,
    data_archive,
    durations,
    environment_job,
    job_record,
    local_run,
    local_script,
    status,
    submission,
)
from determined_workflows.batch import project as projects
from determined_workflows.batch.command_line import CommandLine
from determined_workflows.batch.data_archive import Archive
from determined_workflows.batch.environment_job import Build
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.local_run import LocalRun
from determined_workflows.batch.local_script import LocalPlan
from determined_workflows.batch.settings import DISTRIBUTED, as_record
from determined_workflows.batch.submission import Request, Say
from determined_workflows.batch.target_options import LOCAL


@dataclass(frozen=True)
class PreparedHere:
    """A job that can run on this machine."""

    request: Request
    plan: LocalPlan
    line: CommandLine
    data: Archive | None


def prepare(asked: Request, say: Say, *, is_dry_run: bool = False) -> PreparedHere:
    """Checks the request and makes its caches, unless ``is_dry_run``. Raises ConfigError; nothing has run then."""
    settings, project = asked.settings, asked.project
    line = command_line.plan_without_slurm(settings, asked.command, asked.sweep_id)
    workdir = submission.workdir_of(settings, project)
    if settings.container:
        line = submission.in_container(asked, line, workdir)
    data_paths = data_archive.check(project, settings.data)
    projects.check_writable(project.outputs)
    present = local_run.gpus_here()
    if settings.gpus > present:
        say(f"--gpus {settings.gpus}: this machine has {present}; the processes of the job share what is there")
    if present and not settings.gpus:
        say(f"without --gpus N the program sees none of the {present} GPUs of this machine")
    environment = None
    if not settings.container:
        job = environment_job.find(project.root, say)
        if not isinstance(job, Build):
            environment = job
        elif is_dry_run:
            environment = environment_job.announced(job, say)
        else:
            environment = environment_job.build_here(job, say)
    data = data_archive.pack(project, data_paths, say) if data_paths and not is_dry_run else None
    folder, nonce = job_record.new_folder(project, settings.label, settings.exp_name)
    typed = shlex.join(asked.words).replace("\n", " ")
    plan = LocalPlan(settings, project, folder, nonce, asked.site, environment, workdir, typed)
    return PreparedHere(asked, plan, line, data)


def run(prepared: PreparedHere, say: Say) -> int:
    """Runs the job and returns the code of its program. Raises ConfigError if the outputs cannot be written."""
    asked, plan = prepared.request, prepared.plan
    project, settings = asked.project, asked.settings
    seconds = durations.seconds(settings.time) if "time" in settings.typed else None
    record = JobRecord(
        folder=plan.record,
        nonce=plan.nonce,
        label=settings.label,
        job_name=f"{settings.label}-{project.name}-{settings.exp_name}",
        output=submission.output_pattern(project, settings),
        command=prepared.line.text,
        words=tuple(asked.words),
        time_seconds=seconds,
        settings={**as_record(settings), "max_parallel": asked.max_parallel},
        target=LOCAL,
    )
    data = prepared.data.as_record() if prepared.data else None
    on_node = {
        "data": data,
        "kill_wait": local_script.GRACE_SECONDS,
        "is_general": settings.kind == DISTRIBUTED,
        "environment": str(plan.environment) if plan.environment else None,
    }
    try:
        (project.scratch_dir / settings.exp_name / "checkpoints").mkdir(parents=True, exist_ok=True)
        job_record.write_programs(plan.record, local_script.text(plan), prepared.line.text, on_node)
        record = local_run.with_new_job(record, tuple(range(1, (asked.count or 0) + 1)))
    except OSError as error:
        job_record.remove(plan.record, project)
        raise ConfigError(f"{error.filename}: {error.strerror}; nothing was started") from None
    return execute(record, say)


def execute(record: JobRecord, say: Say) -> int:
    """Runs the newest job of a record in the foreground and returns its code: that of the first program that failed."""
    job = record.jobs[-1]
    say(f"Started job {job.id} on this machine; `det batch stop {record.name}` in another terminal ends it")
    settings: Mapping[str, object] = record.settings
    gpus, parallel = (settings.get(name) for name in ("gpus", "max_parallel"))
    execution = LocalRun(
        record,
        say,
        parallel=parallel if isinstance(parallel, int) else 1,
        gpus=gpus if isinstance(gpus, int) else 0,
        seconds=record.time_seconds,
    )
    ends, number = execution.run()
    if number is not None:
        return 128 + number
    return next((end.code for end in ends if end.code), 0)


def retry(record: JobRecord, say: Say) -> int:
    """Runs again what has failed and returns its code. Raises Conflict if nothing has failed or something runs."""
    _, states = status.observe(record, local_run.queue(record))
    failed = [each for each in states if each.state in status.RETRIED]
    if any(each.is_alive for each in states):
        raise Conflict(f"{record.name} still runs; `det batch stop {record.name}` ends it")
    if not failed:
        raise Conflict(f"nothing of {record.name} has failed: {', '.join(sorted({each.state for each in states}))}")
    job_record.check_inputs(record)
    elements = tuple(each.element for each in failed if each.element is not None)
    return execute(local_run.with_new_job(record, elements), say)
