"""``det batch status``, ``logs``, ``stop`` and ``retry``."""

import json
import os
import shlex
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence

from determined.errors import ConfigError, NotFound
from determined_cli.failures import counted
from determined_cli.terminal.messages import say
from determined_workflows import site_profile
from determined_workflows.batch import control, job_record, local_run, logs, on_local, target_options
from determined_workflows.batch import project as projects
from determined_workflows.batch import status as job_states
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.project import Project
from determined_workflows.batch.slurm_client import QueuedJob
from determined_workflows.batch.status import JobState


def status(args: Namespace) -> None:
    """Prints the states of all submissions of a project, or of the elements of one."""
    project = _project(args)
    records = [_find(args)] if args.target else job_record.all_of(project)
    if not records:
        raise NotFound(f"nothing was submitted from {project.root}; `det batch run` does it")
    queue = _queue(records)
    found = [_observe(record, queue, args) for record in records]
    if args.json:
        print(json.dumps([_as_json(record, states) for record, states in found], indent=2, ensure_ascii=False))
        return
    for record, states in found:
        if args.target:
            for state in states:
                if args.element in (None, state.element):
                    print(_line(state.id, record, state.state, state.detail))
        else:
            print(_summary(record, states))


def show_logs(args: Namespace) -> int:
    """Prints the output of a job. Returns its code if it was followed to its end."""
    record = _find(args)
    if record.target == target_options.DET:
        from determined_cli.batch import cluster  # jobs of Slurm need no HTTP client

        return cluster.show_logs(record, args)
    record, states = _observe(record, _queue([record]), args)
    if args.element is not None:
        states = [each for each in states if each.element == args.element]
        if not states:
            raise NotFound(f"{record.name} has no element {args.element}")
    if args.follow:
        return _follow(record, states, args)
    paths = [(state, logs.path_of(record, state)) for state in states]
    if not any(path for _, path in paths):
        raise NotFound(f"{record.name} has no output; it is {states[0].state} {states[0].detail}".strip())
    for _, path in paths:
        if path is not None:
            if len(paths) > 1:
                print(f"==> {path.name} <==", flush=True)
            for piece in logs.read(path):
                sys.stdout.buffer.write(piece)
            sys.stdout.flush()
    return 0


def stop(args: Namespace) -> None:
    """Cancels what is left of a submission, or one element of its array."""
    record = _find(args)
    _refuse_element(record, args)
    if record.target == target_options.LOCAL:
        local_run.stop(record)
        say(f"stopped {record.name}")
        return
    if record.target == target_options.DET:
        from determined_cli.batch import cluster

        say(f"canceled experiment {cluster.stop(record, args)}")
        return
    for job in control.stop(record, args.element):
        say(f"canceled job {job} of {record.name}")


def retry(args: Namespace) -> int:
    """Submits again what has failed, where it ran."""
    record = _find(args)
    _refuse_element(record, args)
    if args.on not in (None, record.target):
        raise ConfigError(
            f"{record.name} ran with --on {record.target}, and is retried there. To run it with --on {args.on}, submit "
            f"it anew; its flags were: {shlex.join(record.words)}"
        )
    if record.target == target_options.LOCAL:
        if args.dry_run:
            print(f"bash {record.script}")
            return 0
        return on_local.retry(record, say)
    if record.target == target_options.DET:
        if args.dry_run:
            print(f"det experiment continue {record.jobs[-1].id}")
            return 0
        from determined_cli.batch import cluster

        print(f"Continued experiment {cluster.retry(record, args)}", flush=True)
        return 0
    again = control.prepare_retry(record, args.element)
    if args.dry_run:
        print(again.shown_command)
        return 0
    print(f"Submitted batch job {control.retry(again)}", flush=True)
    if again.elements:
        say(f"{counted(len(again.elements), 'element')} of {record.name}: {control.ranges(again.elements)}")
    return 0


def _follow(record: JobRecord, states: Sequence[JobState], args: Namespace) -> int:
    codes = []
    for state in states:
        if len(states) > 1:
            print(f"==> {state.id} <==", flush=True)
        codes.append(_follow_one(record, state, args))
    return next((code for code in codes if code), 0)


def _follow_one(record: JobRecord, chosen: JobState, args: Namespace) -> int:
    def look() -> JobState:
        _, found = _observe(record, _queue([record]), args)
        return next(each for each in found if each.element == chosen.element)

    if chosen.state == "PENDING":
        say(f"{chosen.id} is PENDING{f' ({chosen.detail})' if chosen.detail else ''}; waiting for its start")
    for piece in logs.follow(record, look):
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    last = look()
    say(f"{last.id} is {last.state}{f': {last.detail}' if last.detail else ''}")
    return 0 if last.state == job_states.COMPLETED else last.code or 1


def _find(args: Namespace) -> JobRecord:
    """Returns the record that a command names. An element, such as ``25_3``, is chosen too."""
    project = _project(args)
    args.element = vars(args).get("element")
    try:
        return job_record.find(project, args.target)
    except NotFound:
        job, _, element = (args.target or "").rpartition("_")
        if not job.isdigit() or not element.isdigit():
            raise
        args.element = int(element)
        return job_record.find(project, job)


def _refuse_element(record: JobRecord, args: Namespace) -> None:
    """Raises ConfigError where one element cannot be stopped or retried: the others must not be meant instead."""
    if args.element is not None and record.target != target_options.SLURM:
        raise ConfigError(
            f"with --on {record.target} all runs of {record.name} are stopped and retried; give its name without an "
            "element"
        )


def _project(args: Namespace) -> Project:
    root = projects.root(args.project)
    site = site_profile.find(args.site, root / projects.FILES_FOLDER, os.environ)
    return projects.find(args.project, os.environ, site.scratch)


def _observe(record: JobRecord, queue: Sequence[QueuedJob] | None, args: Namespace) -> tuple[JobRecord, list[JobState]]:
    if record.target == target_options.DET:
        from determined_cli.batch import cluster

        return record, [cluster.state(record, args)]
    return job_states.observe(record, local_run.queue(record) if record.target == target_options.LOCAL else queue)


def _queue(records: Sequence[JobRecord]) -> list[QueuedJob] | None:
    """Asks Slurm, if one of the records has a job of it."""
    if all(record.target != target_options.SLURM for record in records):
        return []
    queue, reason = job_states.queue_or_none()
    if queue is None:
        say(f"{reason}; the states are from the files of the jobs")
    return queue


def _summary(record: JobRecord, states: Sequence[JobState]) -> str:
    jobs = record.jobs[-1].id if record.jobs else ""
    if len(states) == 1:
        return _line(jobs, record, states[0].state, states[0].detail)
    counts = Counter(each.state for each in states)
    detail = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    alive = next((each.state for each in states if each.is_alive), None)
    failed = next((each.state for each in states if each.state in job_states.RETRIED), None)
    return _line(jobs, record, alive or failed or states[0].state, detail)


def _line(job: str, record: JobRecord, state: str, detail: str) -> str:
    return f"{job or '-':<10}{state:<12}{record.name}" + (f"  ({detail})" if detail else "")


def _as_json(record: JobRecord, states: Sequence[JobState]) -> dict[str, object]:
    jobs = [
        {"id": each.id, "element": each.element, "state": each.state, "detail": each.detail, "exit_code": each.code}
        for each in states
    ]
    return {"name": record.name, "folder": str(record.folder), "command": record.command, "jobs": jobs}
