"""``det batch init``, ``check`` and ``run``."""

import os
import sys
from argparse import Namespace
from dataclasses import replace

from determined.errors import ConfigError
from determined_cli.terminal.messages import say
from determined_workflows.batch import command_file, example, job_script, settings, submission, sweep, target_options
from determined_workflows.batch import project as projects
from determined_workflows.batch.job_script import JobPlan
from determined_workflows.batch.submission import Request

AGREED = ("1", "y", "yes")


def init(args: Namespace) -> None:
    """Writes the files of a project."""
    folder = example.init(projects.root(args.project or "."))
    say(f"wrote {folder}; `bash job_submitter.sh` in it submits the command of {command_file.FILE_NAME}")


def check(args: Namespace) -> int:
    """Prints the job script of the project and its options; submits nothing."""
    args.dry_run, args.on, args.searcher = True, target_options.SLURM, None
    return run(args)


def run(args: Namespace) -> int:
    """Submits a job after a confirmation, or runs it here."""
    flags = vars(args)
    options, notes = settings.read(flags)
    for note in notes:
        say(note)
    asked = submission.request(options, flags, ["det", *sys.argv[1:]], os.environ)
    for warning in target_options.check(args.on, flags, options, asked.site):
        say(f"warning: {warning}")
    if options.kind == settings.SWEEP:
        asked = _with_search(asked, args) if args.searcher else _with_sweep(asked, args)
    if args.on == target_options.LOCAL:
        return _run_here(asked, args)
    if args.on == target_options.DET:
        return _submit_to_cluster(asked, args)
    if args.dry_run:
        plan = submission.preview(asked, os.environ, say)
        _show(plan)
        print(job_script.text(plan), end="")
        say("a submission writes this script beside its command and helper programs, which it needs")
        return 0
    prepared = submission.prepare(asked, os.environ, say)
    _show(prepared.plan)
    if not _agreed(is_agreed=args.yes):
        say("nothing was submitted")
        return 1
    record, job = submission.submit(prepared)
    print(f"Submitted batch job {job}", flush=True)
    say(f"`det batch status {job}` shows it, `det batch logs -f {job}` prints its output")
    say(f"its script: {record.script}")
    return 0


def _run_here(asked: Request, args: Namespace) -> int:
    from determined_workflows.batch import on_local

    prepared = on_local.prepare(asked, say, is_dry_run=args.dry_run)
    say(f"About to run a {asked.settings.kind} job on this machine")
    for note in prepared.line.notes:
        say(note)
    say(f"The command: {prepared.line.text}")
    if args.dry_run:
        return 0
    if not _agreed(is_agreed=args.yes):
        say("nothing was started")
        return 1
    return on_local.run(prepared, say)


def _submit_to_cluster(asked: Request, args: Namespace) -> int:
    # A job of Slurm starts without the HTTP client.
    from determined_cli.batch import cluster

    session, prepared = cluster.prepare(asked, args)
    say(f"About to create an experiment for a {asked.settings.kind} job on {session.master}")
    for note in prepared.notes:
        say(note)
    say(f"The command: {prepared.shown_command}")
    if args.dry_run:
        print(prepared.config, end="")
        return 0
    if not _agreed(is_agreed=args.yes):
        say("nothing was submitted")
        return 1
    return cluster.submit(session, prepared, is_paused=args.paused)


def _agreed(*, is_agreed: bool) -> bool:
    return is_agreed or (_answer("Do you want to continue? [y/N]") or "").lower() in AGREED


def _show(plan: JobPlan) -> None:
    say(f"About to submit a {plan.settings.kind} job{f' with the array {plan.array}' if plan.array else ''}")
    for note in plan.line.notes:
        say(note)
    say("The following sbatch options will be set:")
    for option in plan.options:
        say(f"  {option.text}" + ("" if option.origin in ("flag", "default") else f"  ({option.origin})"))
    say(f"The command: {plan.line.shown}")


def _with_search(asked: Request, args: Namespace) -> Request:
    """Takes the flags of a search of our own, which needs no sweep of Weights & Biases."""
    if args.sweep_id:
        raise ConfigError("--searcher replaces the sweep of Weights & Biases; leave --sweep-id out")
    count, max_parallel = settings.check_sweep(vars(args))
    return replace(asked, count=count, max_parallel=max_parallel)


def _with_sweep(asked: Request, args: Namespace) -> Request:
    """Asks for what the flags leave open."""
    count, max_parallel = settings.check_sweep(vars(args))
    current = sweep.current_id(asked.command)
    identity = args.sweep_id
    if identity is None and args.yes and current:
        identity = current
    if identity is None:
        question = "Which sweep? Its id, as `wandb sweep` printed it" + (f" [{current}]" if current else "")
        answer = _answer(question)
        if answer is None:
            raise ConfigError("the id of the sweep is needed: --sweep-id ID; nothing was submitted")
        identity = answer or current or ""
    identity = sweep.check_id(identity)
    if count is None:
        size = sweep.runs_of(asked.project.files / sweep.FILE_NAME)
        answer = (
            ""
            if args.yes and size
            else _answer("How many runs?" + (f" [{size}: the grid of {sweep.FILE_NAME}]" if size else ""))
        )
        if answer is None:
            raise ConfigError("the number of runs is needed: --count N; nothing was submitted")
        count = settings.count_of("--count", answer or str(size or ""))
    return replace(asked, sweep_id=identity, count=count, max_parallel=max_parallel)


def _answer(question: str) -> str | None:
    """Returns the line that the user types, None at the end of input."""
    say(question)
    line = sys.stdin.readline()
    return line.strip() if line else None
