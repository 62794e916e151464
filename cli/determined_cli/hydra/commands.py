"""Commands of ``det hydra``."""

import json
import sys
from argparse import Namespace
from pathlib import Path

from determined_cli import connection
from determined_cli.main import say
from determined_workflows.hydra import check as composed
from determined_workflows.hydra import composition, launcher_settings, project, submission
from determined_workflows.hydra.composition import Composition
from determined_workflows.hydra.project import Project


def check(args: Namespace) -> None:
    """Prints the composition."""
    found = _compose(args)
    for warning in composed.warnings(found):
        say(f"warning: {warning}")
    if args.json:
        print(json.dumps(composed.as_json(found), indent=2, ensure_ascii=False))
        return
    for line in composed.lines(found):
        print(line)
    jobs = f", {len(found.jobs)} jobs" if found.is_sweep else ""
    say(f"{args.script} is valid: {sum(len(job.values) for job in found.jobs[:1])} values{jobs}")


def run(args: Namespace) -> int:
    """Submits the composition as one experiment."""
    found = _compose(args)
    for warning in (*launcher_settings.setup_warnings(found.launcher.get("setup") or ()), *launcher_settings.unused(found.launcher)):
        say(f"warning: {warning}")
    return _submit(args, found, project.find(found))


def _submit(args: Namespace, found: Composition, folder: Project) -> int:
    environment = None if found.python == Path(sys.prefix) else found.python
    settings = launcher_settings.read(found.launcher)
    prepared = submission.prepare(found, folder, settings, args.config, environment=environment)
    for warning in prepared.warnings:
        say(warning)
    if args.dry_run:
        print(prepared.config, end="")
        return 0
    session = connection.connect(args.options)
    experiment_id, left_out = submission.submit(session, prepared, is_paused=args.paused)
    for reason in left_out:
        say(f"left out: {reason}")
    print(f"Created experiment {experiment_id}", flush=True)
    if found.is_sweep:
        say(f"{len(found.jobs)} jobs; `det experiment list-trials {experiment_id}` shows them")
    if not args.follow:
        return 0
    from determined_cli.experiment.follow import follow

    return follow(session, experiment_id)


def _compose(args: Namespace) -> Composition:
    return composition.compose(Path(args.script), _arguments(args), python=args.python)


def _arguments(args: Namespace) -> list[str]:
    """Returns the command line of the script: the flags that Hydra knows, then the overrides."""
    flags = ["--multirun"] if args.multirun else []
    for name in ("config_name", "config_path", "config_dir"):
        value = getattr(args, name)
        flags += [f"--{name.replace('_', '-')}", value] if value is not None else []
    return [*flags, *args.overrides]
