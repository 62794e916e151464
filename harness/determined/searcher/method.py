"""``SearchMethod``: the base class of search methods that users write."""

import random
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from determined.errors import DeterminedError
from determined.searcher.actions import Action, Create, LimitsChanged, TrialClosed, TrialValidated
from determined.searcher.sampling import sample

_REPLACED = {
    "initial_operations": "initial(), which returns Create actions",
    "on_trial_created": "nothing: a trial exists as soon as its Create was returned",
    "on_validation_completed": "on_validation(event)",
    "on_trial_closed": "on_trial_ended(event)",
    "on_trial_exited_early": "on_trial_ended(event), whose event.reason says how it ended",
    "save_method_state": "snapshot(), which returns a JSON value instead of writing files",
    "load_method_state": "restore(snapshot)",
}


class ReplacedMethods(DeterminedError):
    """A class defines methods of Determined's SearchMethod of 2022."""


@dataclass(frozen=True)
class SearchContext:
    """Settings of a search, from the configuration.

    Args:
        hyperparameters: the section of the configuration, complete with defaults.
        metric: name of the metric that is compared.
        smaller_is_better: False if larger values of the metric are better.
        max_trials: maximum number of trials, which is a hard limit.
        max_concurrent_trials: maximum number of trials at the same time; 0 for no limit.
        time_metric: name of the metric that measures training time; empty if time is counted in batches.
        seed: the experiment's seed.
        arguments: ``searcher.arguments`` of the configuration.

    Example::

        >>> SearchContext({"layers": {"type": "const", "val": 2}}, "loss", max_trials=4).smaller_is_better
        True
    """

    hyperparameters: Mapping[str, Any]
    metric: str
    smaller_is_better: bool = True
    max_trials: int = 1
    max_concurrent_trials: int = 0
    time_metric: str = ""
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


class SearchMethod:
    """Base class of a search method of your own: it receives events and returns actions.

    It runs in a task without slots, outside of the master. After each event its :meth:`snapshot` and its actions are
    stored together. If the task dies, a new one calls :meth:`restore`, and the search goes on as it would have. So
    keep everything that decides in the snapshot, and use no clock and no unseeded random numbers.

    Args:
        context: settings of the search. A subclass with a constructor of its own passes it on.

    Raises:
        ReplacedMethods: the subclass defines methods of Determined's class of 2022.

    Example::

        >>> class Halving(SearchMethod):
        ...     best = float("inf")
        ...
        ...     def initial(self):
        ...         return [self.create() for _ in range(self.room)]
        ...
        ...     def on_validation(self, event):
        ...         self.best = min(self.best, event.metric)
        ...         return [Stop(event.request_id, "much worse")] if event.metric > 2 * self.best else []
        ...
        ...     def snapshot(self):
        ...         return self.best
        ...
        ...     def restore(self, snapshot):
        ...         self.best = snapshot
        >>> from determined.searcher import SearchContext, Stop
        >>> ranges = {"rate": {"type": "double", "minval": 0.0, "maxval": 1.0}}
        >>> len(Halving(SearchContext(ranges, "loss", max_trials=3)).initial())
        3
    """

    created: int = 0
    """Number of trials that the search has asked for."""
    running: int = 0
    """Number of trials that have not ended."""

    def __init__(self, context: SearchContext) -> None:
        self.context = context

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        found = [f"{name} is replaced by {_REPLACED[name]}" for name in _REPLACED if name in vars(cls)]
        if found:
            raise ReplacedMethods(
                f"{cls.__name__} is written for the SearchMethod of Determined 2022, which this class is not: "
                f"{'; '.join(found)}"
            )

    @property
    def room(self) -> int:
        """Number of trials that may be created now, within ``max_trials`` and ``max_concurrent_trials``."""
        left = self.context.max_trials - self.created
        at_once = self.context.max_concurrent_trials
        return max(0, min(left, at_once - self.running) if at_once else left)

    def create(self, hparams: Mapping[str, Any] | None = None, reason: str = "") -> Create:
        """Returns the action that creates the next trial. Its id and seed follow from the experiment's seed.

        Args:
            hparams: hyperparameters, over the constants of the configuration; None draws them at random.
            reason: shown with the decision.

        Example::

            >>> method = SearchMethod(SearchContext({"layers": {"type": "const", "val": 2}}, "loss", max_trials=4))
            >>> method.create({"layers": 3}).hparams
            {'layers': 3}
        """
        rng = random.Random(f"{self.context.seed}/{self.created}")
        self.created += 1
        self.running += 1
        request_id = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        seed = rng.getrandbits(31)
        values = sample(self.context.hyperparameters, rng) if hparams is None else dict(hparams)
        return Create(request_id, values, seed, reason)

    def initial(self) -> Iterable[Action]:
        """Returns the first actions; called once. By default as many random trials as have room."""
        return [self.create() for _ in range(self.room)]

    def on_validation(self, event: TrialValidated) -> Iterable[Action]:
        """Returns the actions that follow a validation; none by default.

        Args:
            event: the report of a trial.
        """
        return []

    def on_trial_ended(self, event: TrialClosed) -> Iterable[Action]:
        """Returns the actions that follow the end of a trial. By default random trials, as many as have room.

        Args:
            event: which trial ended, and how.
        """
        return [self.create() for _ in range(self.room)]

    def on_limits_changed(self, event: LimitsChanged) -> Iterable[Action]:
        """Returns the actions that follow a change of the limits. By default random trials, as many as have room.

        Args:
            event: the new limits.
        """
        return [self.create() for _ in range(self.room)]

    def progress(self) -> float | None:
        """Returns how much of the search is done, from 0 to 1. None, the default: ended trials of ``max_trials``."""
        return None

    def snapshot(self) -> Any:  # noqa: ANN401  # any JSON value
        """Returns the state of the method as a JSON value; None by default."""
        return None

    def restore(self, snapshot: Any) -> None:  # noqa: ANN401  # any JSON value
        """Restores the state of the method; called instead of :meth:`initial` when the search goes on.

        Args:
            snapshot: what :meth:`snapshot` returned.
        """
