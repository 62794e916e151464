"""Events and actions of search methods. Values only; the master's search methods use the same names."""

from dataclasses import dataclass, field
from typing import Any

FAILED = frozenset(
    {"errored", "out_of_restarts", "retries_canceled", "impossible", "no_checkpoint", "system", "agent_lost"}
)
"""Exit reasons that count as a failure of the trial."""
CANCELED = frozenset({"user_canceled", "killed"})
"""Exit reasons of trials that people ended."""


@dataclass(frozen=True)
class TrialValidated:
    """A trial has reported a validation.

    Args:
        request_id: the trial, as :class:`Create` named it.
        steps: batches that the trial has trained.
        time: training time, in units of ``searcher.time_metric``; without that setting equal to ``steps``.
        metric: value of ``searcher.metric``, a finite number.
        metrics: all metrics of the report.

    Example::

        >>> TrialValidated("a", steps=8, time=2.0, metric=0.5, metrics={"loss": 0.5, "epochs": 2.0}).metric
        0.5
    """

    request_id: str
    steps: int
    time: float
    metric: float
    metrics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrialClosed:
    """A trial has ended.

    Args:
        request_id: the trial, as :class:`Create` named it.
        reason: ``completed``, ``searcher_stopped``, ``invalid_hp``, ``errored``, ``out_of_restarts``,
            ``user_canceled``, ``killed``, or another reason of the master.

    Example::

        >>> TrialClosed("a", "errored").failed, TrialClosed("a", "completed").failed
        (True, False)
    """

    request_id: str
    reason: str

    @property
    def failed(self) -> bool:
        """True if the trial failed."""
        return self.reason in FAILED

    @property
    def canceled(self) -> bool:
        """True if a user canceled or killed the trial."""
        return self.reason in CANCELED


@dataclass(frozen=True)
class LimitsChanged:
    """Somebody changed the limits of the running search. :attr:`SearchMethod.context` has them already.

    Args:
        max_trials: the new number of trials, or None if it is unchanged.
        max_concurrent_trials: the new number of concurrent trials, or None if it is unchanged.

    Example::

        >>> LimitsChanged(max_trials=20)
        LimitsChanged(max_trials=20, max_concurrent_trials=None)
    """

    max_trials: int | None = None
    max_concurrent_trials: int | None = None


Event = TrialValidated | TrialClosed | LimitsChanged


@dataclass(frozen=True)
class Create:
    """Creates a trial. :meth:`SearchMethod.create` makes it with an id and a seed.

    Args:
        request_id: the trial's name in the search: 1 to 36 letters, digits, ``-`` and ``_``.
        hparams: hyperparameters, over the constants of the configuration; every range needs a value.
        seed: seed of the trial, from 0 to 2^31 - 1.
        reason: shown with the decision; empty shows nothing.

    Example::

        >>> Create("a", {"learning_rate": 0.1}, seed=7, reason="the first trial").hparams
        {'learning_rate': 0.1}
    """

    request_id: str
    hparams: dict[str, Any]
    seed: int
    reason: str = ""


@dataclass(frozen=True)
class Stop:
    """Ends a trial: it is preempted at once and ends as completed.

    Args:
        request_id: the trial.
        reason: shown with the decision.

    Example::

        >>> Stop("a", "worse than the median after 8 batches").request_id
        'a'
    """

    request_id: str
    reason: str = ""


@dataclass(frozen=True)
class Shutdown:
    """Ends the search: no further trial is created. Trials that run train to their end.

    A search without a running trial and without a further action ends by itself.

    Args:
        failed: True ends the experiment with an error and its trials at once.
        reason: shown as the experiment's reason.

    Example::

        >>> Shutdown(failed=True, reason="no trial was better than 0.9").failed
        True
    """

    failed: bool = False
    reason: str = ""


Action = Create | Stop | Shutdown
