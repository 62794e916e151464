"""``logs``: the lines of a run, and the output of one task's commands."""

import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from determined_workflows.runner import output_folder, status
from determined_workflows.runner.errors import NotFoundError
from determined_workflows.runner.task_files import FAILED, FINISHED, TaskFiles, read_mapping

CHARACTERS_AT_ONCE = 1 << 20


def of_run(output: Path) -> None:
    """Prints the lines of the run that uses or used ``output``. Raises NotFoundError if there was none."""
    if not output.is_dir():
        raise NotFoundError(f"there is no output {output}")
    try:
        text = (output / output_folder.CONSOLE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise NotFoundError(f"no run has written to {output}") from None
    sys.stdout.write(text)


def of_task(output: Path, name: str, *, is_following: bool = False) -> None:
    """Prints the newest output of each command of a task. With ``is_following`` it waits for the end of the task.

    ``name`` may be the path of the task's folder. Ctrl-C ends only this. Raises NotFoundError if no such task has run.
    """
    files = _files(output, name)
    print_files(
        lambda: _logs(files),
        lambda: not is_following or output_folder.runner(output) is None or _is_over(files),
    )


def print_files(paths: Callable[[], Iterable[Path]], has_ended: Callable[[], bool]) -> None:
    """Prints the files that ``paths`` returns, each below a line with its name, and what is added to them until
    ``has_ended`` returns True."""
    printed: dict[Path, TextIO] = {}
    last: Path | None = None
    with ExitStack() as opened:
        while True:
            is_last_look = has_ended()  # before the files are read: what is written just before the end is printed too
            for path in paths():
                is_new = path not in printed
                if is_new:
                    printed[path] = opened.enter_context(path.open(encoding="utf-8", errors="replace"))
                text = printed[path].read(CHARACTERS_AT_ONCE)
                if is_new or (text and path != last):
                    sys.stdout.write(f"==> {path} <==\n")
                    last = path
                while text:
                    sys.stdout.write(text)
                    text = printed[path].read(CHARACTERS_AT_ONCE)
            sys.stdout.flush()
            if is_last_look:
                return
            time.sleep(output_folder.POLL_SECONDS)


def _files(output: Path, name: str) -> TaskFiles:
    from difflib import get_close_matches  # only for an error: each run would pay for its import

    short = Path(name).name
    for files in (TaskFiles(output / short), TaskFiles(output, f".{short}")):
        if files.stat.is_file():
            return files
    names = [task.name for task in status.read(output)]
    near = get_close_matches(short, names, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else "; `det runner status` names those that have" if names else ""
    raise NotFoundError(f'no task "{name}" has run in {output}{hint}')


def _logs(files: TaskFiles) -> Iterator[Path]:
    """Yields the newest log of each command that has begun, in their order."""
    files.load()
    names = [path.name for path in files.folder.iterdir()]
    for command in files.states:
        pattern = re.compile(rf"log\.{re.escape(command)}\.[\d.]+{re.escape(files.suffix)}")
        found = sorted(filter(pattern.fullmatch, names))
        if found:
            yield files.folder / found[-1]


def _is_over(files: TaskFiles) -> bool:
    """Returns True if a command has failed, or all have finished that the task was to run."""
    files.load()
    scripts = read_mapping(files.param).get("_scripts")
    commands = scripts if isinstance(scripts, dict) else files.states
    return FAILED in files.states.values() or all(files.states.get(each) == FINISHED for each in commands)
