"""Events and actions of searchers. Values only."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TrialClosed:
    """A trial has ended. ``reason`` is an ExitReason's value."""

    request_id: str
    reason: str


@dataclass(frozen=True)
class TrialValidated:
    request_id: str
    steps: int
    metrics: dict[str, Any]


Event = TrialClosed | TrialValidated


@dataclass(frozen=True)
class Create:
    """A new trial, with a request id of the searcher's own choosing and a seed in [0, 2^31)."""

    request_id: str
    hparams: dict[str, Any]
    seed: int


@dataclass(frozen=True)
class Stop:
    """End this trial: the search wants no more of it."""

    request_id: str


@dataclass(frozen=True)
class Shutdown:
    """The search is over. ``failed``: every trial failed; ``canceled``: every trial was canceled by its user."""

    failed: bool = False
    canceled: bool = False


Action = Create | Stop | Shutdown
