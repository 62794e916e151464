"""The verbs of the grid runner with their flags, and the program ``run`` of the distribution ``detent-runner``."""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from determined_workflows.runner import control, errors, example
from determined_workflows.runner import logs as grid_logs
from determined_workflows.runner import run as grid_run
from determined_workflows.runner import status as grid_status
from determined_workflows.runner.errors import RunnerError
from determined_workflows.runner.grid import Selection
from determined_workflows.runner.run import Options

PROGRAM = "run"


class Verb(NamedTuple):
    """One verb: its help, what adds its flags to a parser, and the function that returns the exit code."""

    help: str
    add_flags: Callable[[ArgumentParser], None]
    act: Callable[[Namespace], int]
    examples: Sequence[str] = ()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``run [VERB] [flags]`` and returns the exit code. Without a verb it runs the grid, as mlrunner does."""
    words = list(sys.argv[1:] if argv is None else argv)
    words = [*ALIASES.get(words[0], words[:1]), *words[1:]] if words else words
    name = words.pop(0) if words and words[0] in VERBS else "run"
    verb = VERBS[name]
    parser = ArgumentParser(
        PROGRAM if name == "run" else f"{PROGRAM} {name}",
        description=f"{verb.help}. Other verbs: {', '.join(other for other in VERBS if other != name)}.",
        allow_abbrev=False,
    )
    verb.add_flags(parser)
    args = parser.parse_args(words)
    args.program = PROGRAM
    try:
        code = verb.act(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe: prevents another error message at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RunnerError as error:
        print(f"{PROGRAM}: {errors.in_words_of(PROGRAM, str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return control.INTERRUPTED


def _output(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="output", metavar="FOLDER", help="folder of all tasks (default: output)"
    )


def _selection(parser: ArgumentParser) -> None:
    _output(parser)
    parser.add_argument("-y", "--yaml", default="params.yaml", metavar="FILE", help="the grid (default: params.yaml)")
    parser.add_argument("-t", "--title", metavar="TITLE", help="only the choices with this _title")
    parser.add_argument("-c", "--command", nargs="+", metavar="NAME", help="only these commands of each task")
    parser.add_argument("--no-subdir", action="store_true", help="put the files of all tasks into one folder")


def _sample(parser: ArgumentParser) -> None:
    parser.add_argument("--sample", type=_count, metavar="N", help="N random tasks of each document of choices")


def _check(parser: ArgumentParser) -> None:
    _selection(parser)
    _sample(parser)


def _grid(parser: ArgumentParser) -> None:
    _selection(parser)
    parser.add_argument(
        "-r", "--resource", nargs="+", metavar="LIST", help="one worker for each LIST of GPUs: `-r 1,2 3,4`"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print successes too")
    parser.add_argument("--exit-zero", action="store_true", help="exit with 0 even if tasks fail")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, and run nothing")


def _run(parser: ArgumentParser) -> None:
    _grid(parser)
    _sample(parser)
    parser.add_argument("-f", "--force", action="store_true", help="run commands again that have finished")
    parser.add_argument(
        "-d", "--debug", action="store_true", help="run the first task, with its output on the terminal"
    )


def _logs(parser: ArgumentParser) -> None:
    _output(parser)
    parser.add_argument(
        "task", nargs="?", metavar="TASK", help="a task, or its folder (default: the lines of the whole run)"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="follow to the end; of a run, return its exit code")


def _stop(parser: ArgumentParser) -> None:
    _output(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--drain", action="store_true", help="let running commands end, and start no others")
    group.add_argument("--now", action="store_true", help="kill running commands")


def _init(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", default="params.yaml", metavar="FILE", help="the file to write (default: params.yaml)"
    )


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_count.__name__ = "count"  # argparse says: invalid count value


def options(args: Namespace) -> Options:
    """Returns the options of ``run``, ``retry`` or ``check``; a flag that the verb does not have is off."""
    given = vars(args)
    return Options(
        output=Path(args.output),
        yaml=Path(args.yaml),
        selection=Selection(args.title, args.command, given.get("sample")),
        resources=given.get("resource"),
        is_debug=given.get("debug", False),
        is_dry_run=given.get("dry_run", False),
        is_forced=given.get("force", False),
        is_verbose=given.get("verbose", False),
        is_exit_zero=given.get("exit_zero", False),
        has_subfolders=not args.no_subdir,
        program=given.get("program", errors.PROGRAM),
        is_retry=given.get("is_retry", False),
    )


def _act_init(args: Namespace) -> int:
    example.init(Path(args.file))
    program = vars(args).get("program", errors.PROGRAM)
    print(errors.in_words_of(program, f"wrote {args.file}; `det runner run` executes it"), file=sys.stderr)
    return 0


def _act_check(args: Namespace) -> int:
    grid_run.check(options(args))
    return 0


def _act_logs(args: Namespace) -> int:
    if args.task is not None:
        grid_logs.of_task(Path(args.output), args.task, is_following=args.follow)
        return 0
    if args.follow:
        return control.attach(Path(args.output))
    grid_logs.of_run(Path(args.output))
    return 0


def _act_retry(args: Namespace) -> int:
    args.is_retry = True
    return grid_run.run(options(args))


def _act_status(args: Namespace) -> int:
    grid_status.show(Path(args.output))
    return 0


def _act_stop(args: Namespace) -> int:
    control.stop(Path(args.output), is_draining=args.drain, is_killing=args.now)
    return 0


VERBS = {
    "init": Verb("write a params.yaml with comments, which runs as it is", _init, _act_init),
    "check": Verb(
        "print the tasks of a grid with their commands; run nothing",
        _check,
        _act_check,
        ("det runner check", "det runner check -y other.yaml -c train"),
    ),
    "run": Verb(
        "run a grid of commands; what has finished is skipped",
        _run,
        lambda args: grid_run.run(options(args)),
        ("det runner run", "det runner run -r 0 1 -c test", "det runner run --sample 10 --dry-run"),
    ),
    "status": Verb("print the states of the tasks of an output", _output, _act_status),
    "logs": Verb(
        "print the lines of a run, or a task's output; -f follows it",
        _logs,
        _act_logs,
        ("det runner logs", "det runner logs -f", "det runner logs output/Norm_new-Moment_0.1"),
    ),
    "stop": Verb("end a run; `run` continues it", _stop, _act_stop, ("det runner stop", "det runner stop --drain")),
    "retry": Verb("run the tasks that failed, from the command that failed", _grid, _act_retry),
}
ALIASES = {"attach": ("logs", "--follow")}
"""Older words for a verb with flags."""
