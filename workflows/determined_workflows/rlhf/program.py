"""``python3 -m apps.main`` of a project, with its verbs and flags: start, stop, find_config.

``start`` and ``stop`` call ``det rlhf`` under the same Python.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from determined.errors import DeterminedError
from determined_workflows.rlhf import project

MODES = ("local", "det", "slurm")
REFUSED_MODES = {
    mode: f"--mode {mode}: nothing here uses Ray; use --mode local (this machine), det (the cluster) or slurm"
    for mode in ("ray", "local_ray")
}
RECOVER_MODES = ("disabled", "auto", "resume", "save")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a verb of ``apps.main``, and returns its exit code."""
    args = _parser().parse_args(argv)
    try:
        return int(args.act(args))
    except DeterminedError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m apps.main", description="Runs registered RLHF experiments.")
    verbs = parser.add_subparsers(required=True, metavar="{start,stop,find_config}")
    start = _verb(verbs, "start", "start a trial of a registered experiment", _start)
    stop = _verb(verbs, "stop", "end a trial that runs", _stop)
    for verb in (start, stop):
        verb.add_argument("-e", "--experiment_name", required=True, metavar="NAME", help="a registered experiment")
        verb.add_argument(
            "-f", "--trial_name", default=project.default_trial(), metavar="TRIAL", help='any name without "_"'
        )
        verb.add_argument(
            "--mode", type=_mode, default="slurm", metavar="MODE", help=f"{', '.join(MODES)} (default: slurm)"
        )
    start.add_argument("--partition", default="dev", help="with slurm, the pool or the partition")
    start.add_argument("--wandb_mode", choices=("online", "offline", "disabled"), default="disabled")
    start.add_argument("--image_name", default=None, help="with det, the image of the tasks")
    start.add_argument("--LOGLEVEL", default="INFO", help="level of the workers' own log lines")
    start.add_argument("--ignore_worker_error", action="store_true", help="no effect: a failed worker ends the trial")
    start.add_argument("--debug", action="store_true", help="no effect: errors are never hidden")
    start.add_argument("--recover_mode", choices=RECOVER_MODES, default="auto", help="where a trial begins")
    start.add_argument("--recover_retries", type=int, default=0, metavar="N", help="restarts after a failure")
    find = _verb(verbs, "find_config", "list the registered experiments", _find_config)
    find.add_argument("-r", "--regex", default="", metavar="REGEX", help="only those that it matches")
    return parser


def _verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    text: str,
    act: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=text, description=text)
    verb.set_defaults(act=act)
    return verb


def _mode(word: str) -> str:
    if word in REFUSED_MODES:
        raise argparse.ArgumentTypeError(REFUSED_MODES[word])
    if word not in MODES:
        raise argparse.ArgumentTypeError(f"{word!r} is not one of {', '.join(MODES)}")
    return word


def _start(args: argparse.Namespace) -> int:
    for flag in ("ignore_worker_error", "debug"):
        if getattr(args, flag):
            print(f"warning: --{flag} has no effect", file=sys.stderr, flush=True)
    words = ["--on", args.mode, "--recover-mode", args.recover_mode, "--retries", str(args.recover_retries)]
    words += ["--wandb-mode", args.wandb_mode, "--log-level", args.LOGLEVEL]
    if args.mode == "slurm":
        words += ["--partition", args.partition]
    if args.image_name is not None:
        words += ["--image", args.image_name]
    return _det("run", args, words)


def _stop(args: argparse.Namespace) -> int:
    return _det("stop", args, [])


def _find_config(args: argparse.Namespace) -> int:
    project.load(Path.cwd())
    for name in project.matching(args.regex):
        print(name)
    return 0


def _det(verb: str, args: argparse.Namespace, words: Sequence[str]) -> int:
    """Replaces this process by ``det rlhf``, so that signals and the exit code are its own."""
    command = ["rlhf", verb, args.experiment_name, args.trial_name, *words]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "determined_cli", *command])
