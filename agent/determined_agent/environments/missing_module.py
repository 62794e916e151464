"""Advice for a task that failed because a package is not in its environment."""

import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from determined.link.run_folder import RunFolder
from determined_agent.output import log_segments
from determined_agent.output.log_segments import AGENT, STDERR, Frame

ADVICE_START = "there is no module"
MAX_BYTES = 32 << 20
"""Largest part of the output in which they are searched."""
LAST_LINES = 40
"""Number of last lines to examine; the program survived earlier import errors."""

_ERROR = re.compile(r"(?:ModuleNotFoundError: No module named '|\bpython[\d.]*: No module named '?)([A-Za-z_][\w.]*)")
# Packages whose name differs from that of their module.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "git": "GitPython",
    "google.protobuf": "protobuf",
    "pytorch_lightning": "pytorch-lightning",
    "ruamel": "ruamel.yaml",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
_NOT_BY_PIP = frozenset({"determined", "determined_launch", "pip"})


def advice(lines: Iterable[str], workdir: Path) -> str:
    """Returns a line with the install command; empty if the last lines show no missing package."""
    found = [match[1] for line in lines if (match := _ERROR.search(line))]
    if not found:
        return ""
    module = found[-1]
    top = module.partition(".")[0]
    # A module of the context itself is in no index.
    if top in _NOT_BY_PIP or (workdir / top).exists() or (workdir / f"{top}.py").exists():
        return ""
    name = _DISTRIBUTIONS.get(module) or _DISTRIBUTIONS.get(top, top)
    return (
        f"{ADVICE_START} {module} in this task's environment. To add it, write `environment: {{pip: [{name}]}}` in the "
        "configuration (in containers, `pip install` in a startup-hook.sh of the context), or select an environment "
        "that has it: environment.image: venv:PATH"
    )


class LastOutput(NamedTuple):
    """``stderr``: the last line on standard error that is not blank, or empty."""

    lines: list[str]
    stderr: str = ""


def last_output(folder: RunFolder) -> LastOutput:
    """Returns the end of the task's output that is still on disk. Blocking."""
    kept: deque[Frame] = deque(maxlen=LAST_LINES)
    stderr = b""
    position = log_segments.tail(folder.output, MAX_BYTES)
    while True:
        chunk = log_segments.read(folder.output, position, owner=folder.owner)
        if chunk.end <= position:
            return LastOutput([_text(frame.line) for frame in kept], _text(stderr))
        for frame in chunk.frames:
            if frame.stream == AGENT:
                continue
            kept.append(frame)
            if frame.stream == STDERR and frame.line.strip():
                stderr = frame.line
        position = chunk.end


def _text(line: bytes) -> str:
    return line.decode(errors="replace")
