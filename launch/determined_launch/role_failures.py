"""The line on the screen about the first process of a role that failed."""

import re
import signal
import sys
from collections.abc import Mapping, Sequence

from determined_launch import exit_records
from determined_launch.role_plan import ProcessPlan

MODULE = "determined.launch.roles"
_FRAME = re.compile(r'^\s*File "(.+?)", line (\d+)')
_LIBRARY = re.compile(r"(?:^|/)(?:site-packages|dist-packages|lib/python3[^/]*|determined|determined_launch)/|^<")


def say(planned: ProcessPlan, code: int, environ: Mapping[str, str]) -> None:
    """Prints role, index, rank, and why the process failed."""
    folder = exit_records.folder(environ)
    records = exit_records.of_launch(folder, environ.get("DET_LAUNCH_ID", ""))
    record = next((one for one in records if one.rank == planned.rank), None)
    prefix = f"[rank={planned.rank}] "
    lines = [line.removeprefix(prefix) for line in record.last_lines] if record else []
    why = _of_traceback(lines) or (record.last_stderr.removeprefix(prefix) if record else "") or _how(code)
    print(f"{MODULE}: role {planned.label} (rank {planned.rank}) failed: {why}", file=sys.stderr, flush=True)


def _of_traceback(lines: Sequence[str]) -> str:
    begin = next((at for at in reversed(range(len(lines))) if lines[at].startswith("Traceback (most")), None)
    if begin is None:
        return ""
    what = next((line for line in lines[begin + 1 :] if line and not line[0].isspace()), "")
    frames = [found for line in lines[begin:] if (found := _FRAME.match(line))]
    own = [found for found in frames if not _LIBRARY.search(found[1])] or frames
    return f"{what} ({own[-1][1]}:{own[-1][2]})" if own else what


def _how(code: int) -> str:
    try:
        return f"it was killed by {signal.Signals(code - 128).name}"
    except ValueError:
        return f"it exited with code {code}"
