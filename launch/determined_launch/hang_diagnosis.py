"""Finds the rank that caused a hang: the one that is behind, or the one that is not where the others wait."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from determined_launch.step_counter import Steps

_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<name>.*)$', re.MULTILINE)
_COLLECTIVE = re.compile(
    r"/torch/distributed/|/torch/nn/parallel/distributed|/torch/autograd/|/horovod/|/deepspeed/comm/"
    r"|/determined/core/_(?:collectives|distributed)\.py$"
)
_INNERMOST = 4


@dataclass(frozen=True)
class Blame:
    """The rank that caused a hang. ``rank`` is None if the ranks cannot be distinguished."""

    rank: "int | None"
    text: str


def find(ranks: Sequence[Steps], stacks: Mapping[int, str]) -> Blame:
    """Compares the numbers of steps; if they are equal, it compares the innermost frames."""
    fewest = min(steps.count for steps in ranks)
    most = max(steps.count for steps in ranks)
    behind = [steps.rank for steps in ranks if steps.count == fewest]
    if fewest < most and len(behind) < len(ranks):
        return Blame(
            behind[0], f"{_named(behind)} behind: {fewest} steps, the others up to {most}{_at(stacks, behind[0])}"
        )
    frames = {rank: _frames(text) for rank, text in stacks.items()}
    waiting = [rank for rank, found in frames.items() if any(_COLLECTIVE.search(file) for file, _ in found)]
    missing = sorted(rank for rank, found in frames.items() if found and rank not in waiting)
    if waiting and missing:
        return Blame(
            missing[0],
            f"{_named(missing)} not in the collective operation that the others wait in{_at(stacks, missing[0])}",
        )
    if len(ranks) == 1:
        return Blame(ranks[0].rank, f"rank {ranks[0].rank} completed {most} steps{_at(stacks, ranks[0].rank)}")
    return Blame(None, f"all ranks completed {most} steps; the rank that hangs is unknown")


def _named(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} is"
    return f"ranks {', '.join(map(str, ranks))} are"


def _at(stacks: Mapping[int, str], rank: int) -> str:
    frames = _frames(stacks.get(rank, ""))
    return f"; rank {rank} is at {frames[0][1]}" if frames else ""


def _frames(text: str) -> list[tuple[str, str]]:
    """Returns file and line of the main thread's innermost frames."""
    _, mark, rest = text.rpartition("Current thread 0x")
    block = re.split(r"^Thread 0x", rest if mark else text.partition("Thread 0x")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return [
        (found["file"], f"{found['file']}:{found['line']} in {found['name']}")
        for found in list(_FRAME.finditer(block))[:_INNERMOST]
    ]
