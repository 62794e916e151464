"""``stop`` and ``logs --follow``: end or watch a run from another terminal."""

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from determined_workflows.runner import output_folder
from determined_workflows.runner.errors import ConflictError, NotFoundError, RunnerError
from determined_workflows.runner.signals import DRAIN, KILL

KILLED, INTERRUPTED = 9, 130


def stop(output: Path, *, is_draining: bool = False, is_killing: bool = False) -> None:
    """Ends the run that uses ``output``, and waits for its end.

    Its commands get SIGTERM, and are killed after a grace period. With ``is_draining`` they are let run to their ends,
    and no others start; with ``is_killing`` they are killed. Raises NotFoundError and ConflictError if nothing runs,
    or on another machine.
    """
    pid = _runner(output)
    host = output_folder.other_host(output)
    if host is not None:
        raise ConflictError(f"the run of {output} (process {pid}) is on {host}; end it there")
    try:
        os.kill(pid, DRAIN if is_draining else KILL if is_killing else signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended, or was killed: its supervisor ends
    except PermissionError:
        raise RunnerError(f"the run of {output} (process {pid}) is another user's") from None
    print(f"stopping the run of {output} (process {pid})", file=sys.stderr)
    while output_folder.runner(output) == pid:
        time.sleep(output_folder.POLL_SECONDS)
    print(f"the run of {output} has ended", file=sys.stderr)


def attach(output: Path) -> int:
    """Prints the lines of the run that uses ``output``, from its first, until it ends. Returns its exit code.

    Of a run that has ended it prints the lines and returns the exit code at once. Ctrl-C ends this only. Raises
    NotFoundError if nothing has run.
    """
    if not output.is_dir():
        raise NotFoundError(f"there is no output {output}")
    pid = output_folder.runner(output)
    if pid is None and not (output / output_folder.CONSOLE).exists():
        raise NotFoundError(f"no run has written to {output}")
    try:
        return _follow(output, pid)
    except KeyboardInterrupt:
        print(f"\ndetached; the run goes on. `det runner logs -f -o {output}` shows it again", file=sys.stderr)
        return INTERRUPTED


def _follow(output: Path, pid: int | None) -> int:
    path = output / output_folder.CONSOLE
    while pid is not None and not path.exists() and output_folder.runner(output) == pid:
        time.sleep(output_folder.POLL_SECONDS)
    with suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as lines:
        while True:
            # In this order: what it printed just before its end is read too.
            has_ended = pid is None or output_folder.runner(output) != pid
            sys.stdout.write(lines.read())
            sys.stdout.flush()
            if has_ended:
                break
            time.sleep(output_folder.POLL_SECONDS)
    code = output_folder.exit_code(output)
    if code is None:
        print("the run was killed; `det runner run` with the same options continues it", file=sys.stderr)
        return KILLED
    return code


def _runner(output: Path) -> int:
    if not output.is_dir():
        raise NotFoundError(f"there is no output {output}")
    pid = output_folder.runner(output)
    if pid is None:
        raise ConflictError(f"no run uses {output}; `det runner status` prints how its tasks ended")
    return pid
