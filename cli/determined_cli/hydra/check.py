"""``det hydra check``; it imports little, so that it costs little more than Hydra itself."""

import json
from argparse import Namespace
from pathlib import Path

from determined_cli.failures import counted
from determined_cli.terminal.messages import say
from determined_workflows.hydra import check as composed
from determined_workflows.hydra import composition
from determined_workflows.hydra.composition import Composition


def check(args: Namespace) -> None:
    """Prints the composition."""
    checked = compose(args)
    for warning in composed.warnings(checked):
        say(f"warning: {warning}")
    if args.json:
        print(json.dumps(composed.as_json(checked), indent=2, ensure_ascii=False))
        return
    for line in composed.lines(checked):
        print(line)
    jobs = f", {counted(len(checked.jobs), 'job')}" if checked.is_sweep else ""
    say(f"{args.script} is valid: {sum(len(job.values) for job in checked.jobs[:1])} values{jobs}")


def compose(args: Namespace) -> Composition:
    """Composes what a command names."""
    return composition.compose(Path(args.script), _arguments(args), python=args.python)


def _arguments(args: Namespace) -> list[str]:
    """Returns the command line of the script: the flags that Hydra knows, then the overrides."""
    flags = ["--multirun"] if args.multirun else []
    for name in ("config_name", "config_path", "config_dir"):
        value = getattr(args, name)
        flags += [f"--{name.replace('_', '-')}", value] if value is not None else []
    return [*flags, *args.overrides]
