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
    """A trial has reported a validation after ``steps`` batches."""

    request_id: str
    steps: int
    metrics: dict[str, Any]


@dataclass(frozen=True)
class LimitsChanged:
    """Somebody changed the number of trials, or of concurrent trials, of a running search; None keeps a number."""

    max_trials: int | None = None
    max_concurrent_trials: int | None = None


@dataclass(frozen=True)
class SearchContinued:
    """Somebody continues a search that had ended. ``resumed``: request ids of the trials that train on.
    ``known``: those of all trials that exist; what a search asks for while it is being stopped is not created."""

    resumed: tuple[str, ...]
    known: tuple[str, ...]


@dataclass(frozen=True)
class LotDue:
    """The search has created a lot of trials, and wants the next one: see ``CreateMore``."""


Event = TrialClosed | TrialValidated | LimitsChanged | SearchContinued | LotDue


@dataclass(frozen=True)
class ResumeDue:
    """A lot of the trials of a continued search is to train on; no method has to know. See ``Resume``."""

    after: int
    to: int
    actor: str


@dataclass(frozen=True)
class Create:
    """A new trial, with a request id of the searcher's own choosing and a seed in [0, 2^31)."""

    request_id: str
    hparams: dict[str, Any]
    seed: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RungResult:
    """A trial's place at a rung when it reported there: ``rank`` of ``count`` results, of which ``kept`` train on.

    Brackets, rungs and ranks count from 1. ``units`` is the rung's training time, ``time`` the trial's.
    """

    bracket: int
    rung: int
    units: int
    time: float
    metric: float
    rank: int
    count: int
    kept: int


@dataclass(frozen=True)
class Keep:
    """The search lets this trial train on beyond a rung."""

    request_id: str
    reason: str
    result: RungResult


@dataclass(frozen=True)
class Stop:
    """End this trial: the search wants no more of it. ``failed``: the trial cannot be compared, which is an error."""

    request_id: str
    reason: str = ""
    result: RungResult | None = None
    failed: bool = False


@dataclass(frozen=True)
class Shutdown:
    """The search is over. ``failed``: every trial failed, or ``reason`` makes any further trial useless; ``canceled``:
    every trial was canceled by its user."""

    failed: bool = False
    canceled: bool = False
    reason: str = ""


@dataclass(frozen=True)
class CreateMore:
    """The search wants more trials than one transaction creates. It creates no more before the event ``LotDue``."""


@dataclass(frozen=True)
class Resume:
    """Let a lot of the ended trials train on that have an id above ``after`` and up to ``to``. ``actor`` continued the
    search, whose method has been told of all of them."""

    after: int
    to: int
    actor: str


Action = Create | Keep | Stop | Shutdown | CreateMore | Resume
